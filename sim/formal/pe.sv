// What one eva_mixed_pe adds to the sums that move through it, for all operands and all incoming sums.
// PROPERTY 0: the composed significand product. 1: one step of the limb-wise FP16 sum. 2: the INT8 lanes.
// 3: what is kept of the active operand beside it, is its exponent field 0, stays true: the others take that for granted.
// Property 0 is split: the four partial products and their sum here, 11 x 11 bits as such a sum in identity.py.
module formal_pe #(parameter PROPERTY = 0, parameter LOW = 7) (
  input clk, input rst,
  input [15:0] i_a, input i_swap, input [127:0] i_p, input [1:0] i_carry, input ld_en, input [31:0] ld_data
);
  wire [15:0] o_a;
  wire o_swap;
  wire [127:0] o_p;
  wire [1:0] o_carry;
  wire [21:0] product;
  wire [31:0] active;
  wire active_normal;
  wire [63:0] partial;
  `DUT dut(
    .clk(clk), .rst(rst), .i_fp16(PROPERTY != 2), .i_a(i_a), .i_swap(i_swap), .i_p(i_p), .i_carry(i_carry),
    .ld_en(ld_en), .ld_data(ld_data), .o_a(o_a), .o_swap(o_swap), .o_p(o_p), .o_carry(o_carry),
    .f_product(product), .f_active(active), .f_normal(active_normal),
    .f_partial(partial)
  );

  // The operands (registered: o_a) and the sum that belong to o_p: 3 cycles and 1 cycle ago.
  reg [15:0] a1, a2, a3;
  reg [31:0] w1, w2, w3;
  reg [21:0] product2, product3;
  reg [127:0] p3;
  reg [1:0] carry3;
  reg [2:0] age = 0;
  always @(posedge clk) begin
    {a1, a2, a3} <= {o_a, a1, a2};
    {w1, w2, w3} <= {active, w1, w2};
    {product2, product3} <= {product, product2};
    {p3, carry3} <= {i_p, i_carry};
    if (age != 4) age <= age + 1;
  end

  function [10:0] significand(input [15:0] x);
    significand = {x[14:10] != 0, x[9:0]};
  endfunction
  function [5:0] place(input [15:0] x);
    place = x[14:10] == 0 ? 0 : x[14:10] - 1;
  endfunction
  function is_nan(input [15:0] x);
    is_nan = x[14:10] == 31 && x[9:0] != 0;
  endfunction
  function is_inf(input [15:0] x);
    is_inf = x[14:0] == 15'h7C00;
  endfunction
  function is_zero(input [15:0] x);
    is_zero = x[14:0] == 0;
  endfunction
  // The number that three limbs and the carries waiting between them stand for.
  function [95:0] value(input [95:0] p, input [1:0] carry);
    value = p + ({95'd0, carry[0]} << 32) + ({95'd0, carry[1]} << 64);
  endfunction

  wire kept = active_normal == (active[14:10] != 0);
  generate
    if (PROPERTY == 3) begin
      // From the first swap on; before that there is no operand.
      reg swapped = 0;
      always @(posedge clk) if (i_swap) swapped <= 1;
      always @(*) if (swapped) assert(kept);
    end else begin
      always @(*) assume(kept);
    end
    if (PROPERTY == 0) begin
      wire [10:0] sa = significand(o_a), sw = significand(active[15:0]);
      wire [21:0] low_a = sa[LOW - 1:0], high_a = sa[10:LOW], low_w = sw[LOW - 1:0], high_w = sw[10:LOW];
      reg [21:0] low_low, low_high, high_low, high_high;
      always @(posedge clk) begin
        low_low <= low_a * low_w;
        low_high <= low_a * high_w;
        high_low <= high_a * low_w;
        high_high <= high_a * high_w;
      end
      always @(*) if (age > 1) begin
        assert(partial == {high_high[15:0], high_low[15:0], low_high[15:0], low_low[15:0]});
        assert(product == low_low + ((low_high + high_low) << LOW) + (high_high << (2 * LOW)));
      end
    end
    if (PROPERTY == 1) begin
      wire nan = is_nan(a3) | is_nan(w3[15:0]) | (is_inf(a3) & is_zero(w3[15:0])) | (is_zero(a3) & is_inf(w3[15:0]));
      wire inf = (is_inf(a3) | is_inf(w3[15:0])) & !nan;
      wire negative = a3[15] ^ w3[15];
      wire [95:0] magnitude = nan | inf ? 96'd0 : {74'd0, product3} << (place(a3) + place(w3[15:0]));
      wire [95:0] term = negative ? -magnitude : magnitude;
      wire [31:0] counts = {15'd0, nan, 7'd0, inf & !negative, 7'd0, inf & negative};
      always @(*) if (age == 4) begin
        assert(value(o_p[95:0], o_carry) == value(p3[95:0], carry3) + term);
        assert(o_p[127:96] == p3[127:96] + counts);
      end
    end
    if (PROPERTY == 2) begin
      genvar k;
      for (k = 0; k < 4; k = k + 1) begin : lane
        reg signed [15:0] exact1, exact2, exact3;
        always @(posedge clk) begin
          exact1 <= $signed(o_a[7:0]) * $signed(active[8 * k +: 8]);
          {exact2, exact3} <= {exact1, exact2};
        end
        wire signed [31:0] wide = exact3;
        always @(*) if (age == 4) assert(o_p[32 * k +: 32] == p3[32 * k +: 32] + wide);
      end
      // Carries from the row above are 0 then, as this row's are.
      always @(*) begin
        assume(i_carry == 0);
        if (age == 4) assert(o_carry == 0);
      end
    end
  endgenerate
endmodule
