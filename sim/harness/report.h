// Counters that a run adds to, and the rule violations it found.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

namespace eva {

// Read by Python field by field: keep in step with SimStats in eva_hw/runtime/simulator.py.
struct Stats {
    uint64_t cycles = 0;
    uint64_t read_beats = 0, write_beats = 0;
    uint64_t read_bursts = 0, write_bursts = 0;
    uint64_t read_waits = 0;   // cycles in which a read beat was offered and not taken
    uint64_t write_waits = 0;  // cycles in which a write beat was offered and not taken
    uint64_t most_reads = 0, most_writes = 0;  // bursts in flight at once
    uint64_t violations = 0;
};

// Keeps the text of the first few violations.
class Report {
public:
    Stats stats;

    __attribute__((format(printf, 2, 3))) void violation(const char* format, ...) {
        if (++stats.violations > kTexts) return;
        char text[512];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        text_ += "cycle " + std::to_string(stats.cycles) + ": " + text + "\n";
    }

    const std::string& text() const { return text_; }

    void clear_violations() {
        stats.violations = 0;
        text_.clear();
    }

private:
    static constexpr uint64_t kTexts = 8;
    std::string text_;
};

}  // namespace eva
