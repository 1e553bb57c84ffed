"""The accelerator: wiring of the blocks, nothing more."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib.wiring import In, Out

from .abi.registers import REGISTER_BYTES
from .array import SystolicArray
from .codebook import OcBanks, OcTag, OcWriter
from .config import WORD_BITS
from .control.activity import Activity
from .control.audit import RowAudit
from .control.clear import DatapathReset
from .control.counters import Counters
from .control.csr import CsrBlock
from .control.entries import EntryStreamer
from .control.fetch import DescriptorFetcher
from .control.job import name_of
from .control.operands import OperandLoader
from .control.rows import RowStreamer
from .control.sequencer import Sequencer
from .control.stationary import PassLayout, StationaryLoader
from .control.supervisor import Supervisor
from .control.table import JobTable
from .control.writeback import WriteBack
from .dma import Axi4, AxiLite, AxiReadDma, AxiWriteDma, FlopQueue, ReadClient, join
from .emit import Block, place
from .emit.connect import connect, fields, merge, split
from .epilogue import Epilogue
from .feed import BeatFifo, OutputPacker, RowAssembler, ScaleUnpacker
from .gemm import GemmTag
from .sram import WideBuffer
from .wiring import ControlWiring, CounterWiring, GemmWiring

__all__ = ["Top"]

#: Passes that the array may be ahead of the epilogue in the pass queue: two OC buffers and one being loaded.
PASS_QUEUE = 4


class Top(ControlWiring, GemmWiring, CounterWiring, Block):
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
        always = lambda name, block: place(m, name, block)  # noqa: E731
        self.csr = always("csr", CsrBlock(config))
        self.supervisor = always("supervisor", Supervisor(config))
        self.counters = always("counters", Counters())
        self.read = always("read_dma", AxiReadDma(config, self.clients))
        self.write = always("write_dma", AxiWriteDma(config))
        # The blocks of the datapath are reset by the supervisor's clear too.
        control, build, array, epilogue, feed, gemm = (
            self._cleared(m, part) for part in ("control", "build", "array", "epilogue", "feed", "gemm"))
        self.activity = control("activity", Activity())
        self.fetch = control("fetcher", DescriptorFetcher(config))
        self.table = control("job_table", JobTable(config))
        self.operands = build("operand_loader", OperandLoader(config))
        self.codebooks = build("codebook_buffer", WideBuffer(
            config.axi_data_bits, config.rows * 16, 2 * config.codebook_words * WORD_BITS))
        self.x = build("x_buffer", WideBuffer(
            config.axi_data_bits, WORD_BITS, 2 * config.batch_lanes * config.x_beats * config.axi_data_bits))
        self.array = array("array", SystolicArray(config, max(OcTag(config).size, GemmTag(config).size)))
        self.stationary = build("stationary_loader", StationaryLoader(config))
        self.entries = build("entry_streamer", EntryStreamer(
            config, reload=self.array.swap_latency(config.groups - 1, config.fp_cols - 1),
            load=self.array.load_latency, drain=self.array.latency + OcWriter.latency + 1,
            resume=self.array.resume_latency))
        self.pass_queue = build("pass_queue", FlopQueue(PASS_QUEUE, PassLayout(config).size))
        self.writer = epilogue("oc_writer", OcWriter(config))
        self.banks = epilogue("oc_banks", OcBanks(config))
        self.epilogue = epilogue("epilogue", Epilogue(config))
        self.sequencer = epilogue("sequencer", Sequencer(
            config, latency=self.epilogue.latency, hazard=self.epilogue.hazard))
        self.packer = epilogue("output_packer", OutputPacker(config))
        self.rows = feed("row_streamer", RowStreamer(config))
        self.row_fifo = feed("row_fifo", BeatFifo(config.row_fifo_beats, config.axi_data_bits))
        self.row_assembler = feed("row_assembler", RowAssembler(config))
        self.audit = feed("row_audit", RowAudit())
        self.value_fifos = {n: feed(f"{n}_fifo", BeatFifo(self.value_beats, config.axi_data_bits))
                            for n in ("scale", "bias")}
        self.unpackers = {n: feed(f"{n}_unpacker", ScaleUnpacker(config)) for n in ("scale", "bias")}
        self.write_back = feed("write_back", WriteBack(config))
        self._place_gemm(gemm)

    def _cleared(self, m, part):
        """Places blocks of a part of the datapath: ``(name, block)``, as :func:`place`."""
        reset = place(m, f"{part}_reset", DatapathReset())
        m.d.comb += reset.clear.eq(self.supervisor.clear)
        return lambda name, block: place(m, name, block, rst=reset.reset)

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
            operands.codebook_valid.eq(read.codebook_valid),
            operands.x_valid.eq(read.x_valid), operands.x_last.eq(read.x_last),
            *(getattr(operands, name).eq(getattr(self.entries, name)) for name in ("release", "consumed", "side", "place")),
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
            stationary.open.eq(operands.open), stationary.loaded.eq(operands.loaded),
            stationary.x_token.eq(operands.x_token), stationary.x_beat.eq(operands.x_beat),
            stationary.may_load.eq(entries.may_load & feeder.may_load), entries.hold.eq(feeder.entries_hold),
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
            *((array.i_resume.eq(entries.a_resume), array.i_keep.eq(entries.a_keep), array.i_entry.eq(entries.a_tag.entry))
              if self.config.max_phases > 1 else ()),
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
            self.unpackers["bias"].start.eq(sequencer.value_end),
            self.unpackers["scale"].start.eq(sequencer.value_end | drain.scale_end),
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
