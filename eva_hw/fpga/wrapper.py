"""A board's top module: clock, reset, pins, and the system inside."""

from .clock import board_pll, clock_verilog
from .constraints import pins

__all__ = ["Wrapper"]

_TEMPLATE = """\
// {title}: {system} at {mhz:g} MHz.
module {name} (
{ports}
);
  wire clk, locked;
{clock}
  // Released 256 cycles after the clock is stable.
  reg [1:0] stable = 2'b00;
  reg [8:0] count = 9'd0;
  reg rst = 1'b1;
  always @(posedge clk) begin
    stable <= {{stable[0], locked}};
    if (!stable[1])
      count <= 9'd0;
    else if (!count[8])
      count <= count + 9'd1;
    rst <= !count[8];
  end
  // The line is asynchronous; the receiver inside synchronises it.
  wire [7:0] state;
  {system} system (.clk(clk), .rst(rst), .uart_rx(uart_rx), .uart_tx(uart_tx), .leds(state));
  assign led = {invert}state[{led_msb}:0];
endmodule
"""


class Wrapper:
    """The Verilog module ``eva_fpga_<board>`` around the block ``system`` (ports of ``BoardSoc``).

    Parameters
    ----------
    board : Board
    hz : int
        Clock wanted.

    Attributes
    ----------
    name : str
        Module name.
    hz : int
        Clock that the PLL makes: ``hz`` or a little less.
    pll : Pll | None
        None: the oscillator's clock is used as it is.
    pins : dict[str, str]
        Pin of each port bit, as the board's constraints have it.

    Raises
    ------
    InputError
        If the board cannot make such a clock, or its constraints are not those of this module.
    """

    def __init__(self, board, hz):
        self.board = board
        self.name = f"eva_fpga_{board.name}"
        self.pins = pins(board)
        self.pll = board_pll(board, hz)
        self.hz = board.clock_hz if self.pll is None else round(self.pll.hz)

    def verilog(self, system):
        """The module's text; ``system`` is the name of the module inside."""
        board, count = self.board, sum(port.startswith("led[") for port in self.pins)
        ports = [f"  input  wire {name}" for name in ("clk_in", "clk_in_n") if name in self.pins]
        ports += ["  input  wire uart_rx", "  output wire uart_tx", f"  output wire [{count - 1}:0] led"]
        return _TEMPLATE.format(title=board.title, system=system, name=self.name, mhz=self.hz / 1e6,
                                ports=",\n".join(ports), clock=clock_verilog(board, self.pll, "clk_in_n" in self.pins),
                                invert="~" if board.leds_low else "", led_msb=count - 1)
