"""Errors: who is at fault, when to stop, and how to be ready for the next job."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..abi.descriptor import FIELDS
from ..abi.registers import ErrorCode
from ..dma import ERROR_BITS
from ..emit import Block
from .job import JOB_SLOTS, SLOT_BITS, name_of

__all__ = ["Supervisor"]


class Supervisor(Block):
    """Owns the ring's head, watches for errors and for silence, and brings the engine to a halt.

    An error belongs to a job. Jobs before it finish first; then everything is flushed, the head is set behind
    the job at fault, and the queue stays halted until ``resume``. If memory never answers, ``fatal`` shows
    until it does.

    A report is noted in 1 cycle; ``flush`` rises 1 cycle after the job at fault is the oldest and its error noted, and
    stays for ``drain`` + 2 cycles or until memory is idle, whichever is longer. ``resume`` acts in the next cycle.

    Members
    -------
    advance, head : the ring's head counts descriptors disposed of.
    read_err_*, write_err_* : reports of the DMA engines; ``descriptor``: the read error is of the descriptor client.
    audit_err_*, codebook_err_* : reports that ``row_beats``, or ``codebook_beats``, of a job's descriptor is wrong.
    bad, bad_field, bad_tag : the fetcher stopped at a bad descriptor.
    empty, oldest_slot, oldest_index, oldest_tag : of the job table.
    busy, progress, watchdog : silence is a time of ``watchdog`` cycles in which ``busy`` and nothing moves
        (acted upon 1 cycle later).
    idle : no AXI transaction is in flight. clear : reset the datapath. flush : flush the DMA engines.
    resume, halted, fatal, error_irq, code, tag, index, addr : to and from the registers.
    """

    def __init__(self, config):
        self.config = config
        address = config.axi_addr_bits
        super().__init__({
            "advance": In(1), "head": Out(32),
            "read_err_valid": In(1), "read_err_code": In(ERROR_BITS), "read_err_addr": In(address),
            "read_err_job": In(SLOT_BITS), "descriptor": In(1),
            "write_err_valid": In(1), "write_err_code": In(ERROR_BITS), "write_err_addr": In(address),
            "write_err_job": In(SLOT_BITS),
            "audit_err_valid": In(1), "audit_err_job": In(SLOT_BITS),
            "codebook_err_valid": In(1), "codebook_err_job": In(SLOT_BITS),
            "bad": In(1), "bad_field": In(8), "bad_tag": In(32),
            "empty": In(1), "oldest_slot": In(SLOT_BITS), "oldest_index": In(32), "oldest_tag": In(32),
            "busy": In(1), "progress": In(1), "watchdog": In(32),
            "idle": In(1), "clear": Out(1), "flush": Out(1),
            "resume": In(1), "halted": Out(1), "fatal": Out(1), "error_irq": Out(1),
            "code": Out(32), "tag": Out(32), "index": Out(32), "addr": Out(64),
        })

    @property
    def module_name(self):
        return name_of("supervisor", self.config)

    def elaborate(self, platform):
        m = Module()
        silent = self._watch(m)
        job_error, job_code, job_addr = self._job_errors(m)
        fetch_error, fetch_addr = self._fetch_error(m)
        # In the first two cycles of clear the fetcher may still dispose of a descriptor: that one is fetched again.
        with m.If(self.advance & ~self.clear):
            m.d.sync += self.head.eq(self.head + 1)
        with m.FSM() as fsm:
            m.d.comb += [self.flush.eq(fsm.ongoing("FLUSH")), self.halted.eq(fsm.ongoing("HALTED")),
                         self.clear.eq(self.flush | self.halted)]
            with m.State("RUN"):
                with m.If(~self.empty & (job_error | silent)):
                    m.d.sync += [
                        self.code.eq(Mux(job_error, job_code, ErrorCode.WATCHDOG)),
                        self.addr.eq(Mux(job_error, job_addr, 0)),
                        self.tag.eq(self.oldest_tag), self.index.eq(self.oldest_index),
                        self.head.eq(self.oldest_index + 1),
                    ]
                    m.next = "FLUSH"
                with m.Elif(self.empty & (fetch_error | self.bad | silent)):
                    m.d.sync += [
                        self.code.eq(Mux(fetch_error, self.fetch_code,
                                         Mux(self.bad, ErrorCode.BAD_DESCRIPTOR, ErrorCode.WATCHDOG))),
                        self.addr.eq(Mux(fetch_error, fetch_addr, Mux(self.bad, self.bad_field, 0))),
                        self.tag.eq(Mux(self.bad, self.bad_tag, 0)), self.index.eq(self.head),
                        self.head.eq(self.head + 1),
                    ]
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                # At least as long as anything in the datapath needs to run out.
                with m.If(self.settled & (self.timer >= self.drain) & self.idle):
                    m.d.comb += self.error_irq.eq(1)
                    m.d.sync += self.fatal.eq(0)
                    m.next = "HALTED"
                with m.Elif(self.settled & (self.timer >= self.drain) & (self.timer >= self.watchdog)
                            & (self.watchdog != 0) & ~self.fatal):
                    m.d.sync += self.fatal.eq(1)
                    m.d.comb += self.error_irq.eq(1)
            with m.State("HALTED"):
                with m.If(self.resume):
                    m.d.sync += self.code.eq(ErrorCode.NONE)
                    m.next = "RUN"
        return m

    #: Cycles of flushing: more than the array, the epilogue and the DMA's own stages hold.
    drain = 512

    def _watch(self, m):
        """Time without progress, or in the flush; returns the register that the watchdog bites."""
        self.timer = Signal(33)
        silent = Signal()
        flushing = self.settled = Signal(name="flushing")
        m.d.sync += flushing.eq(self.flush)
        m.d.sync += silent.eq(self.busy & ~self.progress & (self.timer >= self.watchdog) & (self.watchdog != 0)
                              & ~self.flush & ~flushing)
        with m.If((self.flush != flushing) | (~self.flush & (self.progress | ~self.busy))):
            m.d.sync += self.timer.eq(0)
        with m.Elif(~self.timer[-1]):
            m.d.sync += self.timer.eq(self.timer + 1)
        return silent

    def _job_errors(self, m):
        """The first error of each job slot; returns that of the oldest job."""
        width = self.config.axi_addr_bits
        seen = Signal(JOB_SLOTS)
        codes = Array(Signal(ERROR_BITS, name=f"code_{i}", reset_less=True) for i in range(JOB_SLOTS))
        addrs = Array(Signal(width, name=f"addr_{i}", reset_less=True) for i in range(JOB_SLOTS))
        reads = self.read_err_valid & ~self.descriptor
        for valid, slot, code, addr in (
                (self.audit_err_valid, self.audit_err_job, ErrorCode.BAD_DESCRIPTOR, list(FIELDS).index("row_beats")),
                (self.codebook_err_valid, self.codebook_err_job, ErrorCode.BAD_DESCRIPTOR,
                 list(FIELDS).index("codebook_beats")),
                (self.write_err_valid, self.write_err_job, self.write_err_code, self.write_err_addr),
                (reads, self.read_err_job, self.read_err_code, self.read_err_addr)):
            with m.If(valid & ~seen.bit_select(slot, 1)):
                m.d.sync += [seen.bit_select(slot, 1).eq(1), codes[slot].eq(code), addrs[slot].eq(addr)]
        with m.If(self.clear):
            m.d.sync += seen.eq(0)
        return seen.bit_select(self.oldest_slot, 1), codes[self.oldest_slot], addrs[self.oldest_slot]

    def _fetch_error(self, m):
        """An error of the descriptor client stays until the flush."""
        seen, addr = Signal(), Signal(self.config.axi_addr_bits, reset_less=True)
        self.fetch_code = Signal(ERROR_BITS, reset_less=True)
        with m.If(self.read_err_valid & self.descriptor & ~seen):
            m.d.sync += [seen.eq(1), addr.eq(self.read_err_addr), self.fetch_code.eq(self.read_err_code)]
        with m.If(self.clear):
            m.d.sync += seen.eq(0)
        return seen, addr
