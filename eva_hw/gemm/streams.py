"""Asks memory for what a GEMM job eats, tile by tile, as far ahead as the FIFOs allow."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi.gemm import GemmPlan
from ..control.job import COUNT_BITS, SLOT_BITS, job_layout, name_of
from ..dma import dma_command
from ..emit import Block

__all__ = ["GemmStreamer"]


class GemmStreamer(Block):
    """Walks row tiles, column tiles and k tiles; one command each for weights and activations of a tile.

    After the last k tile of a column tile: its parameters, and (unless y is INT32) the row tile's row scales.
    The weight stream is asked for again for each row tile, the activations again for each column tile. After a
    fence the activations wait until the job is the oldest. At best one k tile per cycle, 2 more cycles per column
    tile, and one per row tile.

    Members
    -------
    valid, job, slot, next, alone : the job table's stage ``rows``, for GEMM jobs.
    activation_cmd, weight_cmd, scale_cmd : commands to the read DMA.
    """

    def __init__(self, config):
        self.config = config
        command = stream.Signature(dma_command(config))
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "slot": In(SLOT_BITS), "next": Out(1), "alone": In(1),
            "activation_cmd": Out(command), "weight_cmd": Out(command), "scale_cmd": Out(command),
        })

    @property
    def module_name(self):
        return name_of("gemm_streamer", self.config)

    def elaborate(self, platform):
        m = Module()
        config, job = self.config, self.job
        beat = exact_log2(config.beat_bytes)
        counter = lambda name, bits: Signal(bits, name=name, reset_less=True)  # noqa: E731
        left, column, k = counter("rows_left", COUNT_BITS), counter("column", COUNT_BITS), counter("k", len(job.k_tiles))
        weight, activation, tile_x, scale = (counter(n, config.axi_addr_bits)
                                             for n in ("weight", "activation", "tile_activations", "row_scales"))
        tile_beats, scale_beats = (Signal(COUNT_BITS, name=n) for n in ("tile_beats", "scale_beats"))
        sent = Signal(2)
        # Of registers, known one cycle after what they follow from has changed.
        rows, last_column, last_rows = counter("rows", COUNT_BITS), counter("last_column", 1), counter("last_rows", 1)
        last_k = Signal()
        parameter_beats = GemmPlan(config, 1, 1, 1).parameter_beats
        m.d.comb += [
            last_k.eq(k + 1 == job.k_tiles),
            tile_beats.eq(((rows << exact_log2(config.rows)) + (config.beat_bytes - 1)) >> beat),
            scale_beats.eq(((rows << 1) + (config.beat_bytes - 1)) >> beat),
            self.activation_cmd.payload.addr.eq(activation), self.activation_cmd.payload.beats.eq(tile_beats),
            self.weight_cmd.payload.addr.eq(weight), self.weight_cmd.payload.beats.eq(config.weight_tile_beats),
            self.scale_cmd.payload.addr.eq(scale), self.scale_cmd.payload.beats.eq(scale_beats),
            *(cmd.payload.job.eq(self.slot) for cmd in (self.activation_cmd, self.weight_cmd, self.scale_cmd)),
        ]

        m.d.sync += [last_rows.eq(left <= job.tile), rows.eq(Mux(left <= job.tile, left, job.tile)),
                     last_column.eq(column + 1 == job.column_tiles)]

        def both(first, second, *, gate=Const(1, 1), skip=Const(0, 1)):
            """Offers two commands until both are taken (the second when ``gate`` lets it, or not at all if ``skip``);
            returns the condition that the last of them is."""
            done = Signal()
            m.d.comb += [first.valid.eq(~sent[0]), second.valid.eq(~sent[1] & gate & ~skip)]
            taken = Cat(sent[0] | first.ready, sent[1] | (second.ready & gate) | skip)
            m.d.comb += done.eq(taken.all())
            m.d.sync += sent.eq(Mux(done, 0, taken))
            return done

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [left.eq(job.rows), column.eq(0), k.eq(0), weight.eq(job.weight_addr), scale.eq(job.scale_addr),
                             activation.eq(job.x_addr), tile_x.eq(job.x_addr)]
                with m.If(self.valid):
                    m.next = "ROWS"
            with m.State("ROWS"):
                m.next = "TILE"
            with m.State("TILE"):
                with m.If(both(self.weight_cmd, self.activation_cmd, gate=~job.fence | self.alone)):
                    m.d.sync += [k.eq(k + 1), weight.eq(weight + config.weight_tile_beats * config.beat_bytes),
                                 activation.eq(activation + (tile_beats << beat))]
                    with m.If(last_k):
                        m.d.sync += k.eq(0)
                        m.next = "PARAMETERS"
            with m.State("PARAMETERS"):
                m.d.comb += self.weight_cmd.payload.beats.eq(parameter_beats)
                with m.If(both(self.weight_cmd, self.scale_cmd, skip=job.out_int32)):
                    m.next = "STEP"
            with m.State("STEP"):
                m.d.sync += [column.eq(column + 1), weight.eq(weight + parameter_beats * config.beat_bytes)]
                m.next = "TILE"
                with m.If(last_column):
                    m.d.sync += [column.eq(0), weight.eq(job.weight_addr), left.eq(left - rows), tile_x.eq(activation),
                                 scale.eq(scale + (scale_beats << beat))]
                    m.next = "ROWS"
                    with m.If(last_rows):
                        m.d.comb += self.next.eq(1)
                        m.next = "IDLE"
                with m.Else():
                    m.d.sync += activation.eq(tile_x)
        return m
