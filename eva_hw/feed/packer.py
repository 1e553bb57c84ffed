"""Outputs, packed to beats and kept in chunks until they are written to memory."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block, place
from ..sram import Sram

__all__ = ["OutputPacker"]


class OutputPacker(Block):
    """Packs each token's outputs to beats, and groups the beats in chunks of up to ``out_chunk_beats`` per token.

    One output of every token may come in each cycle; nothing stalls it. The one who causes outputs must have
    reserved the chunk that they go to.

    Parameters
    ----------
    config : Config

    Members
    -------
    i_valid, i_y, i_fp32, i_end : one output of each token; token b's in bits 32b of ``i_y``, FP16 in the low half.
        ``i_fp32`` is the same for all outputs of a chunk. ``i_end`` closes the chunk after this output.
    chunk : output stream {``beats``: beats of each token, ``last_bytes``: valid bytes of the last of them}, in
        order, offered only when the chunk's data can be read. The other bytes of the last beat are undefined.
    rd_en, rd_token, rd_beat : asks for a beat of the oldest chunk not yet freed (which must have been taken).
    rd_data : that beat, one cycle later; kept until the next ``rd_en``.
    chunk_done : pulse: frees that chunk; ``rd_en`` in the same cycle still reads it, later ones read the next.
    reserve : pulse: takes a free chunk for outputs to come.
    chunk_free : a chunk can be reserved; of a register, so ``reserve`` may depend on it.
    flush : level: everything is dropped and all chunks are free, from the next cycle on; outputs that come
        while it is high are dropped.
    """

    #: Cycles from the output that closes a chunk to ``chunk.valid``.
    latency = 2

    def __init__(self, config):
        self.beat_bits, self.tokens = config.axi_data_bits, config.batch_lanes
        self.chunk_beats, self.chunks = config.out_chunk_beats, config.out_chunks
        self.chunk_layout = data.StructLayout({
            "beats": range(self.chunk_beats + 1), "last_bytes": range(self.beat_bits // 8 + 1)})
        super().__init__({
            "i_valid": In(1), "i_y": In(32 * self.tokens), "i_fp32": In(1), "i_end": In(1),
            "chunk": Out(stream.Signature(self.chunk_layout)),
            "rd_en": In(1), "rd_token": In(max(1, ceil_log2(self.tokens))),
            "rd_beat": In(max(1, ceil_log2(self.chunk_beats))), "rd_data": Out(self.beat_bits),
            "chunk_done": In(1), "reserve": In(1), "chunk_free": Out(1), "flush": In(1),
        })

    @property
    def module_name(self):
        return f"eva_output_packer_w{self.beat_bits}_b{self.tokens}_k{self.chunk_beats}_c{self.chunks}"

    def elaborate(self, platform):
        m = Module()
        states = []

        def state(*args, **kwargs):
            """A register that a flush clears."""
            states.append(Signal(*args, **kwargs))
            return states[-1]

        beat_done, address, closed, ending = self._fill_beat(m, state)
        self._keep_beats(m, state, beat_done, address)
        self._offer_chunks(m, state, closed, ending)
        self._count_free(m, state)
        with m.If(self.flush):
            m.d.sync += [s.eq(s.init) for s in states]
        return m

    def _fill_beat(self, m, state):
        """Where each output goes: the place in the beat, the beat in the chunk, and which of them end with it.

        Returns signals of the cycle after the output: ``beat_done``, the beat's ``address``, ``closed``, ``ending``.
        """
        fill = state(range(self.beat_bits // 16), name="fill")  # 16-bit places used of the current beat
        beat = state(range(self.chunk_beats), name="beat") if self.chunk_beats > 1 else Const(0, 0)
        chunk = state(range(self.chunks), name="write_chunk")
        beat_done, closed = state(name="beat_done"), state(name="closed")
        address = Signal(range(self.chunks * self.chunk_beats), reset_less=True)
        ending = data.View(self.chunk_layout, Signal(self.chunk_layout.size, name="ending", reset_less=True))
        full, ends, close = Signal(), Signal(), Signal()
        m.d.comb += [
            full.eq((fill | self.i_fp32).all()),
            ends.eq(full | self.i_end),
            close.eq(self.i_end | (full & (beat == self.chunk_beats - 1))),
        ]
        m.d.sync += [beat_done.eq(self.i_valid & ends), closed.eq(self.i_valid & close)]
        with m.If(self.i_valid):
            used = fill + Mux(self.i_fp32, 2, 1)
            m.d.sync += [
                fill.eq(Mux(ends, 0, used)),
                address.eq(Cat(beat, chunk)),
                ending.beats.eq(beat + 1), ending.last_bytes.eq(used << 1),
            ]
            with m.If(close):
                m.d.sync += chunk.eq(chunk + 1)
            if len(beat):
                with m.If(ends):
                    m.d.sync += beat.eq(Mux(close, 0, beat + 1))
        self._build_beat(m, fill)
        return beat_done, address, closed, ending

    def _build_beat(self, m, fill):
        """The build registers, one beat for each token: every output is written to its place."""
        self._build = [Signal(self.beat_bits, name=f"build{b}", reset_less=True) for b in range(self.tokens)]
        for at in range(self.beat_bits // 16):
            mine = Signal(name=f"place{at}")
            # An FP32 output takes two places, and begins in an even one.
            first = Mux(self.i_fp32, at & ~1, at) if at % 2 else at
            m.d.comb += mine.eq(self.i_valid & (fill == first))
            with m.If(mine):
                for b, build in enumerate(self._build):
                    y = self.i_y.word_select(b, 32)
                    half = Mux(self.i_fp32, y[16:], y[:16]) if at % 2 else y[:16]
                    m.d.sync += build.word_select(at, 16).eq(half)

    def _keep_beats(self, m, state, beat_done, address):
        """One SRAM per token: all are written at once, so that the build registers are free for the next output
        wherever a chunk ends, without a second copy of the beats."""
        chunk = state(range(self.chunks), name="read_chunk")
        token = Signal.like(self.rd_token, name="token_read", reset_less=True)
        with m.If(self.chunk_done):
            m.d.sync += chunk.eq(chunk + 1)
        with m.If(self.rd_en):
            m.d.sync += token.eq(self.rd_token)
        words = []
        for b, build in enumerate(self._build):
            sram = place(m, f"sram{b}", Sram(self.chunks * self.chunk_beats, self.beat_bits))
            m.d.comb += [
                sram.w_en.eq(beat_done), sram.w_addr.eq(address), sram.w_data.eq(build),
                sram.r_en.eq(self.rd_en & ((self.rd_token == b) if self.tokens > 1 else 1)),
                sram.r_addr.eq(Cat(self.rd_beat, chunk) if self.chunk_beats > 1 else chunk),
            ]
            words.append(sram.r_data)
        m.d.comb += self.rd_data.eq(Array(words)[token] if self.tokens > 1 else words[0])

    def _offer_chunks(self, m, state, closed, ending):
        """A FIFO of the closed chunks; there are never more than ``chunks``."""
        entries = [Signal(self.chunk_layout.size, name=f"chunk{c}", reset_less=True) for c in range(self.chunks)]
        put, get = state(range(self.chunks), name="put"), state(range(self.chunks), name="get")
        waiting = state(range(self.chunks + 1), name="waiting")
        taken = Signal()
        m.d.comb += [
            self.chunk.valid.eq(waiting != 0),
            self.chunk.payload.eq(Array(entries)[get]),
            taken.eq(self.chunk.valid & self.chunk.ready),
        ]
        for c, entry in enumerate(entries):
            with m.If(closed & (put == c)):
                m.d.sync += entry.eq(ending)
        m.d.sync += waiting.eq(waiting + closed - taken)
        with m.If(closed):
            m.d.sync += put.eq(put + 1)
        with m.If(taken):
            m.d.sync += get.eq(get + 1)

    def _count_free(self, m, state):
        free = state(range(self.chunks + 1), init=self.chunks, name="free")
        m.d.comb += self.chunk_free.eq(free != 0)
        m.d.sync += free.eq(free - self.reserve + self.chunk_done)
