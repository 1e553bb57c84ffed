// Exact sums of 8, 16, 24 and 32 products in a chain of array slots, new operands every cycle; and INT8 sums of 32.
//
//   chain fp16 COUNT SEED   until COUNT sums have been compared
//   chain int8 COUNT SEED

#include <cstdlib>
#include <cstring>
#include <memory>

#include "Vchain.h"
#include "oracle.h"
#include "report.h"
#include "terms.h"
#include "verilated.h"

using namespace bench;

namespace {

constexpr int kSlots = 4, kRows = 8 * kSlots;
constexpr int kRing = 64;  // cycles that anything has to be remembered for

struct Entry {
    Term terms[kRows];
    uint32_t int8_weights[kRows];
    oracle::Rounded wanted[kSlots];
    uint32_t sums[4];
    int stratum[kSlots];
};

class Bench {
public:
    Bench(bool fp16, uint64_t seed)
        : random_(seed), terms_(random_), fp16_(fp16), top_(std::make_unique<Vchain>(&context_)) {
        top_->i_fp16 = fp16;
        top_->rst = 1;
        for (int i = 0; i < 4; ++i) step();
        top_->rst = 0;
    }

    // Runs of a static exponent and join, the pipeline empty in between.
    void run(uint64_t wanted) {
        for (int b = 0; report_.compared < wanted; b = (b + 1) % 32) {
            stream(512, fp16_ && random_.once_in(2), random_.once_in(2) ? b : random_.between(0, 3));
            report_.progress();
        }
        counters();
        report_.finish();
    }

private:
    void step() {
        top_->clk = 0;
        top_->eval();
        top_->clk = 1;
        top_->eval();
    }

    // Entry n's row r has its operand on ld_data in cycle n + r, its activation a cycle later.
    void stream(int entries, bool join, int b) {
        top_->i_join = join || !fp16_, top_->i_exponent = uint8_t(b);
        const int cycles = entries + kRows + CHAIN_LATENCY + 1;
        for (int t = 0; t < cycles; ++t) {
            if (t < entries) fp16_ ? make(ring_[t % kRing], join, b) : make_int8(ring_[t % kRing]);
            for (int r = 0; r < kRows; ++r) {
                const Entry& load = ring_[(t - r + kRing) % kRing];
                const uint32_t random_half = uint32_t(load.terms[r].x) << 16;  // no operand in FP16 mode
                top_->ld_data[r] = fp16_ ? load.terms[r].w | random_half : load.int8_weights[r];
                const uint32_t a = ring_[(t - r - 1 + kRing) % kRing].terms[r].x;
                uint32_t& word = top_->i_a[r / 2];
                word = r % 2 ? (word & 0xFFFF) | a << 16 : (word & 0xFFFF0000) | a;
            }
            step();
            fp16_ ? compare(t, entries, join, b) : compare_int8(t, entries);
        }
    }

    void make(Entry& entry, bool join, int b) {
        const int groups = join ? 1 : kSlots, rows = kRows / groups;
        for (int g = 0; g < groups; ++g) {
            const int stratum = int(random_.below(kStrataCount));
            for (int s = g; s < (join ? kSlots : g + 1); ++s) entry.stratum[s] = stratum;
            terms_.fill(stratum, entry.terms + g * rows, rows, b);
        }
        oracle::Dot dot;
        for (int r = 0; r < kRows; ++r) {
            if (!join && r % 8 == 0) dot = {};
            dot.add(entry.terms[r].x, entry.terms[r].w);
            if (r % 8 == 7) entry.wanted[r / 8] = dot.rounded(b);
        }
    }

    void make_int8(Entry& entry) {
        std::memset(entry.sums, 0, sizeof entry.sums);
        const bool extreme = random_.once_in(8);
        for (int r = 0; r < kRows; ++r) {
            entry.terms[r].x = extreme ? 0x80 : uint16_t(random_.bits());
            entry.int8_weights[r] = extreme ? 0x80807F7F : uint32_t(random_.bits());
            for (int k = 0; k < 4; ++k)
                entry.sums[k] += uint32_t(int8_t(entry.terms[r].x) * int8_t(entry.int8_weights[r] >> 8 * k));
        }
    }

