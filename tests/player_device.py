"""A device behind the accelerator's registers that plays its jobs in Python, to test the host's side."""

import numpy as np

from eva_hw.abi.descriptor import DESCRIPTOR_BYTES, FIELDS, Opcode, decode
from eva_hw.abi.registers import ID_VALUE, REGISTERS, ErrorCode

from .player import play

ADDRESSES = {r.address: r for r in REGISTERS.values()}


class PlayerDevice:
    """Takes a register map, descriptors and memory like the hardware; one job per call of :meth:`run`.

    ``bus_errors`` is a set of addresses whose reading fails; ``log`` holds what the jobs were, in order.
    """

    def __init__(self, config, size=1 << 24):
        self.config, self.base, self.size = config, 0, size
        self.memory = np.random.default_rng(5).integers(0, 256, size, np.uint8)
        self.bus_errors, self.log, self.allowed = set(), [], []
        self.stats = {"read_beats": 0, "write_beats": 0}
        self.reset()

    def reset(self):
        self.values = {r.name: r.reset for r in REGISTERS.values()}
        self.values["CONFIG_HASH"] = self.config.hash
        assert self.values["ID"] == ID_VALUE

    def close(self):
        pass

    def guard(self, ranges):
        self.allowed = list(ranges)

    def mem_write(self, address, data):
        data = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self.memory[address:address + data.size] = data

    def mem_read(self, address, size):
        return self.memory[address:address + size].copy()

    def csr_read(self, address):
        return self.values[ADDRESSES[address].name]

    def csr_write(self, address, value):
        register = ADDRESSES[address]
        if register.name == "IRQ_STATUS":
            self.values["IRQ_STATUS"] &= ~value
        elif register.name == "COMMAND":
            if value & 1 and self.values["STATUS"] & 2:
                self.values.update(STATUS=0, ERROR_CODE=0)
            if value & 4:
                self.values["STICKY"] = 0
        else:
            assert register.access == "rw", f"{register.name} is read-only"
            self.values[register.name] = value

    @property
    def irq(self):
        return bool(self.values["IRQ_STATUS"]) and bool(self.values["CONTROL"] & 2)

    def _pair(self, name):
        return self.values[f"{name}_LO"] | self.values[f"{name}_HI"] << 32

    def run(self, cycles):
        head = self.values["QUEUE_HEAD"]
        halted = self.values["STATUS"] & 2
        if self.irq or halted or head == self.values["QUEUE_TAIL"] or not self.values["CONTROL"] & 1:
            return cycles
        at = self._pair("QUEUE_BASE") + (head & self.values["QUEUE_MASK"]) * DESCRIPTOR_BYTES
        fields = decode(self._read(at, DESCRIPTOR_BYTES))
        try:
            self._do(fields)
        except _Fault as fault:
            self.values.update(ERROR_CODE=fault.code, ERROR_TAG=fields["tag"], ERROR_INDEX=head,
                               ERROR_ADDR_LO=fault.address & 0xFFFFFFFF, ERROR_ADDR_HI=fault.address >> 32, STATUS=2)
            self.values["IRQ_STATUS"] |= 2
        for name in ("QUEUE_HEAD", "QUEUE_DONE"):
            self.values[name] = head + 1
        return 1

    def _do(self, fields):
        self.log.append((Opcode(fields["opcode"]).name if fields["opcode"] in list(Opcode) else "?", fields["tag"]))
        if fields["opcode"] == Opcode.INTERRUPT:
            self.values["IRQ_STATUS"] |= 1
        elif fields["opcode"] == Opcode.VQ_LINEAR:
            if fields["codebooks"] == 0:
                raise _Fault(ErrorCode.BAD_DESCRIPTOR, list(FIELDS).index("codebooks"))
            for token, y in enumerate(play(self._read, fields, self.config)):
                width = np.uint32 if fields["out_fp32"] else np.uint16
                self._write(fields["y_addr"] + token * fields["y_stride"], np.array(y, width).view(np.uint8))
        else:
            assert fields["opcode"] == Opcode.FENCE

    def _read(self, address, size):
        first, last = self._pair("READ_FIRST"), self._pair("READ_LAST")
        if size and not first <= address <= address + size - 1 <= last:
            raise _Fault(ErrorCode.READ_WINDOW, address)
        for bad in self.bus_errors:
            if address <= bad < address + size:
                raise _Fault(ErrorCode.READ_BUS, bad)
        return bytes(self.memory[address:address + size])

    def _write(self, address, data):
        first, last = self._pair("WRITE_FIRST"), self._pair("WRITE_LAST")
        if not first <= address <= address + len(data) - 1 <= last:
            raise _Fault(ErrorCode.WRITE_WINDOW, address)
        assert any(a <= address and address + len(data) - 1 <= b for a, b in self.allowed)
        self.memory[address:address + len(data)] = data


class _Fault(Exception):
    def __init__(self, code, address):
        self.code, self.address = code, address
