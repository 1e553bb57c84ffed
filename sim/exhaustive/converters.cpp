// Every FP16 value through every converter, and every border between neighbouring FP16 values through both rounders.
//
//   converters LOG2_SAMPLE SEED   borders: all shifts b, or with a sample only some

#include <cstdlib>
#include <cstring>
#include <memory>

#include "Vconverters.h"
#include "oracle.h"
#include "random.h"
#include "report.h"
#include "verilated.h"

using namespace bench;
using oracle::Kind;

namespace {

constexpr uint16_t kOne = 0x3C00, kSmallestNormal = 0x0400;  // 1 and 2^-14
constexpr int kRing = 32;

// What a pipeline is to give, remembered until it does.
template <class Wanted>
struct Ring {
    Wanted entries[kRing];
    uint64_t given = 0, taken = 0;
};

class Bench {
public:
    // There is nothing to reset.
    explicit Bench(uint64_t seed) : random_(seed), top_(std::make_unique<Vconverters>(&context_)) {}

    void run(int log2_sample) {
        section("fixed", [&] { fixed(); });
        section("output", [&] { output_operands(); });
        section("output_borders", [&] { output_borders(); });
        section("oc_specials", [&] { oc_specials(); });
        section("oc_borders", [&] {
            for (int b = 0; b < 32; ++b)
                if (!log2_sample || b % 8 == 0 || b == 31) oc_borders(b);
        });
        report_.finish();
    }

private:
    template <class Body>
    void section(const char* name, Body body) {
        const uint64_t before = report_.compared;
        body();
        report_.count(name) = report_.compared - before;
    }

    void step() {
        top_->clk = 0;
        top_->eval();
        top_->clk = 1;
        top_->eval();
    }

    // FP16 to fixed point; combinational.
    void fixed() {
        for (uint32_t bits = 0; bits < 0x20000; ++bits) {
            const bool enable = bits >> 16;
            top_->fixed_i_value = uint16_t(bits), top_->fixed_i_en = enable;
            step();
            const auto v = oracle::decode(uint16_t(bits));
            int64_t wanted = enable && v.kind == Kind::finite ? int64_t(v.significand) << (v.exponent + 24) : 0;
            if (v.negative) wanted = -wanted;
            const uint32_t flags = !enable || v.kind == Kind::finite ? 0 : v.kind == Kind::nan ? 1 : v.negative ? 4 : 2;
            const int64_t found = (int64_t(top_->fixed_o_fixed << 23) >> 23) + top_->fixed_o_carry;
            if (report_.check(found == wanted && top_->fixed_o_flags == flags))
                report_.mismatch("FP16 0x%04X to fixed, enable %d: RTL %" PRId64 " flags %d, "
                                 "exact %" PRId64 " flags %u",
                                 bits & 0xFFFF, enable, found, top_->fixed_o_flags, wanted, flags);
            report_.progress();
        }
    }

    struct Result {
        oracle::Output from;
        oracle::Rounded wanted;
        bool single;
    };

    // One set of operands into the output stage; compares what leaves it.
    void output(const oracle::Output& o, bool single) {
        top_->output_i_sum = uint64_t(o.sum) & ((uint64_t(1) << 56) - 1);
        top_->output_i_flags = uint8_t(o.nan | o.plus << 1 | o.minus << 2);
        top_->output_i_scale = o.scale, top_->output_i_row_scale = o.row_scale, top_->output_i_bias = o.bias;
        top_->output_i_exponent = uint8_t(o.b), top_->output_i_fp32 = single;
        outputs_.entries[outputs_.given++ % kRing] = {o, finish(o, single ? oracle::kSingle : oracle::kHalf), single};
        output_cycle();
    }

    void output_cycle() {
        step();
        if (++output_cycles_ < OUTPUT_LATENCY || outputs_.taken == outputs_.given) return;
        const Result& r = outputs_.entries[outputs_.taken++ % kRing];
        const auto& format = r.single ? oracle::kSingle : oracle::kHalf;
        const bool nan = r.wanted.bits == format.nan;
        if (report_.check(top_->output_o_y == r.wanted.bits && top_->output_o_overflow == r.wanted.overflow &&
                          top_->output_o_nan == nan))
            report_.mismatch("output S %" PRId64 " flags %d%d%d scale %04X row %04X bias %04X b %d to FP%d: RTL 0x%08X "
                             "overflow %d NaN %d, exact 0x%08X overflow %d NaN %d", r.from.sum, r.from.nan, r.from.plus,
                             r.from.minus, r.from.scale, r.from.row_scale, r.from.bias, r.from.b, r.single ? 32 : 16,
                             top_->output_o_y, top_->output_o_overflow, top_->output_o_nan, r.wanted.bits,
                             r.wanted.overflow, nan);
        report_.progress();
    }

    void output_drain() {
        while (outputs_.taken < outputs_.given) output_cycle();
        output_cycles_ = 0;
    }