    void compare(int t, int entries, bool join, int b) {
        for (int s = 0; s < kSlots; ++s) {
            const int n = t - 8 * s - CHAIN_LATENCY;
            if (n < 0 || n >= entries) continue;
            const Entry& entry = ring_[n % kRing];
            const oracle::Rounded wanted = entry.wanted[s];
            const uint32_t bits = top_->o_value >> 16 * s & 0xFFFF;
            const bool overflow = top_->o_overflow >> s & 1;
            const int d = join ? 8 * (s + 1) : 8;
            tally(wanted, d, entry.stratum[s]);
            if (!report_.check(bits == wanted.bits && overflow == wanted.overflow)) continue;
            std::string text;
            for (int r = 8 * (s + 1) - d; r < 8 * (s + 1); ++r) {
                char term[16];
                std::snprintf(term, sizeof term, " %04X*%04X", entry.terms[r].x, entry.terms[r].w);
                text += term;
            }
            report_.mismatch("%s b = %d:%s: RTL 0x%04X overflow %d, exact 0x%04X overflow %d",
                             kStrata[entry.stratum[s]], b, text.c_str(), bits, overflow, wanted.bits,
                             wanted.overflow);
        }
    }

    void compare_int8(int t, int entries) {
        const int n = t - 8 * (kSlots - 1) - SUM_LATENCY;
        if (n < 0 || n >= entries) return;
        const uint32_t* wanted = ring_[n % kRing].sums;
        for (int k = 0; k < 4; ++k)
            if (report_.check(top_->o_p[k] == wanted[k]))
                report_.mismatch("INT8 sum of 32, lane %d: RTL 0x%08X, exact 0x%08X", k, top_->o_p[k], wanted[k]);
    }

    void tally(const oracle::Rounded& wanted, int d, int stratum) {
        const uint32_t magnitude = wanted.bits & 0x7FFF;
        ++length_[d / 8], ++strata_[stratum];
        nan_ += magnitude > 0x7C00, infinite_ += magnitude == 0x7C00 && !wanted.overflow;
        overflow_ += wanted.overflow, tie_ += wanted.tie, zero_ += !magnitude;
        subnormal_ += magnitude && magnitude < 0x400;
    }

    void counters() {
        if (!fp16_) return;
        for (int d = 1; d <= kSlots; ++d) report_.count("d" + std::to_string(8 * d)) = length_[d];
        for (int s = 0; s < kStrataCount; ++s) report_.count(std::string("stratum_") + kStrata[s]) = strata_[s];
        report_.count("result_nan") = nan_, report_.count("result_infinite") = infinite_;
        report_.count("result_overflow") = overflow_, report_.count("result_tie") = tie_;
        report_.count("result_zero") = zero_, report_.count("result_subnormal") = subnormal_;
    }

    Random random_;
    Terms terms_;
    bool fp16_;
    VerilatedContext context_;
    std::unique_ptr<Vchain> top_;
    Entry ring_[kRing] = {};
    Report report_;
    uint64_t length_[kSlots + 1] = {}, strata_[kStrataCount] = {};
    uint64_t nan_ = 0, infinite_ = 0, overflow_ = 0, tie_ = 0, zero_ = 0, subnormal_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
    const bool fp16 = count == 4 && !std::strcmp(arguments[1], "fp16");
    if (!fp16 && (count != 4 || std::strcmp(arguments[1], "int8"))) {
        std::fprintf(stderr, "usage: %s fp16|int8 COUNT SEED\n", arguments[0]);
        return 2;
    }
    Bench(fp16, std::strtoull(arguments[3], nullptr, 0)).run(std::strtoull(arguments[2], nullptr, 0));
    return 0;
}
