"""The control and status registers behind the AXI4-Lite slave: one table for hardware, software and docs."""

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["ARRAY_SIDE", "COUNTERS", "ErrorCode", "ID_VALUE", "REGISTERS", "REGISTER_BYTES", "RESULT_SIDE", "Register"]

#: Bytes of register space (10 address bits).
REGISTER_BYTES = 1024
#: ID register: "EVA" and the version of this map.
ID_VALUE = 0x45564102


class ErrorCode(IntEnum):
    """ERROR_CODE: why a job ended."""

    NONE = 0
    BAD_DESCRIPTOR = 1
    READ_BUS = 2
    WRITE_BUS = 3
    READ_WINDOW = 4
    WRITE_WINDOW = 5
    WATCHDOG = 6


@dataclass(frozen=True)
class Register:
    """A 32-bit register. ``access``: ro (hardware writes), rw (host writes), w1 (writing ones acts; reads 0)."""

    name: str
    address: int
    access: str
    help: str
    reset: int = 0
    #: ((name, lsb, width, help), ...)
    fields: tuple = ()


REGISTERS = {r.name: r for r in (
    Register("ID", 0x000, "ro", "magic and version of this register map", ID_VALUE),
    Register("CONFIG_HASH", 0x004, "ro", "hash of the configuration the hardware was made from"),
    Register("CONTROL", 0x008, "rw", "run control", 0, (
        ("enable", 0, 1, "fetch and run descriptors while 1"),
        ("irq_enable", 1, 1, "let IRQ_STATUS raise the interrupt"))),
    Register("COMMAND", 0x00C, "w1", "acts when written", 0, (
        ("resume", 0, 1, "after an error: clear it and go on with the next descriptor"),
        ("clear_counters", 1, 1, "zero the performance counters"),
        ("clear_sticky", 2, 1, "zero STICKY"))),
    Register("STATUS", 0x010, "ro", "what the engine is doing", 0, (
        ("busy", 0, 1, "a descriptor is being fetched or a job is running"),
        ("halted", 1, 1, "an error has stopped the queue; see ERROR_*"),
        ("fatal", 2, 1, "the memory does not answer; clears if it does, else only a reset helps"))),
    Register("IRQ_STATUS", 0x014, "rw", "pending interrupts; write ones to clear", 0, (
        ("job", 0, 1, "an INTERRUPT descriptor was reached"),
        ("error", 1, 1, "the engine halted"))),
    Register("STICKY", 0x018, "ro", "seen in any result since clear_sticky", 0, (
        ("oc_overflow", 0, 1, "a finite OC value overflowed FP16"),
        ("y_overflow", 1, 1, "a finite y overflowed its format"),
        ("y_nan", 2, 1, "a y was NaN"))),
    Register("QUEUE_BASE_LO", 0x020, "rw", "address of the descriptor ring, 128-byte aligned"),
    Register("QUEUE_BASE_HI", 0x024, "rw", "its upper 32 bits"),
    Register("QUEUE_MASK", 0x028, "rw", "descriptors in the ring, minus one (a power of two, minus one)"),
    Register("QUEUE_TAIL", 0x02C, "rw", "free-running count of descriptors the host has written"),
    Register("QUEUE_HEAD", 0x030, "ro", "free-running count of descriptors fetched"),
    Register("QUEUE_DONE", 0x034, "ro", "free-running count of descriptors finished"),
    Register("QUEUE_ARRAY", 0x038, "ro", "the same of those whose jobs the array has built"),
    Register("QUEUE_RESULT", 0x03C, "ro", "the same of those whose results have all been made, if not all written"),
    Register("READ_FIRST_LO", 0x040, "rw", "reads are allowed from this address"),
    Register("READ_FIRST_HI", 0x044, "rw", "its upper 32 bits"),
    Register("READ_LAST_LO", 0x048, "rw", "to this one (inclusive)", 0xFFFFFFFF),
    Register("READ_LAST_HI", 0x04C, "rw", "its upper 32 bits", 0xFFFFFFFF),
    Register("WRITE_FIRST_LO", 0x050, "rw", "writes are allowed from this address"),
    Register("WRITE_FIRST_HI", 0x054, "rw", "its upper 32 bits"),
    Register("WRITE_LAST_LO", 0x058, "rw", "to this one (inclusive)", 0xFFFFFFFF),
    Register("WRITE_LAST_HI", 0x05C, "rw", "its upper 32 bits", 0xFFFFFFFF),
    Register("WATCHDOG", 0x060, "rw", "cycles without a beat or result before a job is ended; 0: never", 1 << 20),
    Register("ERROR_CODE", 0x070, "ro", "why the engine halted: 1 bad descriptor, 2 read bus error, 3 write bus error, "
             "4 read outside the window, 5 write outside the window, 6 watchdog"),
    Register("ERROR_TAG", 0x074, "ro", "tag of the job at fault"),
    Register("ERROR_INDEX", 0x078, "ro", "free-running count of its descriptor"),
    Register("ERROR_ADDR_LO", 0x07C, "ro", "failing address, or the failing field's number for a bad descriptor"),
    Register("ERROR_ADDR_HI", 0x080, "ro", "its upper 32 bits"),
    # The counters: 32 bits, they wrap. Those of RESULT_SIDE add up to CYCLES_BUSY, and so do those of ARRAY_SIDE.
    Register("CYCLES_BUSY", 0x100, "ro", "cycles in which STATUS.busy was 1; all counters wrap at 2^32"),
    Register("CYCLES_EU", 0x104, "ro", "cycles in which an index row entered the epilogue units"),
    Register("CYCLES_DRAIN", 0x108, "ro", "cycles in which results of an INT8 GEMM left the accumulators"),
    Register("CYCLES_TURN", 0x10C, "ro", "cycles in which a pass (a block of INT8 sums) was begun, or short tiles kept "
             "their distance"),
    Register("STALL_ROW", 0x110, "ro", "cycles the epilogue units waited for an index row"),
    Register("STALL_OC", 0x114, "ro", "cycles they waited for an output codebook, or the GEMM drain for a block of "
             "sums"),
    Register("STALL_SCALE", 0x118, "ro", "cycles either waited for scales, biases or column parameters"),
    Register("STALL_OUT", 0x11C, "ro", "cycles either waited for room for outputs"),
    Register("STALL_WRITE", 0x120, "ro", "cycles without a job to make results of, while outputs were written or not "
             "yet answered"),
    Register("STALL_FETCH", 0x124, "ro", "cycles without a job to make results of, while a descriptor was fetched (or "
             "an error flushed)"),
    Register("CYCLES_ARRAY", 0x128, "ro", "cycles in which a codebook entry or a row of activations went to the "
             "array"),
    Register("WAIT_OPERAND", 0x12C, "ro", "cycles the array waited for codebooks, x, weights or activations"),
    Register("WAIT_LOAD", 0x130, "ro", "cycles it waited while its stationary operands were loaded, or settled"),
    Register("WAIT_BUFFER", 0x134, "ro", "cycles it waited for a free output codebook or accumulator"),
    Register("WAIT_SWITCH", 0x138, "ro", "cycles it waited for work of the other number format to leave it"),
    Register("WAIT_JOB", 0x13C, "ro", "cycles it had no job"),
    Register("READ_BEATS", 0x140, "ro", "beats read, of descriptors too; a beat is as wide as the data bus"),
    Register("WRITE_BEATS", 0x144, "ro", "beats written"),
    Register("JOBS", 0x148, "ro", "jobs finished"),
)}

#: The performance counters.
COUNTERS = tuple(r.name for r in REGISTERS.values() if r.address >= REGISTERS["CYCLES_BUSY"].address)
#: Each busy cycle is counted once by one of these: what the stage that makes results did, or waited for ...
RESULT_SIDE = ("CYCLES_EU", "CYCLES_DRAIN", "CYCLES_TURN", "STALL_ROW", "STALL_OC", "STALL_SCALE", "STALL_OUT",
               "STALL_WRITE", "STALL_FETCH")
#: ... and once by one of these: what the array did, or waited for.
ARRAY_SIDE = ("CYCLES_ARRAY", "WAIT_OPERAND", "WAIT_LOAD", "WAIT_BUFFER", "WAIT_SWITCH", "WAIT_JOB")
