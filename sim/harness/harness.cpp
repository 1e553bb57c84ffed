// The verilated accelerator, its memory and its host port, behind a C interface for Python's ctypes.

#include <memory>

#include "axi_memory.h"
#include "axi_rules.h"
#include "csr_master.h"
#include "verilated.h"
#if EVA_TRACE
#include "verilated_vcd_c.h"
#endif

namespace eva {

// Read by Python field by field: keep in step with SimOptions in eva_hw/runtime/simulator.py.
struct Options {
    uint64_t base, size;  // bytes of memory
    uint64_t poison;      // seed of the initial memory pattern
    uint64_t reset_seed;  // of the registers' random initial values
    Timing timing;
    const char* trace;    // VCD file, or null
};

class Harness {
public:
    explicit Harness(const Options& options)
        : timing_(options.timing),
          memory(options.base, options.size, options.poison),
          bus(memory, report, options.timing),
          rules_(report) {
        context_.threads(1);
        context_.randReset(2);
        context_.randSeed(int(options.reset_seed & 0x7FFFFFFF));
        top_ = std::make_unique<Vtop>(&context_);
        open_trace(options.trace);
    }

    ~Harness() {
        top_->final();
#if EVA_TRACE
        if (trace_) trace_->close();
#endif
    }

    void set_timing(const Timing& timing) {
        timing_ = timing;
        bus.set_timing(timing);
    }

    void reset(uint64_t cycles) {
        bus.reset(), csr_.reset(), rules_.reset();
        top_->rst = 1;
        for (uint64_t i = 0; i < cycles; ++i) {
            step(false);
            if (i) rules_.check_reset(*top_);
        }
        bus.reset(), csr_.reset(), rules_.reset();
        top_->rst = 0;
        step(true);
    }

    uint64_t run(uint64_t cycles, bool stop_on_irq) {
        uint64_t done = 0;
        while (done < cycles && !(stop_on_irq && top_->irq) && !report.stats.violations) {
            step(true);
            ++done;
        }
        return done;
    }

    // The response, or -1 if the slave did not answer within some thousand cycles.
    int csr_write(uint32_t address, uint32_t data) {
        csr_.start_write(address, data);
        return finish_csr();
    }

    int csr_read(uint32_t address, uint32_t* data) {
        csr_.start_read(address);
        const int response = finish_csr();
        *data = csr_.data();
        return response;
    }

    bool irq() const { return top_->irq; }

private:
    void step(bool check) {
        bus.drive(*top_);
        csr_.drive(*top_, timing_.stall);
        edge(0);
        if (check) {
            rules_.check(*top_);
            bus.sample(*top_);
            csr_.sample(*top_);
        }
        edge(1);
        ++report.stats.cycles;
    }

    void edge(int level) {
        top_->clk = level;
        top_->eval();
#if EVA_TRACE
        if (trace_) trace_->dump(report.stats.cycles * 2 + level);
#endif
    }

    int finish_csr() {
        for (int i = 0; i < 4096; ++i) {
            step(true);
            if (!csr_.busy()) return int(csr_.response());
        }
        csr_.reset();
        return -1;
    }

    void open_trace(const char* path) {
#if EVA_TRACE
        if (!path) return;
        context_.traceEverOn(true);
        trace_ = std::make_unique<VerilatedVcdC>();
        top_->trace(trace_.get(), 99);
        trace_->open(path);
#else
        (void)path;
#endif
    }

    Timing timing_;
    VerilatedContext context_;
    std::unique_ptr<Vtop> top_;
#if EVA_TRACE
    std::unique_ptr<VerilatedVcdC> trace_;
#endif

public:
    Report report;
    Memory memory;
    AxiMemory bus;

private:
    AxiRules rules_;
    CsrMaster csr_;
};

}  // namespace eva

using eva::Harness;

#define EVA_API extern "C" __attribute__((visibility("default")))

EVA_API Harness* eva_new(const eva::Options* options) { return new Harness(*options); }
EVA_API void eva_free(Harness* h) { delete h; }
EVA_API void eva_reset(Harness* h, uint64_t cycles) { h->reset(cycles); }
EVA_API void eva_set_timing(Harness* h, const eva::Timing* timing) { h->set_timing(*timing); }
EVA_API uint64_t eva_run(Harness* h, uint64_t cycles, int stop_on_irq) { return h->run(cycles, stop_on_irq); }
EVA_API int eva_irq(Harness* h) { return h->irq(); }
EVA_API int eva_csr_write(Harness* h, uint32_t address, uint32_t data) { return h->csr_write(address, data); }
EVA_API int eva_csr_read(Harness* h, uint32_t address, uint32_t* data) { return h->csr_read(address, data); }

// Memory access without simulated time; 0, or -1 if the bytes are not all within the memory.
EVA_API int eva_mem_write(Harness* h, uint64_t address, const uint8_t* data, uint64_t bytes) {
    if (!h->memory.contains(address, bytes)) return -1;
    h->memory.write(address, data, bytes);
    return 0;
}

EVA_API int eva_mem_read(Harness* h, uint64_t address, uint8_t* data, uint64_t bytes) {
    if (!h->memory.contains(address, bytes)) return -1;
    h->memory.read(address, data, bytes);
    return 0;
}

EVA_API void eva_fault(Harness* h, uint64_t first, uint64_t last, int on_read, int on_write, uint32_t kind,
                       uint64_t delay) {
    h->bus.faults.push_back({{first, last}, on_read != 0, on_write != 0, kind, delay});
}
EVA_API void eva_clear_faults(Harness* h) { h->bus.faults.clear(); }
EVA_API void eva_guard(Harness* h, uint64_t first, uint64_t last) { h->bus.guard.push_back({first, last}); }
EVA_API void eva_clear_guard(Harness* h) { h->bus.guard.clear(); }

EVA_API void eva_stats(Harness* h, eva::Stats* stats) { *stats = h->report.stats; }
EVA_API const char* eva_violations(Harness* h) { return h->report.text().c_str(); }
EVA_API void eva_clear_violations(Harness* h) { h->report.clear_violations(); }
