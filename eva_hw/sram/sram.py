"""The one SRAM wrapper: every on-chip memory is an instance of it.

Written in Verilog by hand, so that FPGA tools infer block RAM from it and an ASIC flow can replace the
module of each size with a macro.
"""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import TextBlock

__all__ = ["BLOCK_RAM_DEPTH", "Sram"]

#: Words from which on FPGA tools are told to use block RAM; below, they may take logic cells' memory.
BLOCK_RAM_DEPTH = 32

_TEMPLATE = """\
// {depth} words of {width} bits, one write port, one read port; written in lanes of {lane} bits.
// Contents are undefined until written, and so is a word read in the cycle that writes it.
module {name} (
  input  wire clk,
  input  wire w_en,
  input  wire [{addr_msb}:0] w_addr,
  input  wire [{width_msb}:0] w_data,
{mask_port}  input  wire r_en,
  input  wire [{addr_msb}:0] r_addr,
  output wire [{width_msb}:0] r_data
);
`ifdef EVA_SRAM_MACRO
  {name}_macro macro (
    .clk(clk), .w_en(w_en), .w_addr(w_addr), .w_data(w_data), {mask_conn}
    .r_en(r_en), .r_addr(r_addr), .r_data(r_data)
  );
`else
{style}  reg [{width_msb}:0] mem [0:{depth_msb}];
  reg [{width_msb}:0] q;
  assign r_data = q;
  always @(posedge clk) begin
    if (w_en) begin
{writes}    end
    if (r_en)
`ifdef EVA_SRAM_POISON
      q <= (w_en && w_addr == r_addr) ? ~mem[r_addr] : mem[r_addr];
`elsif EVA_SRAM_NO_BYPASS
    begin
      q <= mem[r_addr];
{clears}    end
`else
      q <= mem[r_addr];
`endif
  end
`endif
endmodule
"""


class Sram(TextBlock):
    """A memory of ``depth`` words of ``width`` bits with one write and one read port.

    Reads are synchronous: ``r_data`` holds the word of ``r_addr`` one cycle after ``r_en``, and keeps it
    until the next read. A word that is read in the cycle that writes it is undefined (simulation with
    ``EVA_SRAM_POISON`` gives its complement; ``EVA_SRAM_NO_BYPASS`` tells Yosys, which would else build logic that
    gives the old word), and so is a word never written.

    Parameters
    ----------
    depth : int
        Words, at least 2.
    width : int
        Bits of a word.
    lane : int
        Bits that one write-mask bit covers; must divide ``width``. Default: the whole word, no mask.

    Members
    -------
    w_en, w_addr, w_data, w_mask : write port; ``w_mask`` (one bit per lane) only if ``lane < width``.
    r_en, r_addr, r_data : read port, latency 1 cycle.
    """

    def __init__(self, depth, width, lane=None):
        lane = width if lane is None else lane
        if depth < 2:
            raise ValueError(f"depth = {depth} must be at least 2")
        if width < 1 or width % lane:
            raise ValueError(f"lane = {lane} must divide width = {width}")
        self.depth, self.width, self.lane = depth, width, lane
        ports = {
            "w_en": In(1), "w_addr": In(ceil_log2(depth)), "w_data": In(width),
            "r_en": In(1), "r_addr": In(ceil_log2(depth)), "r_data": Out(width),
        }
        if lane != width:
            ports["w_mask"] = In(width // lane)
        super().__init__(ports)

    @property
    def module_name(self):
        suffix = "" if self.lane == self.width else f"_m{self.lane}"
        return f"eva_sram_{self.depth}x{self.width}{suffix}"

    def verilog(self):
        masked = self.lane != self.width
        lanes = self.width // self.lane
        slices = [f"[{(i + 1) * self.lane - 1}:{i * self.lane}]" for i in range(lanes)]
        if masked:
            writes = "".join(f"      if (w_mask[{i}]) mem[w_addr]{part} <= w_data{part};\n"
                             for i, part in enumerate(slices))
        else:
            writes = "      mem[w_addr] <= w_data;\n"
        # Undefined lane by lane, for Yosys recognises a collision only in exactly the case in which it happens.
        clears = "".join(f"      if (w_en && {f'w_mask[{i}] && ' if masked else ''}w_addr == r_addr)"
                         f" q{part} <= {self.lane}'bx;\n" for i, part in enumerate(slices))
        style = '  (* ram_style = "block" *)\n' if self.depth >= BLOCK_RAM_DEPTH else ""
        return _TEMPLATE.format(
            style=style, clears=clears,
            name=self.module_name, depth=self.depth, width=self.width, lane=self.lane,
            addr_msb=ceil_log2(self.depth) - 1, width_msb=self.width - 1, depth_msb=self.depth - 1,
            mask_port=f"  input  wire [{lanes - 1}:0] w_mask,\n" if masked else "",
            mask_conn=".w_mask(w_mask)," if masked else "", writes=writes)
