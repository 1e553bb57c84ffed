// One marked item among all that pass a first-in-first-out component, chosen freely by the solver.
// What holds for it holds for every item: it leaves after exactly those that were inside when it came.
module formal_ghost #(parameter DEPTH = 2, parameter WIDTH = 1) (
  input clk, input clear, input mark, input push, input pop, input [WIDTH - 1:0] data,
  output reg [15:0] count,        // items inside
  output reg inside,              // the marked item is one of them
  output reg [15:0] ahead,        // so many of them leave before it
  output reg [WIDTH - 1:0] kept   // the marked item
);
  always @(posedge clk) begin
    count <= count + push - pop;
    if (push && mark && !inside) begin
      inside <= 1;
      ahead <= count - pop;
      kept <= data;
    end else if (inside && pop) begin
      if (ahead == 0) inside <= 0;
      else ahead <= ahead - 1;
    end
    if (clear) begin
      count <= 0;
      inside <= 0;
    end
  end
endmodule
