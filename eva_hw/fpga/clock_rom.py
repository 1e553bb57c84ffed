"""What follows from the clock's frequency, read from a memory: another clock changes only that memory's contents."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block, TextBlock, place
from .uart_timer import PHASE_BITS, step_of

__all__ = ["ClockFacts", "ClockRom", "rom_bytes"]

#: Tells the memory from all others in a configuration of the device.
_MARK = b"EVA clock "
_STEP_BYTES, _HZ_BYTES = PHASE_BITS // 8, 4
_DEPTH = len(_MARK) + _STEP_BYTES + _HZ_BYTES

_TEMPLATE = """\
// {depth} bytes: "{mark}", the baud rate's step per cycle ({step}), the clock in Hz ({clk_hz}); numbers little-endian.
// In block RAM even though it is small, so that it can be found and changed after place and route.
module {name} (
  input  wire clk,
  input  wire [{addr_msb}:0] addr,
  output wire [7:0] data
);
  (* ram_style = "block" *)
  reg [7:0] mem [0:{depth_msb}];
  reg [7:0] q;
  assign data = q;
  initial begin
{contents}  end
  always @(posedge clk)
    q <= mem[addr];
endmodule
"""


def rom_bytes(clk_hz, baud):
    """The memory's contents for a clock.

    Raises
    ------
    ValueError
        If the clock cannot make the baud rate (:func:`~eva_hw.fpga.uart_timer.step_of`).
    """
    return _MARK + step_of(clk_hz, baud).to_bytes(_STEP_BYTES, "little") + clk_hz.to_bytes(_HZ_BYTES, "little")


class ClockRom(TextBlock):
    """The memory: 16 bytes.

    Parameters
    ----------
    clk_hz, baud : int
        Clock and line rate.

    Members
    -------
    addr : In(4)
    data : Out(8)
        Of the address one cycle before.
    """

    def __init__(self, clk_hz, baud):
        self.clk_hz, self.step, self.contents = clk_hz, step_of(clk_hz, baud), rom_bytes(clk_hz, baud)
        super().__init__({"addr": In(range(_DEPTH)), "data": Out(8)})

    @property
    def module_name(self):
        return f"eva_clock_rom_c{self.clk_hz}_b{self.step}"

    def verilog(self):
        contents = "".join(f"    mem[{i}] = 8'h{byte:02x};\n" for i, byte in enumerate(self.contents))
        return _TEMPLATE.format(depth=_DEPTH, mark=_MARK.decode(), step=self.step, clk_hz=self.clk_hz,
                                name=self.module_name, addr_msb=(_DEPTH - 1).bit_length() - 1, depth_msb=_DEPTH - 1,
                                contents=contents)


class ClockFacts(Block):
    """Reads the memory after reset; the outputs are right 18 cycles later, and before that of no meaning.

    Parameters
    ----------
    clk_hz, baud : int

    Members
    -------
    step : Out(16)
        What the phase of a :class:`~eva_hw.fpga.uart_timer.BaudTimer` gains per cycle.
    clk_hz : Out(32)
    """

    def __init__(self, clk_hz, baud):
        self.rom = ClockRom(clk_hz, baud)
        super().__init__({"step": Out(PHASE_BITS), "clk_hz": Out(8 * _HZ_BYTES)})

    @property
    def module_name(self):
        return f"eva_clock_facts_c{self.rom.clk_hz}_b{self.rom.step}"

    def elaborate(self, platform):
        m = Module()
        rom = place(m, "rom", self.rom)
        address, arrives = Signal(range(_DEPTH + 1)), Signal()
        reading = address != _DEPTH
        # All bytes go through; those that stay are the last.
        shift = Signal(8 * (_STEP_BYTES + _HZ_BYTES), reset_less=True)
        m.d.comb += [rom.addr.eq(address), Cat(self.step, self.clk_hz).eq(shift)]
        m.d.sync += [arrives.eq(reading), address.eq(address + reading)]
        with m.If(arrives):
            m.d.sync += shift.eq(Cat(shift[8:], rom.data))
        return m
