"""The accelerator: wiring of the blocks, nothing more."""

from amaranth.hdl import Cat, Module, Mux, ResetSignal, Signal
from amaranth.lib.wiring import In, Out

from .abi.registers import REGISTER_BYTES
from .array import SystolicArray
from .codebook import OcBanks, OcTag, OcWriter
from .config import WORD_BITS
from .control.counters import COUNTERS, Counters
from .control.audit import RowAudit
from .control.csr import CsrBlock
from .control.entries import EntryStreamer
from .control.fetch import DescriptorFetcher
from .control.job import name_of
from .control.operands import OperandLoader
from .control.rows import RowStreamer
from .control.sequencer import Sequencer
from .control.stationary import PassLayout, StationaryLoader
from .control.supervisor import Supervisor
from .control.table import STAGES, JobTable
from .control.writeback import WriteBack
from .dma import Axi4, AxiLite, AxiReadDma, AxiWriteDma, FlopQueue, ReadClient, join
from .emit import Block, place
from .emit.connect import connect, fields, join_lite, merge, split
from .epilogue import Epilogue
from .feed import BeatFifo, OutputPacker, RowAssembler, ScaleUnpacker
from .gemm import (
    FeederTiming, GemmAccumulator, GemmDrain, GemmFeeder, GemmPacker, GemmParameters, GemmStreamer, GemmTag, WordStream,
)
from .gemm.feeder import WEIGHT_WORD_BITS
from .sram import WideBuffer

__all__ = ["Top"]

#: Passes that the array may be ahead of the epilogue in the pass queue: two OC buffers and one being loaded.
PASS_QUEUE = 4


