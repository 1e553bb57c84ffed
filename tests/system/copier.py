"""A small bus master with the accelerator's ports, to test the simulation harness itself.

It copies beats from one place to another in bursts, and breaks one AXI rule on request.

Registers: 0x00 source, 0x04 destination, 0x08 beats, 0x0C start (write), 0x10 status (bit 0 done, bits 3:2 worst read
response, bits 5:4 worst write response), 0x14 bug (see ``BUGS``).
"""

__all__ = ["BUGS", "copier"]

#: What the bug register makes it do wrong, and a piece of the violation that the harness must report.
BUGS = {
    1: "crosses a 4 KiB boundary",
    2: "WLAST is 1 in beat 1",
    3: "AR payload changed while waiting",
    4: "AWVALID was withdrawn",
    5: "AWSIZE is",
    6: "is not aligned to a beat",
    7: "W payload changed while waiting",
    8: "ARBURST is 0",
}

_TEXT = """\
module copier (
  input wire clk, input wire rst, output wire irq,
  output wire m_axi_awid, output wire [{a1}:0] m_axi_awaddr, output wire [7:0] m_axi_awlen,
  output wire [2:0] m_axi_awsize, output wire [1:0] m_axi_awburst, output wire m_axi_awlock,
  output wire [3:0] m_axi_awcache, output wire [2:0] m_axi_awprot, output wire [3:0] m_axi_awqos,
  output wire m_axi_awvalid, input wire m_axi_awready,
  output wire [{w1}:0] m_axi_wdata, output wire [{s1}:0] m_axi_wstrb, output wire m_axi_wlast,
  output wire m_axi_wvalid, input wire m_axi_wready,
  input wire m_axi_bid, input wire [1:0] m_axi_bresp, input wire m_axi_bvalid, output wire m_axi_bready,
  output wire m_axi_arid, output wire [{a1}:0] m_axi_araddr, output wire [7:0] m_axi_arlen,
  output wire [2:0] m_axi_arsize, output wire [1:0] m_axi_arburst, output wire m_axi_arlock,
  output wire [3:0] m_axi_arcache, output wire [2:0] m_axi_arprot, output wire [3:0] m_axi_arqos,
  output wire m_axi_arvalid, input wire m_axi_arready,
  input wire m_axi_rid, input wire [{w1}:0] m_axi_rdata, input wire [1:0] m_axi_rresp, input wire m_axi_rlast,
  input wire m_axi_rvalid, output wire m_axi_rready,
  input wire [9:0] s_axil_awaddr, input wire [2:0] s_axil_awprot, input wire s_axil_awvalid, output wire s_axil_awready,
  input wire [31:0] s_axil_wdata, input wire [3:0] s_axil_wstrb, input wire s_axil_wvalid, output wire s_axil_wready,
  output wire [1:0] s_axil_bresp, output reg s_axil_bvalid, input wire s_axil_bready,
  input wire [9:0] s_axil_araddr, input wire [2:0] s_axil_arprot, input wire s_axil_arvalid, output wire s_axil_arready,
  output reg [31:0] s_axil_rdata, output wire [1:0] s_axil_rresp, output reg s_axil_rvalid, input wire s_axil_rready
);
  localparam BYTES = {w} / 8;
  localparam BURST = (4096 / BYTES < 16) ? 4096 / BYTES : 16;
  localparam IDLE = 0, AR = 1, R = 2, AW = 3, W = 4, B = 5;
  reg [31:0] source, target, left, bug;
  reg [7:0] count, beat;
  reg [2:0] state;
  reg done, slow;
  reg [1:0] rresp, bresp;
  reg [{w1}:0] store [0:15];

  // AXI4-Lite: one access at a time.
  assign s_axil_awready = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
  assign s_axil_wready = s_axil_awready;
  assign s_axil_arready = !s_axil_rvalid;
  assign s_axil_bresp = 0, s_axil_rresp = 0;

  // Beats of the next burst: to the end of the 4 KiB page of either address, unless bug 1 forbids the care.
  wire [31:0] to_source_page = (4096 - source[11:0]) / BYTES, to_target_page = (4096 - target[11:0]) / BYTES;
  reg [31:0] burst;
  always @* begin
    burst = (left < BURST) ? left : BURST;
    if (bug != 1 && bug != 6) begin
      if (burst > to_source_page) burst = to_source_page;
      if (burst > to_target_page) burst = to_target_page;
    end
  end

  assign irq = done;
  assign m_axi_awid = 0, m_axi_awlock = 0, m_axi_awcache = 3, m_axi_awprot = 0, m_axi_awqos = 0;
  assign m_axi_arid = 0, m_axi_arlock = 0, m_axi_arcache = 3, m_axi_arprot = 0, m_axi_arqos = 0;
  assign m_axi_araddr = source + ((bug == 3 && slow) ? BYTES : 0) + ((bug == 6) ? 1 : 0);
  assign m_axi_awaddr = target, m_axi_arlen = count - 1, m_axi_awlen = count - 1;
  assign m_axi_arsize = {size}, m_axi_awsize = (bug == 5) ? {size} - 1 : {size};
  assign m_axi_arburst = (bug == 8) ? 0 : 1, m_axi_awburst = 1;
  assign m_axi_arvalid = state == AR;
  assign m_axi_awvalid = state == AW && !(bug == 4 && slow);
  assign m_axi_rready = state == R;
  assign m_axi_wvalid = state == W;
  assign m_axi_wdata = store[beat[3:0]] ^ ((bug == 7 && slow) ? 1 : 0);
  assign m_axi_wstrb = {{{s}{{1'b1}}}};
  assign m_axi_wlast = (bug == 2) ? beat == 0 : beat == count - 1;
  assign m_axi_bready = state == B;

  always @(posedge clk) begin
    slow <= (m_axi_arvalid && !m_axi_arready) || (state == AW && !m_axi_awready) || (m_axi_wvalid && !m_axi_wready);
    if (s_axil_bready) s_axil_bvalid <= 0;
    if (s_axil_rready) s_axil_rvalid <= 0;
    if (s_axil_arvalid && s_axil_arready) begin
      s_axil_rvalid <= 1;
      s_axil_rdata <= (s_axil_araddr == 16) ? {{bresp, rresp, 1'b0, done}} : (s_axil_araddr == 0) ? source : bug;
    end
    if (s_axil_awready) begin
      s_axil_bvalid <= 1;
      case (s_axil_awaddr)
        0: source <= s_axil_wdata;
        4: target <= s_axil_wdata;
        8: left <= s_axil_wdata;
        12: begin state <= AR; count <= burst; done <= 0; rresp <= 0; bresp <= 0; end
        20: bug <= s_axil_wdata;
      endcase
    end
    case (state)
      AR: if (m_axi_arready) begin state <= R; beat <= 0; end
      R: if (m_axi_rvalid) begin
        store[beat[3:0]] <= m_axi_rdata;
        beat <= beat + 1;
        if (m_axi_rresp > rresp) rresp <= m_axi_rresp;
        if (m_axi_rlast) state <= AW;
      end
      AW: if (m_axi_awready) begin state <= W; beat <= 0; end
      W: if (m_axi_wready) begin
        beat <= beat + 1;
        if (beat == count - 1) begin
          state <= B;
          source <= source + count * BYTES;
          target <= target + count * BYTES;
          left <= left - {{24'd0, count}};
        end
      end
      B: if (m_axi_bvalid) begin
        if (m_axi_bresp > bresp) bresp <= m_axi_bresp;
        state <= (left == 0) ? IDLE : AR;
        done <= left == 0;
        count <= burst;
      end
      default: ;
    endcase
    if (rst) begin
      state <= IDLE; done <= 0; s_axil_bvalid <= 0; s_axil_rvalid <= 0; bug <= 0; rresp <= 0; bresp <= 0;
    end
  end
endmodule
"""


def copier(data_bits, addr_bits=32):
    """Verilog text of the module ``copier``."""
    return _TEXT.format(w=data_bits, w1=data_bits - 1, s=data_bits // 8, s1=data_bits // 8 - 1, a1=addr_bits - 1,
                        size=(data_bits // 8).bit_length() - 1)
