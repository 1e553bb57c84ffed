"""Values of y, packed to beats and kept in chunks until they are written to memory."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..dma import FlopQueue
from ..emit import Block, place
from ..sram import Sram

__all__ = ["GemmPacker"]


class GemmPacker(Block):
    """Packs ``gemm_lanes`` values per cycle to beats, and groups the beats in chunks of up to ``out_chunk_beats``.

    Nothing stalls it: the one who causes values must have reserved the chunk that they go to. Each block of y
    begins a new beat and a new chunk.

    Parameters
    ----------
    config : Config

    Members
    -------
    i_valid, i_values : In(1), In(gemm_lanes * 32)
        Values in order, lane k's in bits ``32k`` onwards; FP16 in the low half.
    i_wide : In(1)
        Values have four bytes, else two; the same for all of a chunk.
    i_end, i_job_end : In(1), In(1)
        The last values of a block; of the job (then both).
    chunk : output stream {``beats``, ``last_bytes``: valid bytes of the last beat, ``job_last``: the job's last
        chunk}, in order, offered only when the chunk's data can be read. Other bytes of the last beat are undefined.
    rd_en, rd_beat : asks for a beat of the oldest chunk not yet freed (which must have been taken).
    rd_data : that beat, one cycle later; kept until the next ``rd_en``.
    chunk_done : pulse: frees that chunk; ``rd_en`` in the same cycle still reads it, later ones read the next.
    reserve : pulse: takes a free chunk for values to come.
    chunk_free : a chunk can be reserved; of a register, so ``reserve`` may depend on it.
    """

    #: Cycles from the values that close a chunk to ``chunk.valid``.
    latency = 2

    def __init__(self, config):
        self.beat_bits, self.lanes = config.axi_data_bits, config.gemm_lanes
        self.chunk_beats, self.chunks = config.out_chunk_beats, config.out_chunks
        self.chunk_layout = data.StructLayout({
            "beats": range(self.chunk_beats + 1), "last_bytes": range(self.beat_bits // 8 + 1), "job_last": 1})
        super().__init__({
            "i_valid": In(1), "i_values": In(32 * self.lanes), "i_wide": In(1), "i_end": In(1), "i_job_end": In(1),
            "chunk": Out(stream.Signature(self.chunk_layout)),
            "rd_en": In(1), "rd_beat": In(max(1, ceil_log2(self.chunk_beats))), "rd_data": Out(self.beat_bits),
            "chunk_done": In(1), "reserve": In(1), "chunk_free": Out(1),
        })

    @property
    def module_name(self):
        return f"eva_gemm_packer_w{self.beat_bits}_l{self.lanes}_k{self.chunk_beats}_c{self.chunks}"

    @property
    def place_bits(self):
        """Bits of a place in the beat: what one cycle's FP16 values take; wider ones take two."""
        return 16 * self.lanes

    def elaborate(self, platform):
        m = Module()
        beat_done, address, closed, ending, build = self._fill_beat(m)
        self._keep_beats(m, beat_done, address, build)
        # Never full: it has an entry for each chunk there is.
        queue = place(m, "closed_chunks", FlopQueue(self.chunks, self.chunk_layout.size))
        free = Signal(range(self.chunks + 1), init=self.chunks)
        m.d.sync += free.eq(free - self.reserve + self.chunk_done)
        m.d.comb += [
            queue.i.valid.eq(closed), queue.i.payload.eq(ending),
            self.chunk.valid.eq(queue.o.valid), self.chunk.payload.eq(queue.o.payload),
            queue.o.ready.eq(self.chunk.ready),
            self.chunk_free.eq(free != 0),
        ]
        return m

    def _fill_beat(self, m):
        """Where values go: the place in the beat, the beat in the chunk, and which of them end with these values.

        Returns signals of the cycle after the values: ``beat_done``, the beat's ``address``, ``closed``, ``ending``,
        and the beat itself.
        """
        fill = Signal(range(self.beat_bits // self.place_bits))  # places used of the current beat
        beat = Signal(range(self.chunk_beats)) if self.chunk_beats > 1 else Const(0, 0)
        chunk = Signal(range(self.chunks), name="write_chunk")
        beat_done, closed = Signal(), Signal()
        address = Signal(range(self.chunks * self.chunk_beats), reset_less=True)
        ending = data.View(self.chunk_layout, Signal(self.chunk_layout.size, name="ending", reset_less=True))
        full, ends, close = Signal(), Signal(), Signal()
        m.d.comb += [
            full.eq((fill | self.i_wide).all()),
            ends.eq(full | self.i_end),
            close.eq(self.i_end | (full & (beat == self.chunk_beats - 1))),
        ]
        m.d.sync += [beat_done.eq(self.i_valid & ends), closed.eq(self.i_valid & close)]
        with m.If(self.i_valid):
            used = fill + Mux(self.i_wide, 2, 1)
            m.d.sync += [
                fill.eq(Mux(ends, 0, used)), address.eq(Cat(beat, chunk)),
                ending.beats.eq(beat + 1), ending.last_bytes.eq(used * (self.place_bits // 8)),
                ending.job_last.eq(self.i_job_end),
            ]
            with m.If(close):
                m.d.sync += chunk.eq(chunk + 1)
            if len(beat):
                with m.If(ends):
                    m.d.sync += beat.eq(Mux(close, 0, beat + 1))
        return beat_done, address, closed, ending, self._build_beat(m, fill)

    def _build_beat(self, m, fill):
        """The build register: values are written to their place at once."""
        build = Signal(self.beat_bits, reset_less=True)
        bits = self.place_bits
        narrow = Cat(self.i_values.word_select(k, 32)[:16] for k in range(self.lanes))
        for at in range(self.beat_bits // bits):
            mine = Signal(name=f"place{at}")
            # Wide values take two places, and begin in an even one.
            first = Mux(self.i_wide, at & ~1, at) if at % 2 else at
            m.d.comb += mine.eq(self.i_valid & (fill == first))
            with m.If(mine):
                m.d.sync += build.word_select(at, bits).eq(
                    Mux(self.i_wide, self.i_values.word_select(at % 2, bits), narrow))
        return build

    def _keep_beats(self, m, beat_done, address, build):
        chunk = Signal(range(self.chunks), name="read_chunk")
        with m.If(self.chunk_done):
            m.d.sync += chunk.eq(chunk + 1)
        memory = place(m, "beats", Sram(self.chunks * self.chunk_beats, self.beat_bits))
        m.d.comb += [
            memory.w_en.eq(beat_done), memory.w_addr.eq(address), memory.w_data.eq(build),
            memory.r_en.eq(self.rd_en), self.rd_data.eq(memory.r_data),
            memory.r_addr.eq(Cat(self.rd_beat, chunk) if self.chunk_beats > 1 else chunk),
        ]