class Top(Block):
    """EVA.

    Members
    -------
    m_axi : AXI4 master to memory.
    s_axil : AXI4-Lite slave, registers.
    irq : interrupt, level.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "m_axi": Out(Axi4(addr_bits=config.axi_addr_bits, data_bits=config.axi_data_bits)),
            "s_axil": In(AxiLite(addr_bits=(REGISTER_BYTES - 1).bit_length())),
            "irq": Out(1),
        })

    @property
    def module_name(self):
        return name_of("top", self.config)

    @property
    def value_beats(self):
        """Beats of scales (and of biases) fetched ahead: half of them last while a burst waits behind index rows."""
        return max(32, 16384 // self.config.axi_data_bits)

    @property
    def clients(self):
        """Who reads memory, most urgent first."""
        return (ReadClient("descriptor"), ReadClient("codebook"), ReadClient("x"),
                ReadClient("scale", self.value_beats), ReadClient("bias", self.value_beats),
                ReadClient("activation", self.config.activation_fifo_beats),
                ReadClient("weight", self.config.weight_fifo_beats),
                ReadClient("row", self.config.row_fifo_beats))

    def elaborate(self, platform):
        m = Module()
        self._place(m)
        self._wire_registers(m)
        self._wire_supervisor(m)
        self._wire_fetch(m)
        self._wire_jobs(m)
        self._wire_memory(m)
        self._wire_operands(m)
        self._wire_array(m)
        self._wire_feed(m)
        self._wire_epilogue(m)
        self._wire_outputs(m)
        self._wire_gemm_feed(m)
        self._wire_gemm_results(m)
        self._wire_counters(m)
        return m

    # Blocks ---------------------------------------------------------------------------------

    def _place(self, m):
        config = self.config
        clear = Signal()
        always = lambda name, block: place(m, name, block)  # noqa: E731
        #: Blocks of the datapath are reset by the supervisor's clear too.
        reset = ResetSignal() | clear
        cleared = lambda name, block: place(m, name, block, rst=reset)  # noqa: E731
        self.csr = always("csr", CsrBlock(config))
        self.supervisor = always("supervisor", Supervisor(config))
        self.counters = always("counters", Counters())
        self.read = always("read_dma", AxiReadDma(config, self.clients))
        self.write = always("write_dma", AxiWriteDma(config))
        self.fetch = cleared("fetcher", DescriptorFetcher(config))
        self.table = cleared("job_table", JobTable(config))
        self.operands = cleared("operand_loader", OperandLoader(config))
        self.rows = cleared("row_streamer", RowStreamer(config))
        self.codebooks = cleared("codebook_buffer", WideBuffer(
            config.axi_data_bits, config.rows * 16, 2 * config.codebook_words * WORD_BITS))
        self.x = cleared("x_buffer", WideBuffer(
            config.axi_data_bits, WORD_BITS, 2 * config.batch_lanes * config.x_beats * config.axi_data_bits))
        self.array = cleared("array", SystolicArray(config, max(OcTag(config).size, GemmTag(config).size)))
        self.stationary = cleared("stationary_loader", StationaryLoader(config))
        self.entries = cleared("entry_streamer", EntryStreamer(
            config, reload=self.array.swap_latency(config.groups - 1, config.fp_cols - 1),
            load=self.array.load_latency, drain=self.array.latency + OcWriter.latency + 1))
        self.pass_queue = cleared("pass_queue", FlopQueue(PASS_QUEUE, PassLayout(config).size))
        self.writer = cleared("oc_writer", OcWriter(config))
        self.banks = cleared("oc_banks", OcBanks(config))
        self.epilogue = cleared("epilogue", Epilogue(config))
        self.sequencer = cleared("sequencer", Sequencer(
            config, latency=self.epilogue.latency, hazard=self.epilogue.hazard))
        self.row_fifo = cleared("row_fifo", BeatFifo(config.row_fifo_beats, config.axi_data_bits))
        self.row_assembler = cleared("row_assembler", RowAssembler(config))
        self.audit = cleared("row_audit", RowAudit())
        self.value_fifos = {n: cleared(f"{n}_fifo", BeatFifo(self.value_beats, config.axi_data_bits))
                            for n in ("scale", "bias")}
        self.unpackers = {n: cleared(f"{n}_unpacker", ScaleUnpacker(config)) for n in ("scale", "bias")}
        self.packer = cleared("output_packer", OutputPacker(config))
        self.write_back = cleared("write_back", WriteBack(config))
        self._place_gemm(cleared)
        m.d.comb += clear.eq(self.supervisor.clear)

    def _place_gemm(self, cleared):
        config = self.config
        self.gemm_streamer = cleared("gemm_streamer", GemmStreamer(config))
        self.gemm_fifos = {n: cleared(f"{n}_fifo", BeatFifo(beats, config.axi_data_bits))
                           for n, beats in (("activation", config.activation_fifo_beats),
                                            ("weight", config.weight_fifo_beats))}
        self.gemm_words = {n: cleared(f"{n}_words", WordStream(config.axi_data_bits, bits))
                           for n, bits in (("activation", config.rows * 8), ("weight", WEIGHT_WORD_BITS))}
        self.accumulator = cleared("gemm_accumulator", GemmAccumulator(config))
        self.feeder = cleared("gemm_feeder", GemmFeeder(
            config, FeederTiming.of(config, self.array, self.accumulator.hazard)))
        self.parameters = cleared("gemm_parameters", GemmParameters(config))
        self.drain = cleared("gemm_drain", GemmDrain(config))
        self.gemm_packer = cleared("gemm_packer", GemmPacker(config))

    # Control --------------------------------------------------------------------------------

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
            csr.queue_done.eq(Mux(table.empty, supervisor.head, table.oldest_index)),
            csr.error_code.eq(supervisor.code), csr.error_tag.eq(supervisor.tag),
            csr.error_index.eq(supervisor.index),
            csr.error_addr_lo.eq(supervisor.addr[:32]), csr.error_addr_hi.eq(supervisor.addr[32:]),
        ]
        m.d.sync += sticky.eq(Mux(csr.command[2], 0, sticky)
                              | Cat(self.writer.overflow, self.epilogue.o_overflow | self.drain.o_overflow,
                                    self.epilogue.o_nan | self.drain.o_nan))
        self.busy = busy

    def _wire_supervisor(self, m):
        supervisor, read, write, table, csr = self.supervisor, self.read, self.write, self.table, self.csr
        m.d.comb += [
            supervisor.advance.eq(self.fetch.advance),
            supervisor.read_err_valid.eq(read.err_valid), supervisor.read_err_code.eq(read.err_code),
            supervisor.read_err_addr.eq(read.err_addr), supervisor.read_err_job.eq(read.err_job),
            supervisor.descriptor.eq(read.err_client == 0),
            supervisor.write_err_valid.eq(write.err_valid), supervisor.write_err_code.eq(write.err_code),
            supervisor.write_err_addr.eq(write.err_addr), supervisor.write_err_job.eq(write.err_job),
            supervisor.audit_err_valid.eq(self.audit.error), supervisor.audit_err_job.eq(self.audit.error_job),
            supervisor.bad.eq(self.fetch.bad), supervisor.bad_field.eq(self.fetch.bad_field),
            supervisor.bad_tag.eq(self.fetch.bad_tag),
            supervisor.empty.eq(table.empty), supervisor.oldest_slot.eq(table.oldest_slot),
            supervisor.oldest_index.eq(table.oldest_index), supervisor.oldest_tag.eq(table.oldest_tag),
            supervisor.busy.eq(self.fetch.busy | ~table.empty),
            supervisor.progress.eq(read.beat | write.beat | self.write.done | self.entries.active
                                   | self.feeder.active | self.drain.o_valid | self.sequencer.active | self.fetch.advance),
            supervisor.watchdog.eq(csr.watchdog),
            supervisor.idle.eq(read.idle & write.idle),
            supervisor.resume.eq(csr.command[0]),
            read.flush.eq(supervisor.flush), write.flush.eq(supervisor.flush),
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

    # Memory ---------------------------------------------------------------------------------

    def _wire_memory(self, m):
        csr, read, write = self.csr, self.read, self.write
        join(m, self.m_axi, read.m_axi)
        join(m, self.m_axi, write.m_axi)
        m.d.comb += [
            read.win_first.eq(Cat(csr.read_first_lo, csr.read_first_hi)),
            read.win_last.eq(Cat(csr.read_last_lo, csr.read_last_hi)),
            write.win_first.eq(Cat(csr.write_first_lo, csr.write_first_hi)),
            write.win_last.eq(Cat(csr.write_last_lo, csr.write_last_hi)),
        ]
        connect(m, self.operands.codebook_cmd, read.codebook_cmd)
        connect(m, self.operands.x_cmd, read.x_cmd)
        connect(m, self.rows.row_cmd, read.row_cmd)
        connect(m, self.rows.bias_cmd, read.bias_cmd)
        connect(m, self.gemm_streamer.activation_cmd, read.activation_cmd)
        connect(m, self.gemm_streamer.weight_cmd, read.weight_cmd)
        merge(m, self.table.rows_job.gemm, self.rows.scale_cmd, self.gemm_streamer.scale_cmd, read.scale_cmd)

    def _wire_operands(self, m):
        operands, read = self.operands, self.read
        m.d.comb += [
            operands.codebook_valid.eq(read.codebook_valid), operands.codebook_last.eq(read.codebook_last),
            operands.x_valid.eq(read.x_valid), operands.x_last.eq(read.x_last),
            operands.release.eq(self.entries.release),
            self.codebooks.w_en.eq(read.codebook_valid), self.codebooks.w_addr.eq(operands.codebook_addr),
            self.codebooks.w_data.eq(read.data),
            self.x.w_en.eq(read.x_valid), self.x.w_addr.eq(operands.x_addr), self.x.w_data.eq(read.data),
        ]

    # Datapath -------------------------------------------------------------------------------

    def _wire_array(self, m):
        array, entries, stationary, operands, feeder = (
            self.array, self.entries, self.stationary, self.operands, self.feeder)
        connect(m, stationary.part, entries.part)
        m.d.comb += [
            stationary.operands_ready.eq(operands.ready),
            stationary.x_token.eq(operands.x_token), stationary.x_beat.eq(operands.x_beat),
            stationary.may_load.eq(entries.may_load & feeder.may_load), entries.hold.eq(feeder.owns),
            self.x.r_en.eq(stationary.x_en), self.x.r_addr.eq(stationary.x_addr),
            self.codebooks.r_en.eq(entries.r_en), self.codebooks.r_addr.eq(entries.r_addr),
            entries.r_data.eq(self.codebooks.r_data),
            array.fp16.eq(~feeder.owns), array.words_log2.eq(entries.words_log2), array.exponent.eq(entries.exponent),
            array.ld_en.eq(stationary.ld_en | feeder.ld_en),
            array.ld_group.eq(Mux(feeder.ld_en, feeder.ld_group, stationary.ld_group)),
            array.ld_col.eq(Mux(feeder.ld_en, feeder.ld_col, stationary.ld_col)),
            # FP16 operands use the low half of each row's 32 stationary bits.
            *(array.ld_data.word_select(i, 32).eq(
                Mux(feeder.ld_en, feeder.ld_data.word_select(i, 32), self.x.r_data.word_select(i, 16)))
              for i in range(WORD_BITS // 16)),
            array.i_valid.eq(entries.a_valid | feeder.a_valid), array.i_swap.eq(entries.a_swap | feeder.a_swap),
            array.i_a.eq(Mux(feeder.a_valid, feeder.a_data, entries.a_data)),
            array.i_tag.eq(Mux(feeder.a_valid, feeder.a_tag.as_value(), entries.a_tag.as_value())),
            self.writer.words_log2.eq(entries.words_log2),
            self.writer.i_valid.eq(array.oc_valid),
            self.writer.i_tag.eq(fields(array.oc_tag, array.tag_bits, OcTag(self.config).size)),
            self.writer.i_data.eq(array.oc_data), self.writer.i_overflow.eq(array.oc_overflow),
            self.banks.w_valid.eq(self.writer.o_valid), self.banks.w_tag.eq(self.writer.o_tag),
            self.banks.w_data.eq(self.writer.o_data),
            self.sequencer.oc_done.eq(self.writer.pass_done), entries.oc_free.eq(self.sequencer.oc_free),
        ]
        connect(m, stationary.pass_info, self.pass_queue.i)
        connect(m, self.pass_queue.o, self.sequencer.pass_info)

    def _wire_feed(self, m):
        sequencer, drain = self.sequencer, self.drain
        feeds = {"row": (self.row_fifo, self.row_assembler), "bias": (self.value_fifos["bias"], self.unpackers["bias"]),
                 "scale": (self.value_fifos["scale"], self.unpackers["scale"]),
                 **{n: (self.gemm_fifos[n], self.gemm_words[n]) for n in self.gemm_fifos}}
        for name, (fifo, unit) in feeds.items():
            m.d.comb += [
                fifo.i_valid.eq(getattr(self.read, f"{name}_valid")), fifo.i_data.eq(self.read.data),
                getattr(self.read, f"{name}_pop").eq(fifo.o.valid & fifo.o.ready),
            ]
            connect(m, fifo.o, unit.i)
        connect(m, self.row_assembler.o, sequencer.row)
        connect(m, self.unpackers["bias"].o, sequencer.bias)
        split(m, self.table.sequence_job.gemm, self.unpackers["scale"].o, sequencer.scale, drain.scale)
        m.d.comb += [
            self.audit.valid.eq(sequencer.valid), self.audit.row_beats.eq(sequencer.job.row_beats),
            self.audit.slot.eq(self.table.sequence_slot), self.audit.next.eq(sequencer.next),
            self.audit.pop.eq(self.read.row_pop), self.audit.used.eq(self.row_assembler.used),
            self.row_assembler.more.eq(sequencer.more), self.row_assembler.pass_start.eq(sequencer.pass_start),
            self.row_assembler.pass_blocks.eq(sequencer.pass_blocks),
            self.unpackers["bias"].start.eq(sequencer.value_start),
            self.unpackers["scale"].start.eq(sequencer.value_start | drain.scale_start),
        ]

    def _wire_epilogue(self, m):
        epilogue, sequencer, banks = self.epilogue, self.sequencer, self.banks
        for name in ("valid", "first", "last", "addr", "buffer", "blocks", "index", "scale", "bias", "exponent",
                     "fp32", "tokens"):
            m.d.comb += getattr(epilogue, f"i_{name}").eq(getattr(sequencer, f"e_{name}"))
        m.d.comb += [
            banks.r_en.eq(epilogue.r_en), banks.r_buffer.eq(epilogue.r_buffer), banks.r_index.eq(epilogue.r_index),
            epilogue.r_data.eq(banks.r_data),
        ]

    def _wire_outputs(self, m):
        packer, sequencer, write_back, write = self.packer, self.sequencer, self.write_back, self.write
        gemm, other = self.table.write_job.gemm, self.gemm_packer
        m.d.comb += [
            packer.i_valid.eq(self.epilogue.o_valid), packer.i_y.eq(self.epilogue.o_y),
            packer.i_fp32.eq(sequencer.y_fp32), packer.i_end.eq(sequencer.y_end),
            packer.reserve.eq(sequencer.reserve), sequencer.chunk_free.eq(packer.chunk_free),
            packer.rd_token.eq(write_back.rd_token), write_back.done.eq(write.done),
            *(p.rd_beat.eq(write_back.rd_beat) for p in (packer, other)),
            *(p.rd_en.eq(write_back.rd_en & mine) for p, mine in ((packer, ~gemm), (other, gemm))),
            *(p.chunk_done.eq(write_back.chunk_done & mine) for p, mine in ((packer, ~gemm), (other, gemm))),
            write_back.rd_data.eq(Mux(gemm, other.rd_data, packer.rd_data)),
        ]
        merge(m, gemm, packer.chunk, other.chunk, write_back.chunk)
        connect(m, write_back.cmd, write.cmd)
        connect(m, write_back.o, write.i)

    # INT8 GEMM ------------------------------------------------------------------------------

    def _wire_gemm_feed(self, m):
        feeder, parameters = self.feeder, self.parameters
        connect(m, self.gemm_words["weight"].o, feeder.weight)
        connect(m, self.gemm_words["activation"].o, feeder.activation)
        m.d.comb += [
            self.gemm_words["weight"].start.eq(feeder.weight_start),
            self.gemm_words["activation"].start.eq(feeder.activation_start),
            feeder.weight_beat.eq(self.read.weight_valid), feeder.hold.eq(self.entries.busy),
            parameters.w_en.eq(feeder.p_en), parameters.w_buffer.eq(feeder.p_buffer),
            parameters.w_addr.eq(feeder.p_addr), parameters.w_data.eq(feeder.p_data),
            parameters.w_done.eq(feeder.p_done), feeder.p_full.eq(parameters.full), feeder.free.eq(self.drain.free),
        ]

    def _wire_gemm_results(self, m):
        array, accumulator, drain, parameters, packer = (
            self.array, self.accumulator, self.drain, self.parameters, self.gemm_packer)
        m.d.comb += [
            accumulator.i_valid.eq(array.sum_valid), accumulator.i_sum.eq(array.sum_data),
            accumulator.i_tag.eq(fields(array.sum_tag, array.tag_bits, GemmTag(self.config).size)),
            drain.block_done.eq(accumulator.block_done), drain.full.eq(parameters.full),
            accumulator.r_en.eq(drain.acc_en), accumulator.r_buffer.eq(drain.acc_buffer),
            accumulator.r_row.eq(drain.acc_row), accumulator.r_col.eq(drain.acc_col),
            drain.acc_data.eq(accumulator.r_data),
            parameters.r_en.eq(drain.par_en), parameters.r_buffer.eq(drain.par_buffer),
            parameters.r_col.eq(drain.par_col), drain.par_data.eq(parameters.r_data),
            parameters.free.eq(drain.free), parameters.free_buffer.eq(drain.free_buffer),
            packer.i_valid.eq(drain.o_valid), packer.i_values.eq(drain.o_values), packer.i_wide.eq(drain.o_wide),
            packer.i_end.eq(drain.o_end), packer.i_job_end.eq(drain.o_job_end),
            packer.reserve.eq(drain.reserve), drain.chunk_free.eq(packer.chunk_free),
        ]

    def _wire_counters(self, m):
        counters, sequencer, csr = self.counters, self.sequencer, self.csr
        events = {"cycles_busy": self.busy, "cycles_array": self.entries.active | self.feeder.active,
                  "cycles_eu": sequencer.active,
                  "stall_row": sequencer.stall_row, "stall_oc": sequencer.stall_oc, "stall_out": sequencer.stall_out,
                  "read_beats": self.read.beat, "write_beats": self.write.beat, "jobs": self.write_back.next}
        m.d.comb += [counters.events.eq(Cat(events[name] for name in COUNTERS)), counters.clear.eq(csr.command[1])]
        m.d.comb += [getattr(csr, name).eq(getattr(counters, name)) for name in COUNTERS]
