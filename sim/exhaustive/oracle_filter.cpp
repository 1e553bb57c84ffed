// The oracle alone, for comparing it with another: reads lines from standard input, writes a line for each.
//
// Bit patterns are in hexadecimal.
//
//   dot B X W X W ...                                    -> BITS OVERFLOW
//   multiply X W                                         -> BITS OVERFLOW
//   output B S NAN PLUS MINUS SCALE ROW_SCALE BIAS FP32  -> BITS OVERFLOW

#include <iostream>
#include <sstream>
#include <string>

#include "oracle.h"

namespace {

oracle::Rounded answer(std::istringstream& line) {
    std::string what;
    line >> what;
    if (what == "multiply") {
        uint32_t x, w;
        line >> std::hex >> x >> w;
        return multiply(oracle::decode(uint16_t(x)), oracle::decode(uint16_t(w)));
    }
    if (what == "dot") {
        int b;
        line >> b >> std::hex;
        oracle::Dot dot;
        for (uint32_t x, w; line >> x >> w;) dot.add(uint16_t(x), uint16_t(w));
        return dot.rounded(b);
    }
    oracle::Output o;
    uint32_t scale, row, bias, single;
    line >> o.b >> o.sum >> o.nan >> o.plus >> o.minus >> std::hex >> scale >> row >> bias >> single;
    o.scale = uint16_t(scale), o.row_scale = uint16_t(row), o.bias = uint16_t(bias);
    return finish(o, single ? oracle::kSingle : oracle::kHalf);
}

}  // namespace

int main() {
    std::ios::sync_with_stdio(false);
    for (std::string text; std::getline(std::cin, text);) {
        std::istringstream line(text);
        const auto rounded = answer(line);
        std::cout << std::hex << rounded.bits << ' ' << rounded.overflow << '\n';
    }
}
