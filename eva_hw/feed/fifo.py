"""The FIFO behind each memory read client."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..emit import Block, place
from ..sram import Sram

__all__ = ["BeatFifo"]

#: FIFOs up to this depth are made of flip-flops: an SRAM of so few words would be all overhead.
FLOP_DEPTH = 4


class BeatFifo(Block):
    """A first-word-fall-through FIFO of at least ``depth`` beats of ``width`` bits, one in and one out per cycle.

    The input has no ready: whoever writes must know (by credits) that no more than ``depth`` beats are inside,
    where a beat leaves in the cycle in which ``o`` is taken. More than that is lost or overwritten.

    Parameters
    ----------
    depth : int
        Beats, at least 2.
    width : int
        Bits of a beat.

    Members
    -------
    i_valid, i_data : a beat enters in each cycle with ``i_valid``.
    o : output stream; its payload comes from one of two registers, and ``o.ready`` reaches a few flip-flops only.
    flush : level. From the next cycle on the FIFO is empty; beats that come while it is high are dropped.
    """

    def __init__(self, depth, width):
        if depth < 2:
            raise ValueError(f"depth = {depth} must be at least 2")
        if width < 1:
            raise ValueError(f"width = {width} must be at least 1")
        self.depth, self.width = depth, width
        super().__init__({
            "i_valid": In(1), "i_data": In(width),
            "o": Out(stream.Signature(width)),
            "flush": In(1),
        })

    @property
    def module_name(self):
        return f"eva_beat_fifo_{self.depth}x{self.width}"

    @property
    def latency(self):
        """Cycles from ``i_valid`` into an empty FIFO to ``o.valid``."""
        return 1 if self.depth <= FLOP_DEPTH else 3

    def elaborate(self, platform):
        m = Module()
        if self.depth <= FLOP_DEPTH:
            self._in_flops(m)
        else:
            self._in_sram(m)
        return m

    def _in_flops(self, m):
        """Slot 0 is the head; every pop shifts. A beat enters behind the last one."""
        slots = [Signal(self.width, name=f"slot{i}", reset_less=True) for i in range(self.depth)]
        used = Signal(self.depth)  # thermometer: slot i holds a beat
        after = Signal(self.depth)
        pop = Signal()
        m.d.comb += [
            self.o.valid.eq(used[0]),
            self.o.payload.eq(slots[0]),
            pop.eq(used[0] & self.o.ready),
            after.eq(Mux(pop, used >> 1, used)),
        ]
        for i, slot in enumerate(slots):
            ends_here = ~after[i] & (after[i - 1] if i else 1)
            with m.If(self.i_valid & ends_here):
                m.d.sync += slot.eq(self.i_data)
            if i + 1 < self.depth:
                with m.Elif(pop):
                    m.d.sync += slot.eq(slots[i + 1])
        m.d.sync += used.eq(Mux(self.i_valid, (after << 1) | 1, after))
        with m.If(self.flush):
            m.d.sync += used.eq(0)

    def _in_sram(self, m):
        """SRAM, its output register, then two registers that take turns.

        No reader sees the SRAM's access time. Nothing as wide as a beat hangs on ``o.ready``, and neither does
        the SRAM: what may move on follows from registers, for the second one always has room when the first is popped.

        A word is read only when it was written in an earlier cycle (``level`` counts those), and never is the
        word being written: that one would be the SRAM's last free one.
        """
        sram = place(m, "sram", Sram(self.depth, self.width))
        write_at, read_at = Signal(range(self.depth)), Signal(range(self.depth))
        level = Signal(range(self.depth + 1))
        nonempty = Signal()  # level != 0
        fetched = Signal()  # the SRAM's output register holds a beat
        valid = Signal()  # one of the two registers behind it does
        full = Signal()  # both do
        front = Signal()  # which of them is the next to leave
        back = Signal()  # which is the next to be filled
        payloads = [Signal(self.width, name=f"payload_{i}", reset_less=True) for i in range(2)]
        read = Signal()
        move = Signal()
        pop = Signal()
        step = lambda at: Mux(at == self.depth - 1, 0, at + 1)[:len(at)]  # noqa: E731

        m.d.comb += [
            move.eq(fetched & ~full), pop.eq(valid & self.o.ready),
            read.eq(nonempty & ~(fetched & full)),
            sram.w_en.eq(self.i_valid), sram.w_addr.eq(write_at), sram.w_data.eq(self.i_data),
            sram.r_en.eq(read), sram.r_addr.eq(read_at),
            self.o.valid.eq(valid), self.o.payload.eq(Mux(front, *reversed(payloads))),
        ]
        with m.If(self.i_valid):
            m.d.sync += write_at.eq(step(write_at))
        with m.If(read):
            m.d.sync += read_at.eq(step(read_at))
        with m.If(self.i_valid & ~read):
            m.d.sync += [level.eq(level + 1), nonempty.eq(1)]
        with m.Elif(~self.i_valid & read):
            m.d.sync += [level.eq(level - 1), nonempty.eq(level != 1)]
        for i, payload in enumerate(payloads):
            with m.If(move & (back == i)):
                m.d.sync += payload.eq(sram.r_data)
        m.d.sync += [
            fetched.eq(read | (fetched & ~move)),
            valid.eq(move | full | (valid & ~pop)),
            full.eq(~pop & (full | (valid & move))),
            front.eq(front ^ pop), back.eq(back ^ move),
        ]
        with m.If(self.flush):
            m.d.sync += [s.eq(0) for s in (write_at, read_at, level, nonempty, fetched, valid, full, front, back)]
