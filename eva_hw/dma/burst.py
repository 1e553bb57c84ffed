"""Commands into bursts: the one place where burst lengths, 4 KiB pages and address windows are worked out."""

from amaranth.hdl import Cat, Module, Mux, ResetSignal, Signal, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from ..emit import Block, place
from .axi import PAGE_BYTES
from .command import BEATS_BITS
from .queue import FlopQueue

__all__ = ["BurstSplitter"]


class BurstSplitter(Block):
    """Splits commands into INCR bursts of at most ``max_beats`` that do not cross 4 KiB.

    Bursts are as long as those two limits and the command allow. One burst per cycle, and a cycle more between commands
    (none if ``max_beats`` is 1); 3 cycles from a command's handshake to its first burst. A command of no beats gives no
    burst. No path leads from ``o.ready`` to ``cmd.ready``, nor to the stages in front: two bursts wait at the output.

    Parameters
    ----------
    config : Config
    max_beats : int
        1 to 256, and at most a page.
    tag_bits : int
        What rides along with a command, at least 1 bit.

    Members
    -------
    cmd : In(stream of {addr, beats, tag})
    o : Out(stream of {addr, length, last, inside, tag})
        ``length``: beats minus one. ``last``: the command's last burst. ``inside``: the whole burst lies
        in the window, and the command did not run over the end of the address space before it.
    win_first, win_last : In(address)
        The window, inclusive, in bytes.
    clear : In(1)
        Level: forgets everything; from its second cycle on commands are accepted and dropped.
    """

    def __init__(self, config, max_beats, tag_bits):
        if not 1 <= max_beats <= min(256, PAGE_BYTES // config.beat_bytes):
            raise ValueError(f"max_beats = {max_beats} must be from 1 to "
                             f"{min(256, PAGE_BYTES // config.beat_bytes)} for beats of {config.beat_bytes} bytes")
        self.addr_bits, self.byte_bits = config.axi_addr_bits, exact_log2(config.beat_bytes)
        self.max_beats, self.tag_bits = max_beats, tag_bits
        self.length_bits = bits_for(max_beats - 1)
        super().__init__({
            "cmd": In(stream.Signature(data.StructLayout({
                "addr": unsigned(self.addr_bits), "beats": unsigned(BEATS_BITS), "tag": unsigned(tag_bits)}))),
            "o": Out(stream.Signature(data.StructLayout({
                "addr": unsigned(self.addr_bits), "length": unsigned(self.length_bits), "last": unsigned(1),
                "inside": unsigned(1), "tag": unsigned(tag_bits)}))),
            "win_first": In(self.addr_bits), "win_last": In(self.addr_bits),
            "clear": In(1),
        })

    @property
    def module_name(self):
        return f"eva_burst_a{self.addr_bits}_w{8 << self.byte_bits}_l{self.max_beats}_t{self.tag_bits}"

    def elaborate(self, platform):
        m = Module()
        beat_bits = self.addr_bits - self.byte_bits
        page_bits = exact_log2(PAGE_BYTES) - self.byte_bits

        # Stage 1: what is left of the command. `at` is in beats, with a bit that says the address wrapped.
        active = Signal()
        at = Signal(beat_bits + 1, reset_less=True)
        left = Signal(BEATS_BITS, reset_less=True)
        tag = Signal(self.tag_bits, reset_less=True)
        # Stage 2: one burst cut off.
        cut = Signal()
        cut_at = Signal(beat_bits + 1, reset_less=True)
        cut_tag = Signal(self.tag_bits, reset_less=True)
        cut_length = Signal(self.length_bits, reset_less=True)
        cut_last = Signal(reset_less=True)

        to_boundary = Signal(page_bits + 1)
        room = Signal(range(self.max_beats + 1))
        length = Signal(self.length_bits)
        final, advance, cut_free, check_free = Signal(), Signal(), Signal(), Signal()
        layout = self.o.payload.shape()
        checked = place(m, "checked", FlopQueue(2, layout.size), rst=ResetSignal() | self.clear)
        m.d.comb += [
            to_boundary.eq((1 << page_bits) - at[:page_bits]),
            room.eq(to_boundary if self.max_beats == 1 << page_bits
                    else Mux(to_boundary < self.max_beats, to_boundary, self.max_beats)),
            final.eq(left <= room),
            length.eq(Mux(final, left - 1, room - 1)),
            check_free.eq(checked.i.ready),
            cut_free.eq(~cut | check_free),
            advance.eq(active & cut_free),
            self.cmd.ready.eq(~active | (advance & final if self.max_beats == 1 else 0)),
        ]
        with m.If(self.cmd.ready):
            command = self.cmd.payload
            m.d.sync += [active.eq(self.cmd.valid & (command.beats != 0)), at.eq(command.addr[self.byte_bits:]),
                         left.eq(command.beats), tag.eq(command.tag)]
        with m.Elif(advance):
            # Neither is of use after the final burst, so neither needs to know which that is.
            m.d.sync += [at.eq(at + room), left.eq(left - room)]
            if self.max_beats > 1:
                m.d.sync += active.eq(~final)
        with m.If(cut_free):
            m.d.sync += [cut.eq(active), cut_at.eq(at), cut_length.eq(length), cut_last.eq(final), cut_tag.eq(tag)]

        # Stage 3: checked. The burst's last byte is in the page of its first, so it needs no wide adder.
        last_offset = Signal(page_bits)
        m.d.comb += last_offset.eq(cut_at[:page_bits] + cut_length)
        first_byte = Cat(*([0] * self.byte_bits), cut_at[:beat_bits])
        last_byte = Cat(*([1] * self.byte_bits), last_offset, cut_at[page_bits:beat_bits])
        burst = Signal(layout)
        m.d.comb += [
            burst.addr.eq(first_byte), burst.length.eq(cut_length), burst.last.eq(cut_last),
            burst.inside.eq((first_byte >= self.win_first) & (last_byte <= self.win_last) & ~cut_at[-1]),
            burst.tag.eq(cut_tag),
            checked.i.valid.eq(cut), checked.i.payload.eq(burst),
            self.o.valid.eq(checked.o.valid), self.o.payload.eq(checked.o.payload), checked.o.ready.eq(self.o.ready),
        ]
        with m.If(self.clear):
            m.d.sync += [active.eq(0), cut.eq(0)]
        return m
