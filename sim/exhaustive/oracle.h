// Exact FP16 arithmetic in integers only: what the RTL is compared with. No floating point, nothing of the model's.
//
// A finite value is (-1)^negative * significand * 2^exponent.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace oracle {

using Wide = unsigned __int128;

struct Format {
    int fraction_bits;  // without the hidden one
    int lowest;         // exponent of the smallest subnormal
    uint32_t infinity, nan, sign;
};

inline constexpr Format kHalf{10, -24, 0x7C00, 0x7E00, 0x8000};
inline constexpr Format kSingle{23, -149, 0x7F800000, 0x7FC00000, 0x80000000};

enum class Kind : uint8_t { finite, infinite, nan };

struct Value {
    Kind kind;
    bool negative;
    uint32_t significand;  // of a finite value
    int exponent;
};

struct Rounded {
    uint32_t bits;
    bool overflow = false;  // a finite value became infinite
    bool tie = false;       // it lay in the middle of two neighbours
    bool operator==(const Rounded& other) const { return bits == other.bits && overflow == other.overflow; }
};

inline Value decode(uint16_t bits) {
    const bool negative = bits >> 15;
    const uint32_t field = bits >> 10 & 31, fraction = bits & 1023;
    if (field == 31) return {fraction ? Kind::nan : Kind::infinite, negative, 0, 0};
    if (field == 0) return {Kind::finite, negative, fraction, -24};
    return {Kind::finite, negative, 1024 + fraction, int(field) - 25};
}

inline int bit_length(uint64_t value) { return 64 - std::countl_zero(value); }
inline int bit_length(Wide value) {
    const uint64_t high = uint64_t(value >> 64);
    return high ? 64 + bit_length(high) : bit_length(uint64_t(value));
}

// magnitude * 2^exponent to the nearest, ties to even; an exact zero is +0, what underflows keeps its sign.
template <class Unsigned>
Rounded round(bool negative, Unsigned magnitude, int exponent, const Format& format = kHalf) {
    if (!magnitude) return {0};
    const uint32_t sign = negative ? format.sign : 0;
    const int length = bit_length(magnitude);
    int unit = exponent + length - 1 - format.fraction_bits;  // exponent of the result's last place
    if (unit < format.lowest) unit = format.lowest;
    const int drop = unit - exponent;
    uint32_t kept;
    bool tie = false;
    if (drop <= 0) {
        kept = uint32_t(magnitude << -drop);
    } else if (drop > length) {
        kept = 0;  // less than half of the last place
    } else {
        const Unsigned half = Unsigned(1) << (drop - 1);
        const Unsigned rest = magnitude & (half | (half - 1));
        kept = drop == int(8 * sizeof(Unsigned)) ? 0 : uint32_t(magnitude >> drop);
        tie = rest == half;
        if (rest > half || (tie && (kept & 1))) ++kept;
    }
    const uint32_t hidden = uint32_t(1) << format.fraction_bits;
    if (kept == 2 * hidden) kept = hidden, ++unit;
    if (kept < hidden) return {sign | kept, false, tie};  // subnormal: the unit is the lowest
    const uint32_t bits = (uint32_t(unit - format.lowest + 1) << format.fraction_bits) | (kept - hidden);
    if (bits >= format.infinity) return {sign | format.infinity, true, tie};
    return {sign | bits, false, tie};
}

// Whether Inf * 0, or a NaN, makes the product NaN; or an operand makes it infinite.
inline Kind product_kind(const Value& a, const Value& w) {
    if (a.kind == Kind::finite && w.kind == Kind::finite) return Kind::finite;
    if (a.kind == Kind::nan || w.kind == Kind::nan) return Kind::nan;
    const bool zero = (a.kind == Kind::finite && !a.significand) || (w.kind == Kind::finite && !w.significand);
    return zero ? Kind::nan : Kind::infinite;
}

inline Rounded multiply(const Value& a, const Value& w) {
    const bool negative = a.negative != w.negative;
    switch (product_kind(a, w)) {
        case Kind::nan: return {kHalf.nan};
        case Kind::infinite: return {kHalf.infinity | (negative ? kHalf.sign : 0)};
        default: return round(negative, uint64_t(a.significand) * w.significand, a.exponent + w.exponent);
    }
}

// 2^-b times a sum of products, as an integer in units of 2^-48 (at most 2^86 for 64 products) and special flags.
class Dot {
public:
    void add(uint16_t a_bits, uint16_t w_bits) {
        const Value a = decode(a_bits), w = decode(w_bits);
        const bool negative = a.negative != w.negative;
        switch (product_kind(a, w)) {
            case Kind::nan: nan_ = true; break;
            case Kind::infinite: (negative ? minus_ : plus_) = true; break;
            default: {
                const __int128 units = __int128(a.significand * w.significand) << (a.exponent + w.exponent + 48);
                sum_ += negative ? -units : units;
            }
        }
    }

    Rounded rounded(int b) const {
        if (nan_ || (plus_ && minus_)) return {kHalf.nan};
        if (plus_ || minus_) return {kHalf.infinity | (minus_ ? kHalf.sign : 0)};
        return round(sum_ < 0, Wide(sum_ < 0 ? -sum_ : sum_), -48 - b);
    }

private:
    __int128 sum_ = 0;
    bool nan_ = false, plus_ = false, minus_ = false;
};

// What an output is made of: S (in units of 2^-24, with its special terms), FP16 scales and bias, and b.
struct Output {
    int64_t sum;
    bool nan, plus, minus;
    uint16_t scale, row_scale, bias;
    int b;
};

// 2^b * scale * row_scale * S + bias, rounded once. Both terms must lie within 127 bits of each other's lowest.
inline Rounded finish(const Output& o, const Format& format) {
    const Value scale = decode(o.scale), row = decode(o.row_scale), bias = decode(o.bias);
    const bool infinite_sum = o.plus || o.minus;
    const bool infinite =
        infinite_sum || scale.kind == Kind::infinite || row.kind == Kind::infinite;
    const bool zero = (!infinite_sum && !o.sum) || (scale.kind == Kind::finite && !scale.significand) ||
                      (row.kind == Kind::finite && !row.significand);
    const bool negative = (infinite_sum ? o.minus : o.sum < 0) != (scale.negative != row.negative);
    if (o.nan || (o.plus && o.minus) || scale.kind == Kind::nan || row.kind == Kind::nan || bias.kind == Kind::nan ||
        (infinite && zero) || (infinite && bias.kind == Kind::infinite && bias.negative != negative))
        return {format.nan};
    if (infinite) return {format.infinity | (negative ? format.sign : 0)};
    if (bias.kind == Kind::infinite) return {format.infinity | (bias.negative ? format.sign : 0)};
    Wide product = Wide(uint64_t(o.sum < 0 ? -o.sum : o.sum)) * (scale.significand * row.significand);
    int exponent = scale.exponent + row.exponent + o.b - 24;
    Wide added = bias.significand;
    if (!product) return round(bias.negative, added, bias.exponent, format);
    if (!added) return round(negative, product, exponent, format);
    const int lowest = exponent < bias.exponent ? exponent : bias.exponent;
    product <<= exponent - lowest, added <<= bias.exponent - lowest;
    const __int128 total = (negative ? -__int128(product) : __int128(product)) +
                           (bias.negative ? -__int128(added) : __int128(added));
    return round(total < 0, Wide(total < 0 ? -total : total), lowest, format);
}

}  // namespace oracle
