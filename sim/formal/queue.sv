// eva_queue: first in first out, nothing lost, doubled or changed, and the stream rules at its output.
module formal_queue #(parameter DEPTH = 2, parameter WIDTH = 1) (
  input clk, input rst, input [WIDTH - 1:0] i_payload, input i_valid, input o_ready, input mark
);
  wire i_ready, o_valid, inside;
  wire [WIDTH - 1:0] o_payload, kept;
  wire [DEPTH - 1:0] used;
  wire [DEPTH * WIDTH - 1:0] entries;
  wire [15:0] count, ahead;
  `DUT dut(
    .clk(clk), .rst(rst), .i_payload(i_payload), .i_valid(i_valid), .i_ready(i_ready),
    .o_payload(o_payload), .o_valid(o_valid), .o_ready(o_ready), .f_used(used), .f_entries(entries)
  );
  wire push = i_valid & i_ready, pop = o_valid & o_ready;
  formal_ghost #(.DEPTH(DEPTH), .WIDTH(WIDTH)) ghost(
    .clk(clk), .clear(rst), .mark(mark), .push(push), .pop(pop), .data(i_payload),
    .count(count), .inside(inside), .ahead(ahead), .kept(kept)
  );

  reg started = 0, waiting = 0;
  reg [WIDTH - 1:0] waited;
  always @(posedge clk) begin
    started <= 1;
    waiting <= started & o_valid & !o_ready;
    waited <= o_payload;
  end
  always @(*) begin
    assume(rst == !started);
    if (started) begin
      // The contract.
      assert(o_valid == (count != 0));
      assert(i_ready == (count != DEPTH));
      if (inside && ahead == 0) assert(o_valid && o_payload == kept);
      if (waiting) assert(o_valid && o_payload == waited);
      // What makes it inductive: where the marked item lies.
      assert(count <= DEPTH);
      assert(used == (1 << count) - 1);
      if (inside) assert(ahead < count && entries[ahead * WIDTH +: WIDTH] == kept);
    end else assert(!waiting);
  end
endmodule
