// Access to ports of any width: Verilator gives them as bytes, integers or arrays of words.
#pragma once

#include <cstdint>
#include <cstring>

#include "Vtop.h"
#include "eva_sim_config.h"

namespace eva {

constexpr uint64_t kBeatBytes = EVA_DATA_BITS / 8;
constexpr uint64_t kStrobeBytes = (kBeatBytes + 7) / 8;

constexpr uint32_t log2_of(uint64_t value) { return value > 1 ? 1 + log2_of(value / 2) : 0; }

// Ports are stored little-endian in host order, whatever their type.
template <class Port>
void get(const Port& port, uint8_t* out, uint64_t bytes) {
    static_assert(sizeof(Port) <= kBeatBytes, "port wider than a beat");
    std::memcpy(out, &port, bytes);
}

template <class Port>
void set(Port& port, const uint8_t* in, uint64_t bytes) {
    static_assert(sizeof(Port) <= kBeatBytes, "port wider than a beat");
    std::memcpy(&port, in, bytes);
}

// A small generator of its own for every channel, so that one channel's stalls do not shift another's.
class Random {
public:
    explicit Random(uint64_t seed = 1) : state_(seed * 0x9E3779B97F4A7C15ull | 1) {}

    uint32_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return uint32_t(state_ * 0x2545F4914F6CDD1Dull >> 32);
    }

    // True with probability threshold / 2^32.
    bool chance(uint64_t threshold) { return threshold && next() < threshold; }

private:
    uint64_t state_;
};

}  // namespace eva
