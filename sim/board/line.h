// Both ends of a serial line, 8N1, in clock cycles; and what goes wrong on it.
#pragma once

#include <cstdint>
#include <deque>
#include <random>

namespace board {

// Damages bytes on their way: drops, flips a bit of, doubles or hides them, or puts garbage in front of them.
class Faults {
public:
    Faults(double rate, uint64_t seed) : rate_(rate), random_(seed) {}

    void pass(uint8_t byte, std::deque<uint8_t>& out) {
        ++bytes;
        if (hidden_) {
            --hidden_;
            return;
        }
        if (std::uniform_real_distribution<>()(random_) >= rate_) {
            out.push_back(byte);
            return;
        }
        ++count;
        switch (pick(5)) {
            case 0: break;
            case 1: out.push_back(uint8_t(byte ^ 1u << pick(8))); break;
            case 2: out.insert(out.end(), {byte, byte}); break;
            case 3: hidden_ = 1 + pick(40); break;
            default:
                for (uint32_t i = 0, n = 1 + pick(20); i < n; ++i) out.push_back(uint8_t(pick(256)));
                out.push_back(byte);
        }
    }

    uint64_t bytes = 0, count = 0;  // passed, and how often something was done to one

private:
    uint32_t pick(uint32_t n) { return uint32_t(random_() % n); }

    double rate_;
    std::mt19937_64 random_;
    uint32_t hidden_ = 0;
};

// Gives the line's level in each cycle. A bit need not be a whole number of cycles.
class Sender {
public:
    explicit Sender(double cycles_per_bit) : bit_(cycles_per_bit) {}

    std::deque<uint8_t> queue;

    bool busy() const { return left_ || !queue.empty(); }

    int level() {
        if (!left_ && !queue.empty()) {
            frame_ = 0x200u | queue.front() << 1;
            queue.pop_front();
            left_ = 10;
            // From a byte to the next one the fraction of a cycle is kept.
            due_ = due_ > 0 && due_ < 1 ? due_ + bit_ : bit_;
        }
        if (!left_) return 1;
        const int out = frame_ & 1;
        due_ -= 1;
        if (due_ < 1) {
            frame_ >>= 1;
            if (--left_) due_ += bit_;
        }
        return out;
    }

private:
    double bit_, due_ = 0;
    uint32_t frame_ = 0, left_ = 0;
};

// Watches the line, one cycle at a time.
class Receiver {
public:
    explicit Receiver(double cycles_per_bit) : bit_(cycles_per_bit) {}

    uint64_t broken = 0;  // bytes without a stop bit: none, if the sender is right

    bool busy() const { return left_; }

    // Whether a byte is complete; then it is in `byte`.
    bool sample(int level, uint8_t& byte) {
        if (!left_) {
            if (!level) left_ = 10, due_ = bit_ / 2, bits_ = 0;
            return false;
        }
        due_ -= 1;
        if (due_ > 0) return false;
        due_ += bit_;
        bits_ |= uint32_t(level) << (10 - left_);
        if (--left_) return false;
        byte = uint8_t(bits_ >> 1);
        const bool good = (bits_ & 0x201) == 0x200;
        broken += !good;
        return good;
    }

private:
    double bit_, due_ = 0;
    uint32_t bits_ = 0, left_ = 0;
};

}  // namespace board
