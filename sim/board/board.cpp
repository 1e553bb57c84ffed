// The verilated board as a process: its serial port is a pseudo-terminal, whose path is the first line it prints.
// Arguments: cycles per bit, fault rate per byte, seed. Ends on SIGTERM or SIGINT with a line of JSON.

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "Vtop.h"
#include "line.h"
#include "pty.h"
#include "verilated.h"

namespace {

volatile std::sig_atomic_t stopped = 0;

class Board {
public:
    Board(double cycles_per_bit, double fault_rate, uint64_t seed)
        : to_board_(fault_rate, seed * 2 + 1), to_host_(fault_rate, seed * 2 + 2), sender_(cycles_per_bit),
          receiver_(cycles_per_bit) {
        context_.threads(1);
        context_.randReset(2);
        context_.randSeed(int(seed & 0x7FFFFFFF) | 1);
        top_ = std::make_unique<Vtop>(&context_);
        top_->uart_rx = 1;
        top_->rst = 1;
        for (int i = 0; i < 8; ++i) edge();
        top_->rst = 0;
    }

    ~Board() { top_->final(); }

    const std::string& path() const { return pty_.path(); }

    void run() {
        while (!stopped) {
            pty_.read([&](uint8_t byte) { to_board_.pass(byte, sender_.queue); });
            for (int i = 0; i < kChunk; ++i) step();
            pty_.write(received_);
            // A quiet line: look in now and then, since a job may be running.
            if (quiet_ > kQuiet) pty_.wait(20);
        }
        std::printf("{\"cycles\": %llu, \"bytes_to_board\": %llu, \"bytes_to_host\": %llu, \"faults\": %llu, "
                    "\"broken\": %llu}\n", (unsigned long long)cycles_, (unsigned long long)to_board_.bytes,
                    (unsigned long long)to_host_.bytes, (unsigned long long)(to_board_.count + to_host_.count),
                    (unsigned long long)receiver_.broken);
    }

private:
    static constexpr int kChunk = 1024;
    static constexpr uint64_t kQuiet = 2000000;

    void step() {
        top_->uart_rx = sender_.level();
        edge();
        uint8_t byte;
        if (receiver_.sample(top_->uart_tx, byte)) to_host_.pass(byte, received_);
        quiet_ = sender_.busy() || receiver_.busy() ? 0 : quiet_ + 1;
    }

    void edge() {
        top_->clk = 0;
        top_->eval();
        top_->clk = 1;
        top_->eval();
        ++cycles_;
    }

    VerilatedContext context_;
    std::unique_ptr<Vtop> top_;
    board::Pty pty_;
    board::Faults to_board_, to_host_;
    board::Sender sender_;
    board::Receiver receiver_;
    std::deque<uint8_t> received_;
    uint64_t cycles_ = 0, quiet_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: %s CYCLES_PER_BIT FAULT_RATE SEED\n", arguments[0]);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // ends with the process that started it
    std::signal(SIGTERM, [](int) { stopped = 1; });
    std::signal(SIGINT, [](int) { stopped = 1; });
    Board board(std::atof(arguments[1]), std::atof(arguments[2]), std::strtoull(arguments[3], nullptr, 10));
    std::printf("%s\n", board.path().c_str());
    std::fflush(stdout);
    board.run();
    return 0;
}
