// eva_word_stream: every word is made of its own beat's bits, or its own beats, in order; nothing lost or doubled;
// the stream rules at its output whenever they hold at its input.
module formal_word_stream #(parameter BEAT = 8, parameter WORD = 2) (
  input clk, input rst, input [BEAT - 1:0] i_payload, input i_valid, input o_ready, input start, input mark
);
  localparam SPLIT = BEAT / WORD;   // words of a beat
  localparam COLLECT = WORD / BEAT; // beats of a word
  wire i_ready, o_valid;
  wire [WORD - 1:0] o_payload;
  wire take = i_valid & i_ready, give = o_valid & o_ready;

  reg started = 0, i_waiting = 0, o_waiting = 0;
  reg [BEAT - 1:0] i_waited;
  reg [WORD - 1:0] o_waited;
  always @(posedge clk) begin
    started <= 1;
    i_waiting <= started & i_valid & !i_ready;
    o_waiting <= started & o_valid & !o_ready;
    i_waited <= i_payload;
    o_waited <= o_payload;
  end
  always @(*) begin
    assume(rst == !started);
    if (i_waiting) assume(i_valid && i_payload == i_waited);
    if (started && o_waiting && !start) assert(o_valid && o_payload == o_waited);
    if (started && start) assert(!o_valid);
  end

  generate if (SPLIT > 1) begin
    reg [15:0] words;  // of this beat given so far
    wire [$clog2(SPLIT) - 1:0] at;
    `DUT dut(
      .clk(clk), .rst(rst), .i_payload(i_payload), .i_valid(i_valid), .i_ready(i_ready),
      .o_payload(o_payload), .o_valid(o_valid), .o_ready(o_ready), .start(start), .f_at(at)
    );
    always @(posedge clk) begin
      if (rst | take) words <= 0;
      else if (give) words <= words + 1;
    end
    always @(*) if (started) begin
      if (!start) assert(o_valid == i_valid);
      assert(o_payload == i_payload[words * WORD +: WORD]);
      // A beat leaves with its last word, or, begun, when a new one is called for.
      if (i_valid) assert(take == (start ? words != 0 : give && words == SPLIT - 1));
      assert(words < SPLIT && at == words);
      if (words != 0) assert(i_waiting);
    end
  end else begin
    reg [15:0] beats, place;  // beats kept so far; the marked one's place among them
    reg inside;
    reg [BEAT - 1:0] kept;
    wire [$clog2(COLLECT) - 1:0] have;
    wire [WORD - BEAT - 1:0] before;
    `DUT dut(
      .clk(clk), .rst(rst), .i_payload(i_payload), .i_valid(i_valid), .i_ready(i_ready),
      .o_payload(o_payload), .o_valid(o_valid), .o_ready(o_ready), .start(start), .f_have(have), .f_before(before)
    );
    always @(posedge clk) begin
      if (take && mark && !inside) begin
        inside <= 1;
        place <= beats;
        kept <= i_payload;
      end
      if (take) beats <= beats + 1;
      if (rst | start | give) {beats, inside} <= 0;
    end
    always @(*) if (started) begin
      assert(o_valid == (!start && i_valid && beats == COLLECT - 1));
      if (beats == COLLECT - 1) assert(take == give);
      else assert(i_ready == !start);
      if (o_valid) assert(o_payload[WORD - 1 -: BEAT] == i_payload);
      if (o_valid && inside) assert(o_payload[place * BEAT +: BEAT] == kept);
      assert(beats < COLLECT && have == beats);
      if (inside) assert(place < beats && before[(COLLECT - 1 + place - beats) * BEAT +: BEAT] == kept);
    end
  end endgenerate
endmodule
