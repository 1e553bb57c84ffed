// Seeded random numbers (splitmix64), and FP16 patterns by class.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace bench {

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t bits() {
        uint64_t z = state_ += 0x9E3779B97F4A7C15;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return z ^ z >> 31;
    }

    // 0 <= result < bound, for bounds far below 2^32.
    uint32_t below(uint32_t bound) { return uint32_t((bits() >> 32) * bound >> 32); }
    int between(int low, int high) { return low + int(below(uint32_t(high - low + 1))); }
    bool once_in(uint32_t n) { return !below(n); }

private:
    uint64_t state_;
};

inline constexpr uint16_t kCorners[] = {0x000, 0x001, 0x3FF, 0x200};

// All 64 classes of sign and exponent field, `per_class` fractions of each: the corners first (0, 1, the largest, the
// highest bit: with exponent field 0 and 31 these are zeros, extreme subnormals, infinities, NaN of both kinds).
inline std::vector<uint16_t> stratified(uint32_t per_class, Random& random) {
    std::vector<uint16_t> values;
    for (uint32_t top = 0; top < 64; ++top) {
        std::vector<uint16_t> fractions(kCorners, kCorners + 4);
        for (uint16_t f = 0; f < 1024; ++f)
            if (f != kCorners[0] && f != kCorners[1] && f != kCorners[2] && f != kCorners[3]) fractions.push_back(f);
        for (uint32_t i = 4; i < per_class; ++i) std::swap(fractions[i], fractions[i + random.below(1024 - i)]);
        for (uint32_t i = 0; i < per_class; ++i) values.push_back(uint16_t(top << 10 | fractions[i]));
    }
    return values;
}

}  // namespace bench