    // Every FP16 value as S, scale, row scale and bias (added to 0 and to 1), to FP16 and FP32.
    void output_operands() {
        constexpr int64_t one = 1 << 24;
        for (uint32_t bits = 0; bits < 0x10000; ++bits) {
            const uint16_t value = uint16_t(bits);
            const auto v = oracle::decode(value);
            const bool finite = v.kind == Kind::finite, infinite = v.kind == Kind::infinite;
            const int64_t magnitude = finite ? int64_t(v.significand) << (v.exponent + 24) : 0;
            const oracle::Output as_sum{v.negative ? -magnitude : magnitude, v.kind == Kind::nan,
                                        infinite && !v.negative, infinite && v.negative, kOne, kOne, 0, 0};
            for (const bool single : {false, true}) {
                output(as_sum, single);
                output({one, false, false, false, value, kOne, 0, 0}, single);
                output({one, false, false, false, kOne, value, 0, 0}, single);
                output({0, false, false, false, kOne, kOne, value, 0}, single);
                output({one, false, false, false, kOne, kOne, value, 0}, single);
            }
        }
        output_drain();
    }

    // A finite pattern's value, and the middle between it and its upper neighbour, in units of 2^-25.
    static int64_t in_units(uint32_t pattern) {
        if (pattern == 0x7C00) return int64_t(1) << 41;  // where infinity begins
        const auto v = oracle::decode(uint16_t(pattern));
        return int64_t(v.significand) << (v.exponent + 25);
    }
    static int64_t middle(uint32_t pattern) { return (in_units(pattern) + in_units(pattern + 1)) / 2; }

    // S just below, in, and just above the middle of all neighbours, and both signs; scale 2^-14 gives S 13 bits more.
    void output_borders() {
        for (uint32_t pattern = 0; pattern < 0x7C00; ++pattern)
            for (int64_t beside = -1; beside <= 1; ++beside) {
                const int64_t sum = (middle(pattern) << 13) + beside;
                output({sum, false, false, false, kSmallestNormal, kOne, 0, 0}, false);
                output({-sum, false, false, false, kSmallestNormal, kOne, 0, 0}, false);
            }
        output_drain();
    }

    struct Sum {
        __int128 units;
        uint32_t counts;
        oracle::Rounded wanted;
    };

    // One sum into the OC rounder, its carries split off at random; compares what leaves it.
    void oc(__int128 units, uint32_t counts, int b) {
        const bool nan = counts >> 16, plus = counts >> 8 & 255, minus = counts & 255;
        const uint32_t carries = random_.below(4);
        const auto rest = oracle::Wide(units) - (oracle::Wide(carries & 1) << 32) - (oracle::Wide(carries >> 1) << 64);
        for (int k = 0; k < 3; ++k) top_->oc_i_p[k] = uint32_t(rest >> 32 * k);
        top_->oc_i_p[3] = counts, top_->oc_i_carry = uint8_t(carries), top_->oc_i_exponent = uint8_t(b);
        oracle::Rounded wanted{0x7E00};
        if (nan || (plus && minus)) wanted = {0x7E00};
        else if (plus || minus) wanted = {minus ? 0xFC00u : 0x7C00u};
        else wanted = oracle::round(units < 0, oracle::Wide(units < 0 ? -units : units), -48 - b);
        sums_.entries[sums_.given++ % kRing] = {units, counts, wanted};
        oc_cycle(b);
    }

    void oc_cycle(int b) {
        step();
        if (++oc_cycles_ < OC_LATENCY || sums_.taken == sums_.given) return;
        const Sum& r = sums_.entries[sums_.taken++ % kRing];
        if (report_.check(top_->oc_o_value == r.wanted.bits && top_->oc_o_overflow == r.wanted.overflow))
            report_.mismatch("OC rounder, sum 0x%016" PRIX64 "%016" PRIX64 " specials 0x%06X b %d: "
                             "RTL 0x%04X overflow %d, exact 0x%04X overflow %d",
                             uint64_t(r.units >> 64), uint64_t(r.units), r.counts, b, top_->oc_o_value,
                             top_->oc_o_overflow, r.wanted.bits, r.wanted.overflow);
        report_.progress();
    }

    void oc_drain(int b) {
        while (sums_.taken < sums_.given) oc_cycle(b);
        oc_cycles_ = 0;
    }

    // Every value, and just below, in, and just above every middle, of both signs, as a sum for shift b.
    void oc_borders(int b) {
        constexpr __int128 largest = __int128(32) * 2047 * 2047 << 58;  // of 32 products
        for (uint32_t pattern = 0; pattern < 0x7C00; ++pattern) {
            const __int128 exact = __int128(in_units(pattern)) << (23 + b);
            const __int128 between = __int128(middle(pattern)) << (23 + b);
            for (const __int128 sum : {exact, between - 1, between, between + 1}) {
                if (sum > largest) continue;
                oc(sum, 0, b), oc(-sum, 0, b);
            }
        }
        oc_drain(b);
    }

    // NaN, +Inf and -Inf counts of 0, 1 and 32 in all combinations, over finite sums of both signs.
    void oc_specials() {
        constexpr uint32_t counts[] = {0, 1, 32};
        for (const uint32_t nan : counts)
            for (const uint32_t plus : counts)
                for (const uint32_t minus : counts)
                    for (int shift = 0; shift < 83; ++shift)
                        for (const int sign : {-1, 1})
                            oc(sign * (__int128(1) << shift), nan << 16 | plus << 8 | minus, 0);
        oc_drain(0);
    }

    Random random_;
    VerilatedContext context_;
    std::unique_ptr<Vconverters> top_;
    Report report_;
    Ring<Result> outputs_;
    Ring<Sum> sums_;
    uint64_t output_cycles_ = 0, oc_cycles_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: %s LOG2_SAMPLE SEED\n", arguments[0]);
        return 2;
    }
    Bench(std::strtoull(arguments[2], nullptr, 0)).run(std::atoi(arguments[1]));
    return 0;
}
