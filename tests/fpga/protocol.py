"""The protocol as docs/host-link.md tells it, in Python: what a board answers to a request."""

from eva_hw.fpga.link import Command, Status

__all__ = ["REGISTERS", "Protocol"]

#: Bytes of register addresses.
REGISTERS = 1024


class Protocol:
    """A board's memory and registers behind requests.

    Parameters
    ----------
    memory : bytes-like
        Its initial contents.
    identity : bytes
        Payload of the reply to IDENTIFY.

    Attributes
    ----------
    log : list of (address, value)
        Registers written, in order.
    """

    def __init__(self, memory, identity):
        self.memory, self.identity, self.size = bytearray(memory), identity, len(memory)
        self.registers, self.log, self.before = {}, [], None

    @staticmethod
    def void(address):
        """Whether the address holds no register (of this test's register slave)."""
        return address % 64 == 60

    def read_register(self, address):
        """(status, value)."""
        return (Status.BUS_ERROR, 0) if self.void(address) else (Status.OK, self.registers.get(address, 0))

    def write_register(self, address, value):
        """Status."""
        self.registers[address] = value
        return Status.BUS_ERROR if self.void(address) else Status.OK

    def reset(self):
        """Of all but the memory."""

    def answer(self, content):
        """The reply's content to a request's content; None for a frame that was damaged."""
        if content is None:
            return bytes([0x80, 0, Status.BAD_CRC])
        if len(content) < 7:
            return bytes([0x80, 0, Status.BAD_LENGTH])
        command, sequence, address = content[0], content[1], int.from_bytes(content[2:6], "little")
        status, payload = self._do(command, sequence, address, content[6] + 1, content[7:])
        return bytes([command | 0x80, sequence, status]) + payload

    def _do(self, command, sequence, address, count, payload):
        before, self.before = self.before, None
        if command not in (1, 2, 3, 4, 5, 6):
            return Status.BAD_COMMAND, b""
        if command == Command.WRITE_REGISTER and count != 4:
            return Status.BAD_LENGTH, b""
        if command in (2, 3) and address + count > self.size:
            return Status.BAD_ADDRESS, b""
        if command in (4, 5) and (address >= REGISTERS or address % 4):
            return Status.BAD_ADDRESS, b""
        expected = {3: count, 5: 4}.get(command, 0)
        if command == Command.WRITE_MEMORY:  # goes to memory as it comes
            part = payload[:expected]
            self.memory[address:address + len(part)] = part
        if len(payload) != expected:
            return Status.BAD_LENGTH, b""
        return self._act(command, sequence, address, count, payload, before)

    def _act(self, command, sequence, address, count, payload, before):
        if command == Command.IDENTIFY:
            return Status.OK, self.identity
        if command == Command.READ_MEMORY:
            return Status.OK, bytes(self.memory[address:address + count])
        if command == Command.READ_REGISTER:
            status, value = self.read_register(address)
            return status, value.to_bytes(4, "little") if status == Status.OK else b""
        if command == Command.WRITE_REGISTER:
            if before is not None and before[0] == sequence:
                self.before = before
                return before[1], b""
            value = int.from_bytes(payload, "little")
            self.log.append((address, value))
            status = self.write_register(address, value)
            self.before = sequence, status
            return status, b""
        if command == Command.RESET:
            self.reset()
        return Status.OK, b""
