// The bytes behind the bus: sparse pages with a poison pattern, faults by address range, and a write guard.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace eva {

// What a fault range does to bursts that touch it.
enum FaultKind : uint32_t {
    FAULT_ERROR = 0,  // beats in the range answer SLVERR; nothing is written there
    FAULT_DELAY = 1,  // the burst's answer comes `delay` cycles later
    FAULT_HANG = 2,   // the burst is never answered
};

struct Range {
    uint64_t first, last;  // inclusive

    bool touches(uint64_t low, uint64_t high) const { return low <= last && first <= high; }
};

struct Fault {
    Range range;
    bool on_read, on_write;
    uint32_t kind;
    uint64_t delay;
};

// `size` bytes from `base`. Pages come into being, filled with the pattern, when they are first touched.
class Memory {
public:
    static constexpr uint64_t kPage = 1 << 16;

    Memory(uint64_t base, uint64_t size, uint64_t poison) : base_(base), size_(size), poison_(poison) {
        pages_.resize((size + kPage - 1) / kPage);
    }

    bool contains(uint64_t address, uint64_t bytes) const {
        return address >= base_ && bytes <= size_ && address - base_ <= size_ - bytes;
    }

    // Both need contains(address, bytes).
    void read(uint64_t address, uint8_t* out, uint64_t bytes) {
        each_page(address, bytes, [&](uint8_t* page, uint64_t count) {
            std::memcpy(out, page, count);
            out += count;
        });
    }

    void write(uint64_t address, const uint8_t* in, uint64_t bytes) {
        each_page(address, bytes, [&](uint8_t* page, uint64_t count) {
            std::memcpy(page, in, count);
            in += count;
        });
    }

    // Writes the bytes whose strobe bit is set; an aligned beat, so within one page.
    void write_strobed(uint64_t address, const uint8_t* in, const uint8_t* strobes, uint64_t bytes) {
        uint8_t* out = at(address);
        for (uint64_t i = 0; i < bytes; ++i)
            if (strobes[i / 8] >> (i % 8) & 1) out[i] = in[i];
    }

private:
    template <class Action>
    void each_page(uint64_t address, uint64_t bytes, Action action) {
        while (bytes) {
            const uint64_t count = std::min(bytes, kPage - (address - base_) % kPage);
            action(at(address), count);
            address += count;
            bytes -= count;
        }
    }

    uint8_t* at(uint64_t address) {
        const uint64_t offset = address - base_;
        auto& page = pages_[offset / kPage];
        if (!page) {
            page.reset(new uint8_t[kPage]);
            fill(page.get(), offset / kPage);
        }
        return page.get() + offset % kPage;
    }

    // A pattern that differs from place to place, so that bytes of another address are not taken for the right ones.
    void fill(uint8_t* page, uint64_t number) {
        uint64_t state = (number + 1) * 0x9E3779B97F4A7C15ull ^ poison_;
        for (uint64_t i = 0; i < kPage; i += 8) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            const uint64_t word = state ^ state >> 29;
            std::memcpy(page + i, &word, 8);
        }
    }

    uint64_t base_, size_, poison_;
    std::vector<std::unique_ptr<uint8_t[]>> pages_;
};

}  // namespace eva
