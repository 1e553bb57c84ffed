// eva_beat_fifo, of flip-flops (IN_SRAM = 0) or around an SRAM: first in first out up to DEPTH beats, emptied by
// flush, the stream rules at its output; and the SRAM is never read at the word that is being written.
module formal_beat_fifo #(parameter DEPTH = 5, parameter WIDTH = 1, parameter IN_SRAM = 1, parameter AT = 3,
                          parameter LEVEL = 3) (
  input clk, input rst, input [WIDTH - 1:0] i_data, input i_valid, input o_ready, input flush, input mark
);
  wire o_valid, inside;
  wire [WIDTH - 1:0] o_payload, kept;
  wire [DEPTH * WIDTH - 1:0] entries;
  wire [15:0] count, ahead;
  wire pop = o_valid & o_ready;
  formal_ghost #(.DEPTH(DEPTH), .WIDTH(WIDTH)) ghost(
    .clk(clk), .clear(rst | flush), .mark(mark), .push(i_valid), .pop(pop), .data(i_data),
    .count(count), .inside(inside), .ahead(ahead), .kept(kept)
  );

  reg started = 0, waiting = 0;
  reg [WIDTH - 1:0] waited;
  reg [1:0] idle = 0;  // cycles in which beats were inside and none was offered, and one more
  always @(posedge clk) begin
    started <= 1;
    waiting <= started & o_valid & !o_ready & !flush;
    waited <= o_payload;
  end
  always @(*) begin
    assume(rst == !started);
    // Whoever writes holds credits: a beat that leaves makes room in the same cycle.
    if (i_valid) assume(count - pop < DEPTH);
    if (started) begin
      if (o_valid) assert(count != 0);
      if (inside && ahead == 0 && o_valid) assert(o_payload == kept);
      if (waiting) assert(o_valid && o_payload == waited);
      assert(count <= DEPTH);
      if (inside) assert(ahead < count);
    end else assert(!waiting);
  end

  generate if (IN_SRAM) begin
    wire [AT - 1:0] write_at, read_at;
    wire [LEVEL - 1:0] level;
    wire nonempty, fetched, read, full, front, back;
    wire [WIDTH - 1:0] word, payload_0, payload_1;
    wire [15:0] shown = o_valid + full;  // beats in the two output registers
    `DUT dut(
      .clk(clk), .rst(rst), .i_valid(i_valid), .i_data(i_data), .o_valid(o_valid), .o_payload(o_payload),
      .o_ready(o_ready), .flush(flush), .f_write_at(write_at), .f_read_at(read_at), .f_level(level),
      .f_nonempty(nonempty), .f_fetched(fetched), .f_read(read), .f_word(word), .f_entries(entries),
      .f_full(full), .f_front(front), .f_back(back), .f_payload_0(payload_0), .f_payload_1(payload_1)
    );
    wire [15:0] slot = read_at + ahead - shown - fetched;
    wire [15:0] at = slot >= DEPTH ? slot - DEPTH : slot;
    wire [15:0] end_at = read_at + level;
    always @(*) if (started) begin
      assert(!(i_valid && read && write_at == read_at));
      // What makes it inductive: the beats inside are at the output, behind the SRAM, and in it, in this order.
      assert(count == level + fetched + shown);
      assert(!full || o_valid);
      assert(back == (front ^ (shown == 1)));
      assert(nonempty == (level != 0));
      assert(read_at < DEPTH);
      assert(write_at == (end_at >= DEPTH ? end_at - DEPTH : end_at));
      if (inside) begin
        if (ahead < shown) assert((front ^ (ahead == 1) ? payload_1 : payload_0) == kept);
        else if (ahead < shown + fetched) assert(word == kept);
        else assert(entries[at * WIDTH +: WIDTH] == kept);
      end
    end
    // Nothing stays inside: a beat is offered at the latest 3 cycles after it came.
    always @(posedge clk) idle <= (rst | flush | o_valid | count == 0) ? 0 : idle + 1;
    always @(*) if (started) begin
      assert(idle <= 2);
      if (idle == 1) assert(o_valid | fetched);
      if (idle == 2) assert(o_valid);
    end else assert(idle == 0);
  end else begin
    wire [DEPTH - 1:0] used;
    `DUT dut(
      .clk(clk), .rst(rst), .i_valid(i_valid), .i_data(i_data), .o_valid(o_valid), .o_payload(o_payload),
      .o_ready(o_ready), .flush(flush), .f_used(used), .f_entries(entries)
    );
    always @(*) if (started) begin
      assert(o_valid == (count != 0));
      assert(used == (1 << count) - 1);
      if (inside) assert(entries[ahead * WIDTH +: WIDTH] == kept);
    end
  end endgenerate
endmodule
