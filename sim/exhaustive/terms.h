// Random terms of dot products, by strata that aim at what can go wrong: see Terms::fill.
#pragma once

#include <algorithm>
#include <cstdint>

#include "random.h"

namespace bench {

struct Term {
    uint16_t x, w;
};

inline constexpr const char* kStrata[] = {"any_bits", "exponent_spread", "same_exponent", "cancellation", "tie",
                                          "subnormal", "overflow", "special", "sparse"};
inline constexpr int kStrataCount = 9;

class Terms {
public:
    explicit Terms(Random& random) : random_(random) {}

    // `count` terms (at least 8) of a stratum; a result is their sum times 2^-b.
    void fill(int stratum, Term* terms, int count, int b) {
        switch (stratum) {
            case 0:
                for (int i = 0; i < count; ++i) terms[i] = {any(), any()};
                break;
            case 1:
                for (int i = 0; i < count; ++i) terms[i] = {finite(), finite()};
                break;
            case 2: same_exponent(terms, count, b); break;
            case 3: cancellation(terms, count); break;
            case 4: tie(terms, count, random_.between(-24, 5) + b); break;
            case 5: random_.once_in(2) ? tie(terms, count, b - 24) : small(terms, count, b); break;
            case 6: random_.once_in(2) ? tie(terms, count, b + 5) : large(terms, count, b); break;
            case 7: special(terms, count); break;
            default:
                for (int i = 0; i < count; ++i) terms[i] = random_.once_in(4) ? Term{finite(), finite()} : nothing();
        }
    }

private:
    uint16_t sign() { return uint16_t(random_.below(2) << 15); }
    uint16_t any() { return uint16_t(random_.bits()); }
    uint16_t fraction() { return random_.once_in(4) ? kCorners[random_.below(4)] : random_.below(1024); }
    uint16_t with_field(int field) { return sign() | uint16_t(std::clamp(field, 0, 30)) << 10 | fraction(); }
    uint16_t finite() { return with_field(random_.between(0, 30)); }

    // A zero product, of either sign.
    Term nothing() {
        const Term term{sign(), uint16_t(random_.once_in(2) ? finite() : sign())};
        return random_.once_in(2) ? term : Term{term.w, term.x};
    }

    // +-2^exponent as an FP16, -24 to 15.
    uint16_t power(int exponent) {
        return sign() | (exponent < -14 ? uint16_t(1 << (exponent + 24)) : uint16_t((exponent + 15) << 10));
    }

    // +-significand * 2^exponent as a product, -48 to 25: an 11-bit number times a power of two.
    Term number(uint32_t significand, int exponent) {
        const int least = std::max(-24, exponent - 5), most = std::min(15, exponent + 24);
        const int other = random_.between(least, most), unit = exponent - other;  // -24 <= unit <= 5
        const bool normal = significand >= 1024;
        // A significand below 1024 is a subnormal if its unit allows; else the same value with its highest bit on top.
        int field = normal ? unit + 25 : 0;
        if (!normal && unit > -24) {
            int scaled = unit;
            while (significand && significand < 1024 && scaled > -24) significand *= 2, --scaled;
            field = significand >= 1024 ? scaled + 25 : 0;
        }
        const Term term{uint16_t(sign() | field << 10 | (significand & 1023)), power(other)};
        return random_.once_in(2) ? term : Term{term.w, term.x};
    }

    static Term negated(Term term) { return {uint16_t(term.x ^ 0x8000), term.w}; }
    static bool negative(Term term) { return (term.x ^ term.w) & 0x8000; }

    void shuffle(Term* terms, int count) {
        for (int i = count - 1; i > 0; --i) std::swap(terms[i], terms[random_.below(uint32_t(i + 1))]);
    }

    void same_exponent(Term* terms, int count, int b) {
        const int x = random_.between(1, 30), w = std::clamp(random_.between(10, 50) + b - x, 1, 30);
        for (int i = 0; i < count; ++i) terms[i] = {with_field(x), with_field(w)};
    }

    // Pairs of opposite products, and one or two terms that stay, perhaps far below the others.
    void cancellation(Term* terms, int count) {
        const int stay = random_.between(0, 2) + (count & 1);
        for (int i = 0; i < count; ++i) terms[i] = {finite(), finite()};
        for (int i = stay; i + 1 < count; i += 2) terms[i + 1] = negated(terms[i]);
        if (stay && random_.once_in(2)) terms[0] = number(random_.between(0, 2047), random_.between(-48, -30));
        shuffle(terms, count);
    }

    // An 11-bit number whose last place is 2^exponent, plus or minus half of that, and perhaps the least there is.
    void tie(Term* terms, int count, int exponent) {
        exponent = std::clamp(exponent, -47, 20);
        const uint32_t least = random_.once_in(8) ? 0 : 1024;
        uint32_t significand = random_.once_in(4) ? 2047 : uint32_t(random_.between(int(least), 2047));
        terms[0] = number(significand, exponent);
        terms[1] = number(1, exponent - 1);
        int used = 2;
        if (random_.once_in(2)) {
            const int below = random_.once_in(2) ? -48 : random_.between(-48, exponent - 1);
            terms[used++] = number(1, below);
        }
        while (used + 1 < count && random_.once_in(2)) {
            terms[used] = {finite(), finite()};
            terms[used + 1] = negated(terms[used]);
            used += 2;
        }
        while (used < count) terms[used++] = nothing();
        shuffle(terms, count);
    }

    // Products so small that results are subnormal, or nearly.
    void small(Term* terms, int count, int b) {
        for (int i = 0; i < count; ++i) {
            const int sum = random_.between(0, 16) + b, x = random_.between(0, std::min(30, sum));
            terms[i] = {with_field(x), with_field(sum - x)};
        }
    }

    // Products so large that the sum may overflow, mostly of one sign.
    void large(Term* terms, int count, int b) {
        const uint16_t common = sign();
        for (int i = 0; i < count; ++i) {
            const int sum = std::min(60, random_.between(36, 46) + b), x = random_.between(std::max(0, sum - 30), 30);
            terms[i] = {with_field(x), with_field(sum - x)};
            if (negative(terms[i]) != bool(common) && !random_.once_in(8)) terms[i] = negated(terms[i]);
        }
    }

    void special(Term* terms, int count) {
        for (int i = 0; i < count; ++i) terms[i] = {finite(), finite()};
        const uint16_t infinity = sign() | 0x7C00;
        switch (random_.below(4)) {
            case 0: terms[random_.below(count)] = {infinity, finite()}; break;
            case 1:  // infinities of one sign or of both
                for (int i = 0; i < 4; ++i)
                    terms[random_.below(count)] = {uint16_t(infinity ^ (random_.once_in(4) ? 0x8000 : 0)), 0x3C00};
                break;
            case 2: terms[random_.below(count)] = {sign(), infinity}; break;  // zero times infinity
            default: terms[random_.below(count)] = {finite(), uint16_t(0x7C00 | sign() | random_.between(1, 1023))};
        }
    }

    Random& random_;
};

}  // namespace bench
