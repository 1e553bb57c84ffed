// What a bench counts and tells its caller, line by line on standard output: "progress N", "mismatch TEXT",
// and at the end "count NAME N" for each counter.
#pragma once

#include <chrono>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

namespace bench {

class Report {
public:
    // One result was compared; on a mismatch the caller describes it (only the first few are printed).
    bool check(bool equal) {
        ++compared;
        if (equal) return false;
        return ++mismatches <= kShown;
    }

    __attribute__((format(printf, 2, 3))) void mismatch(const char* format, ...) {
        va_list arguments;
        va_start(arguments, format);
        std::fputs("mismatch ", stdout), std::vprintf(format, arguments), std::putchar('\n');
        va_end(arguments);
    }

    // Called now and then; prints at most five times a second.
    void progress() {
        const auto now = Clock::now();
        if (now - shown_ < std::chrono::milliseconds(200)) return;
        shown_ = now;
        std::printf("progress %" PRIu64 "\n", compared);
        std::fflush(stdout);
    }

    uint64_t& count(const std::string& name) { return counts_[name]; }

    void finish() {
        count("compared") = compared, count("mismatches") = mismatches;
        for (const auto& [name, value] : counts_) std::printf("count %s %" PRIu64 "\n", name.c_str(), value);
        std::fflush(stdout);
    }

    uint64_t compared = 0, mismatches = 0;

private:
    using Clock = std::chrono::steady_clock;
    static constexpr uint64_t kShown = 10;
    Clock::time_point shown_ = Clock::now();
    std::map<std::string, uint64_t> counts_;
};

}  // namespace bench
