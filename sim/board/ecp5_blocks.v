// ECP5 blocks for which Yosys has no simulation model, as far as its mapping uses them: a combinational multiplier, and
// the block RAM. A word that one port reads while the other writes it gives its complement: nothing may rely on it.

module MULT18X18D (
  input A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17,
  input B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15, B16, B17,
  input C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, C14, C15, C16, C17,
  input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  output P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15, P16, P17,
  output P18, P19, P20, P21, P22, P23, P24, P25, P26, P27, P28, P29, P30, P31, P32, P33, P34, P35
);
  wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  wire signed [37:0] wide_a = {{20{SIGNEDA & a[17]}}, a};
  wire signed [37:0] wide_b = {{20{SIGNEDB & b[17]}}, b};
  wire signed [37:0] product = wide_a * wide_b;
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
          P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = product[35:0];
endmodule

// One port's view: which of the four bytes from `base` it touches, and how bits of other widths lie in them.
module DP16KD #(
  parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18,
  parameter REGMODE_A = "NOREG", REGMODE_B = "NOREG", RESETMODE = "SYNC", ASYNC_RESET_RELEASE = "SYNC",
  parameter CSDECODE_A = "0b000", CSDECODE_B = "0b000", CLKAMUX = "CLKA", CLKBMUX = "CLKB",
  parameter WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL", GSR = "AUTO",
  // Contents at the beginning, if there are any: byte i in the i-th nine bits.
  parameter FILLED = 0, parameter [18431:0] CONTENTS = 0
) (
  input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1,
        DIA0,
  input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
  output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1,
         DOA0,
  input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1,
        DIB0,
  input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
  output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1,
         DOB0
);
  wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  wire [17:0] dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3,
                     DIA2, DIA1, DIA0};
  wire [17:0] dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3,
                     DIB2, DIB1, DIB0};

  // 2048 bytes of nine bits; ports of less than nine leave the ninth alone.
  reg [8:0] mem [0:2047];
  generate if (FILLED != 0) begin : fill
    integer i;
    initial for (i = 0; i < 2048; i = i + 1) mem[i] = CONTENTS[9 * i +: 9];
  end endgenerate

  function [10:0] first_byte(input [13:0] address, input integer width);
    first_byte = width == 36 ? {address[13:5], 2'b00} : width == 18 ? {address[13:4], 1'b0} : address[13:3];
  endfunction

  // Bits of four bytes that a write changes.
  function [35:0] mask(input [13:0] address, input integer width);
    case (width)
      36: mask = {{9{address[3]}}, {9{address[2]}}, {9{address[1]}}, {9{address[0]}}};
      18: mask = {18'd0, {9{address[1]}}, {9{address[0]}}};
      9: mask = 36'h1FF;
      4: mask = 36'hF << 4 * address[2];
      2: mask = 36'h3 << 2 * address[2:1];
      default: mask = 36'h1 << address[2:0];
    endcase
  endfunction

  // Where a narrow port's bits begin in its byte.
  function [2:0] place(input [13:0] address, input integer width);
    place = width >= 9 ? 3'd0 : width == 4 ? {address[2], 2'b00} : width == 2 ? {address[2:1], 1'b0} : address[2:0];
  endfunction

  wire [10:0] byte_a = first_byte(ada, DATA_WIDTH_A), byte_b = first_byte(adb, DATA_WIDTH_B);
  wire [2:0] place_a = place(ada, DATA_WIDTH_A), place_b = place(adb, DATA_WIDTH_B);
  wire [35:0] mask_a = mask(ada, DATA_WIDTH_A) & {36{CEA & WEA}}, mask_b = mask(adb, DATA_WIDTH_B) & {36{CEB & WEB}};
  wire [35:0] data_a = {dib, dia} << place_a, data_b = {18'd0, dib} << place_b;
  wire [35:0] old_a = {mem[byte_a | 11'd3], mem[byte_a | 11'd2], mem[byte_a | 11'd1], mem[byte_a]};
  wire [35:0] old_b = {mem[byte_b | 11'd3], mem[byte_b | 11'd2], mem[byte_b | 11'd1], mem[byte_b]};
  wire [35:0] new_a = (data_a & mask_a) | (old_a & ~mask_a), new_b = (data_b & mask_b) | (old_b & ~mask_b);
  wire clash = byte_a[10:2] == byte_b[10:2];
  reg [35:0] qa, qb;

  always @(posedge CLKA) begin
    if (mask_a != 0) begin
      mem[byte_a] <= new_a[8:0];
      if (DATA_WIDTH_A >= 18) mem[byte_a | 11'd1] <= new_a[17:9];
      if (DATA_WIDTH_A == 36) begin
        mem[byte_a | 11'd2] <= new_a[26:18];
        mem[byte_a | 11'd3] <= new_a[35:27];
      end
    end
    if (RSTA) qa <= 0;
    else if (CEA && (!WEA || WRITEMODE_A != "NORMAL"))
      qa <= (WRITEMODE_A == "WRITETHROUGH" ? new_a : old_a) >> place_a ^ {36{clash && mask_b != 0}};
  end
  always @(posedge CLKB) begin
    if (mask_b != 0) begin
      mem[byte_b] <= new_b[8:0];
      if (DATA_WIDTH_B >= 18) mem[byte_b | 11'd1] <= new_b[17:9];
    end
    if (RSTB) qb <= 0;
    else if (CEB && (!WEB || WRITEMODE_B != "NORMAL"))
      qb <= (WRITEMODE_B == "WRITETHROUGH" ? new_b : old_b) >> place_b ^ {36{clash && mask_a != 0}};
  end

  // A read of 36 bits uses both outputs.
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1,
          DOA0} = DATA_WIDTH_B == 36 ? qb[17:0] : qa[17:0];
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1,
          DOB0} = DATA_WIDTH_B == 36 ? qb[35:18] : qb[17:0];
endmodule
