// Every pair of FP16 operands through PE and rounder, and every pair of INT8 operands through the PE's four lanes.
//
// LANES PEs hold a weight each, loaded through their shadow registers; activations stream through all of them.
//   pairs fp16 PART PARTS LOG2_SAMPLE SEED
//   pairs int8 SEED

#include <cstdlib>
#include <cstring>
#include <memory>

#include "Vpairs.h"
#include "oracle.h"
#include "random.h"
#include "report.h"
#include "verilated.h"

using namespace bench;

namespace {

class Device {
public:
    explicit Device(bool fp16) : top(std::make_unique<Vpairs>(&context_)) {
        top->i_fp16 = fp16;
        top->i_exponent = 0;
        std::memset(&top->i_p[0], 0, 16);
        top->i_carry = 0;
        top->ld_en = top->i_swap = 0;
        top->rst = 1;
        for (int i = 0; i < 4; ++i) step();
        top->rst = 0;
    }

    // One cycle; the outputs are then those of the next.
    void step() {
        top->clk = 0;
        top->eval();
        top->clk = 1;
        top->eval();
    }

    void load(const uint32_t* weights) {
        std::memcpy(&top->ld_data, weights, 4 * LANES);
        top->ld_en = 1;
        step();
        std::memset(&top->ld_data, 0x5A, 4 * LANES);  // the shadow registers must hold theirs
        top->ld_en = 0, top->i_swap = 1;
        step();
        top->i_swap = 0;
    }

private:
    VerilatedContext context_;

public:
    std::unique_ptr<Vpairs> top;
};

// The port's type depends on its width; its bytes do not (on little-endian machines).
static_assert(std::endian::native == std::endian::little);
uint32_t value(const Vpairs& top, int lane) {
    uint16_t bits;
    std::memcpy(&bits, reinterpret_cast<const char*>(&top.o_value) + 2 * lane, 2);
    return bits;
}

// Streams all activations past the weights that are loaded, and compares every lane's result.
void stream(Device& device, const std::vector<uint16_t>& activations, const std::vector<oracle::Value>& decoded,
            const uint16_t* weights, Report& report) {
    oracle::Value held[LANES];
    for (int lane = 0; lane < LANES; ++lane) held[lane] = oracle::decode(weights[lane]);
    const size_t count = activations.size();
    for (size_t t = 0; t + 1 < count + FP16_LATENCY; ++t) {
        device.top->i_a = t < count ? activations[t] : 0x7E01;
        device.step();
        if (t + 1 < FP16_LATENCY) continue;
        const size_t i = t + 1 - FP16_LATENCY;
        for (int lane = 0; lane < LANES; ++lane) {
            const auto wanted = oracle::multiply(decoded[i], held[lane]);
            const uint32_t bits = value(*device.top, lane);
            const bool overflow = device.top->o_overflow >> lane & 1;
            if (report.check(bits == wanted.bits && overflow == wanted.overflow))
                report.mismatch("FP16 0x%04X * 0x%04X: RTL 0x%04X overflow %d, exact 0x%04X overflow %d",
                                activations[i], weights[lane], bits, overflow, wanted.bits, wanted.overflow);
        }
        if (!(t & 1023)) report.progress();
    }
}

int fp16(int part, int parts, int log2_sample, uint64_t seed) {
    Report report;
    Random random(seed);  // the same in all parts
    const auto weights = stratified(1024 >> (log2_sample + 1) / 2, random);
    const auto activations = stratified(1024 >> log2_sample / 2, random);
    std::vector<oracle::Value> decoded;
    for (uint16_t a : activations) decoded.push_back(oracle::decode(a));
    Device device(true);
    for (size_t first = LANES * size_t(part); first < weights.size(); first += LANES * size_t(parts)) {
        uint32_t loaded[LANES];  // the high half is no operand in FP16 mode
        for (int lane = 0; lane < LANES; ++lane) loaded[lane] = weights[first + lane] | uint32_t(random.bits()) << 16;
        device.load(loaded);
        stream(device, activations, decoded, &weights[first], report);
    }
    report.finish();
    return 0;
}

int int8(uint64_t seed) {
    Report report;
    Random random(seed);
    Device device(false);
    for (int w = 0; w < 256; ++w) {
        uint32_t weights[LANES] = {};
        for (int k = 0; k < 4; ++k) weights[0] |= uint32_t(w + 64 * k & 255) << 8 * k;  // lane k sees all 256 too
        device.load(weights);
        uint32_t sums[256 + 2][4];  // what comes from above, two cycles after its activation
        for (auto& sum : sums)
            for (auto& lane : sum) lane = uint32_t(random.bits());
        for (int t = 0; t < 256 + INT8_LATENCY - 1; ++t) {
            device.top->i_a = uint16_t(random.bits() << 8 | (t & 255));  // the high byte is no operand in INT8 mode
            if (t >= SUM_DELAY && t < 256 + SUM_DELAY) std::memcpy(&device.top->i_p[0], sums[t - SUM_DELAY], 16);
            device.step();
            if (t + 1 < INT8_LATENCY) continue;
            const int a = t + 1 - INT8_LATENCY;
            for (int k = 0; k < 4; ++k) {
                const int held = int8_t(weights[0] >> 8 * k & 255), moving = int8_t(a);
                const uint32_t wanted = sums[a][k] + uint32_t(held * moving), found = device.top->o_p[k];
                if (report.check(found == wanted))
                    report.mismatch("INT8 lane %d: %d * %d + 0x%08X: RTL 0x%08X, exact 0x%08X", k, moving, held,
                                    sums[a][k], found, wanted);
            }
        }
        report.progress();
    }
    report.finish();
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 6 && !std::strcmp(arguments[1], "fp16"))
        return fp16(std::atoi(arguments[2]), std::atoi(arguments[3]), std::atoi(arguments[4]),
                    std::strtoull(arguments[5], nullptr, 0));
    if (count == 3 && !std::strcmp(arguments[1], "int8")) return int8(std::strtoull(arguments[2], nullptr, 0));
    std::fprintf(stderr, "usage: %s fp16 PART PARTS LOG2_SAMPLE SEED | int8 SEED\n", arguments[0]);
    return 2;
}
