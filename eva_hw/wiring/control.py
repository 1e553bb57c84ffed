"""Registers, errors, descriptors and jobs."""

from amaranth.hdl import Cat, Mux, Signal

from ..control.table import STAGES
from ..emit.connect import connect, join_lite

__all__ = ["ControlWiring"]


class ControlWiring:
    """The blocks that decide what is done: they move no operands."""

    def _wire_registers(self, m):
        csr, supervisor, table = self.csr, self.supervisor, self.table
        sticky = Signal(3)
        join_lite(m, csr.s_axil, self.s_axil)
        busy = Signal()
        m.d.comb += [
            self.irq.eq(csr.irq),
            busy.eq(~supervisor.halted & (self.fetch.busy | ~table.empty | supervisor.flush
                                          | (csr.control[0] & (supervisor.head != csr.queue_tail)))),
            csr.status.eq(Cat(busy, supervisor.halted, supervisor.fatal)),
            csr.sticky.eq(sticky),
            csr.irq_set.eq(Cat(table.irq, supervisor.error_irq)),
            csr.queue_head.eq(supervisor.head),
            csr.error_code.eq(supervisor.code), csr.error_tag.eq(supervisor.tag),
            csr.error_index.eq(supervisor.index),
            csr.error_addr_lo.eq(supervisor.addr[:32]), csr.error_addr_hi.eq(supervisor.addr[32:]),
        ]
        # Picked from among the jobs, and then from among all registers: a cycle late, but in time for any bus.
        for name, waiting, index in (("done", ~table.empty, table.oldest_index),
                                     ("array", table.build_waiting, table.build_index),
                                     ("result", table.sequence_waiting, table.sequence_index)):
            shown = Signal(32, name=f"queue_{name}")
            m.d.sync += shown.eq(Mux(waiting, index, supervisor.head))
            m.d.comb += getattr(csr, f"queue_{name}").eq(shown)
        m.d.sync += sticky.eq(Mux(csr.command[2], 0, sticky)
                              | Cat(self.writer.overflow, self.epilogue.o_overflow | self.drain.o_overflow,
                                    self.epilogue.o_nan | self.drain.o_nan))
        self.busy = busy

    def _wire_supervisor(self, m):
        supervisor, read, write, table, csr = self.supervisor, self.read, self.write, self.table, self.csr
        m.d.comb += [
            supervisor.advance.eq(self.fetch.advance),
            supervisor.bad.eq(self.fetch.bad), supervisor.bad_field.eq(self.fetch.bad_field),
            supervisor.bad_tag.eq(self.fetch.bad_tag),
            supervisor.empty.eq(table.empty), supervisor.oldest_slot.eq(table.oldest_slot),
            supervisor.oldest_index.eq(table.oldest_index), supervisor.oldest_tag.eq(table.oldest_tag),
            supervisor.busy.eq(self.fetch.busy | ~table.empty),
            supervisor.watchdog.eq(csr.watchdog),
            supervisor.idle.eq(read.idle & write.idle),
            supervisor.resume.eq(csr.command[0]),
        ]
        # What comes from far comes a cycle late: no job can end that soon after its error, and a flush is long.
        m.d.sync += [
            supervisor.read_err_valid.eq(read.err_valid), supervisor.read_err_code.eq(read.err_code),
            supervisor.read_err_addr.eq(read.err_addr), supervisor.read_err_job.eq(read.err_job),
            supervisor.descriptor.eq(read.err_client == 0),
            supervisor.write_err_valid.eq(write.err_valid), supervisor.write_err_code.eq(write.err_code),
            supervisor.write_err_addr.eq(write.err_addr), supervisor.write_err_job.eq(write.err_job),
            supervisor.audit_err_valid.eq(self.audit.error), supervisor.audit_err_job.eq(self.audit.error_job),
            supervisor.codebook_err_valid.eq(self.stationary.error),
            supervisor.codebook_err_job.eq(self.stationary.error_job),
            read.flush.eq(supervisor.flush), write.flush.eq(supervisor.flush),
            supervisor.progress.eq(
                read.beat | write.beat | write.done | self.entries.active | self.feeder.active | self.drain.o_valid
                | self.sequencer.active | self.fetch.advance),
        ]

    def _wire_fetch(self, m):
        fetch, csr, table, read = self.fetch, self.csr, self.table, self.read
        m.d.comb += [
            fetch.run.eq(csr.control[0]),
            fetch.base.eq(Cat(csr.queue_base_lo, csr.queue_base_hi)), fetch.mask.eq(csr.queue_mask),
            fetch.head.eq(self.supervisor.head), fetch.tail.eq(csr.queue_tail),
            fetch.beat_valid.eq(read.descriptor_valid), fetch.data.eq(read.data),
            table.push.eq(fetch.push), table.job.eq(fetch.job), fetch.ready.eq(table.ready),
            table.interrupt.eq(fetch.interrupt),
        ]
        connect(m, fetch.cmd, read.descriptor_cmd)

    def _wire_jobs(self, m):
        """Each stage has a block for VQ jobs and one for GEMM jobs; the job at hand says which of them works."""
        table = self.table
        stages = {"operands": (self.operands, None), "rows": (self.rows, self.gemm_streamer),
                  "build": (self.stationary, self.feeder), "sequence": (self.sequencer, self.drain),
                  "write": (self.write_back, self.write_back)}
        for name in STAGES:
            valid, job, slot, step = (getattr(table, f"{name}_{part}") for part in ("valid", "job", "slot", "next"))
            vq, gemm = stages[name]
            for block in {id(b): b for b in (vq, gemm) if b is not None}.values():
                mine = 1 if vq is gemm else job.gemm if block is gemm else ~job.gemm
                m.d.comb += [block.valid.eq(valid & mine), block.job.eq(job)]
                if hasattr(block, "slot"):
                    m.d.comb += block.slot.eq(slot)
            # A GEMM has no codebooks or x to load ahead.
            m.d.comb += step.eq(vq.next | (valid & job.gemm) if gemm is None
                                else Mux(job.gemm, gemm.next, vq.next))
        m.d.comb += [self.operands.alone.eq(table.alone), self.gemm_streamer.alone.eq(table.rows_alone)]
