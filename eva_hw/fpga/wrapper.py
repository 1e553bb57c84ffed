"""A board's top module: clock, reset, pins, and the system inside; and where its pins are."""

from .clock import clock_verilog

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

    Raises
    ------
    InputError
        If the board cannot make such a clock.
    """

    def __init__(self, board, hz):
        self.board = board
        self.name = f"eva_fpga_{board.name}"
        self._clock, self.hz = clock_verilog(board, hz)

    @property
    def pins(self):
        """``{port bit: (pin, I/O standard)}``, in port order."""
        board = self.board
        clocks = dict(zip(("clk_in", "clk_in_n"), board.clock_pins))
        rest = {"uart_rx": board.uart_rx, "uart_tx": board.uart_tx,
                **{f"led[{i}]": pin for i, pin in enumerate(board.leds)}}
        return {port: (pin, board.clock_io) for port, pin in clocks.items()} | {
            port: (pin, board.io) for port, pin in rest.items()}

    def verilog(self, system):
        """The module's text; ``system`` is the name of the module inside."""
        board, count = self.board, len(self.board.leds)
        ports = [f"  input  wire {name}" for name, _ in zip(("clk_in", "clk_in_n"), board.clock_pins)]
        ports += ["  input  wire uart_rx", "  output wire uart_tx", f"  output wire [{count - 1}:0] led"]
        return _TEMPLATE.format(title=board.title, system=system, name=self.name, mhz=self.hz / 1e6,
                                ports=",\n".join(ports), clock=self._clock, invert="~" if board.leds_low else "",
                                led_msb=count - 1)
