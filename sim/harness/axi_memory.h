// An AXI4 slave in front of Memory: latency, bandwidth shared by reads and writes, stalls, faults.
//
// It is as unhelpful as AXI allows: read data are those of the moment the address was taken, and written data
// become visible only with the response, so a master that does not wait for responses reads old bytes.
#pragma once

#include <deque>

#include "memory.h"
#include "pins.h"
#include "report.h"

namespace eva {

// Read by Python field by field: keep in step with SimOptions in eva_hw/runtime/simulator.py.
struct Timing {
    uint64_t read_latency;   // cycles from the address handshake to the first beat
    uint64_t write_latency;  // cycles from the last data beat to the response
    uint64_t beats, cycles;  // bandwidth: `beats` beats (read or written) every `cycles` cycles
    uint64_t in_flight;      // bursts of each kind that are taken before the first is answered
    uint64_t stall;          // probability of a stall, per channel and cycle, in 1/2^32
    uint64_t seed;           // of the stalls
};

class AxiMemory {
public:
    AxiMemory(Memory& memory, Report& report, const Timing& timing) : memory_(memory), report_(report) {
        set_timing(timing);
    }

    std::vector<Fault> faults;
    std::vector<Range> guard;  // if not empty, writes elsewhere are violations

    void set_timing(const Timing& timing) {
        timing_ = timing;
        for (int i = 0; i < 5; ++i) random_[i] = Random(timing.seed * 8 + i + 1);
    }

    void reset() {
        reads_.clear(), writes_.clear();
        r_offered_ = b_offered_ = false;
        credit_ = next_write_ = 0;
    }

    // Sets this cycle's inputs of the master; its registered outputs have settled.
    void drive(Vtop& top) {
        const uint64_t now = report_.stats.cycles;
        top.m_axi_arready = reads_.size() < timing_.in_flight && !stall(0);
        top.m_axi_awready = writes_.size() < timing_.in_flight && !stall(1);
        credit_ = std::min(credit_ + timing_.beats, timing_.cycles + timing_.beats - 1);
        bool slot = credit_ >= timing_.cycles;
        const bool w_open = next_write_ < writes_.size() && !stall(2);
        const bool w_turn = w_open && top.m_axi_wvalid && last_was_read_;
        if (!r_offered_ && slot && !w_turn && !reads_.empty() && reads_.front().due <= now && !stall(3)) {
            offer_read(top);
            pay(slot, true);
        }
        top.m_axi_rvalid = r_offered_;
        top.m_axi_wready = w_open && slot;
        if (!b_offered_ && !writes_.empty() && writes_.front().complete && writes_.front().due <= now && !stall(4))
            offer_response(top);
        top.m_axi_bvalid = b_offered_;
    }

    // Takes this cycle's handshakes; all pins have settled.
    void sample(Vtop& top) {
        Stats& stats = report_.stats;
        if (r_offered_) {
            if (top.m_axi_rready) end_read_beat();
            else ++stats.read_waits;
        }
        if (b_offered_ && top.m_axi_bready) {
            writes_.pop_front();
            --next_write_;
            b_offered_ = false;
        }
        if (top.m_axi_wvalid) {
            if (top.m_axi_wready) take_write_beat(top);
            else ++stats.write_waits;
        }
        if (top.m_axi_arvalid && top.m_axi_arready) take_read(top.m_axi_araddr, top.m_axi_arlen + 1);
        if (top.m_axi_awvalid && top.m_axi_awready) take_write(top.m_axi_awaddr, top.m_axi_awlen + 1);
    }

private:
    struct Read {
        uint64_t due, beat = 0;
        std::vector<uint8_t> data, responses;
    };
    struct Write {
        uint64_t address, beats, taken = 0, due = 0, delay = 0;
        bool hang = false, complete = false;
        uint8_t response = 0;
        std::vector<uint8_t> data, strobes;
    };

    bool stall(int channel) { return random_[channel].chance(timing_.stall); }

    void pay(bool& slot, bool read) {
        credit_ -= timing_.cycles;
        slot = false;
        last_was_read_ = read;
    }

    // The answer to one beat: OKAY, SLVERR in a fault range, DECERR where there is no memory.
    uint8_t response(uint64_t address, bool write) const {
        if (!memory_.contains(address, kBeatBytes)) return 3;
        for (const Fault& f : faults)
            if (f.kind == FAULT_ERROR && (write ? f.on_write : f.on_read) &&
                f.range.touches(address, address + kBeatBytes - 1))
                return 2;
        return 0;
    }

    // Adds the delays of the fault ranges that the burst touches; returns whether it hangs.
    bool delayed(uint64_t address, uint64_t beats, bool write, uint64_t& delay) const {
        bool hang = false;
        for (const Fault& f : faults) {
            if (!(write ? f.on_write : f.on_read)) continue;
            if (!f.range.touches(address, address + beats * kBeatBytes - 1)) continue;
            if (f.kind == FAULT_HANG) hang = true;
            if (f.kind == FAULT_DELAY) delay += f.delay;
        }
        return hang;
    }

    void take_read(uint64_t address, uint64_t beats) {
        Read read;
        uint64_t delay = timing_.read_latency;
        read.due = delayed(address, beats, false, delay) ? UINT64_MAX : report_.stats.cycles + delay;
        read.data.assign(beats * kBeatBytes, 0xEE);
        read.responses.resize(beats);
        for (uint64_t i = 0; i < beats; ++i) {
            read.responses[i] = response(address + i * kBeatBytes, false);
            if (!read.responses[i]) memory_.read(address + i * kBeatBytes, &read.data[i * kBeatBytes], kBeatBytes);
        }
        reads_.push_back(std::move(read));
        ++report_.stats.read_bursts;
        report_.stats.most_reads = std::max<uint64_t>(report_.stats.most_reads, reads_.size());
    }

    void offer_read(Vtop& top) {
        const Read& read = reads_.front();
        set(top.m_axi_rdata, &read.data[read.beat * kBeatBytes], kBeatBytes);
        top.m_axi_rresp = read.responses[read.beat];
        top.m_axi_rlast = read.beat + 1 == read.responses.size();
        top.m_axi_rid = 0;
        r_offered_ = true;
    }

    void end_read_beat() {
        ++report_.stats.read_beats;
        r_offered_ = false;
        Read& read = reads_.front();
        if (++read.beat == read.responses.size()) reads_.pop_front();
    }

    void take_write(uint64_t address, uint64_t beats) {
        Write write;
        write.address = address;
        write.beats = beats;
        write.hang = delayed(address, beats, true, write.delay);
        write.data.resize(beats * kBeatBytes);
        write.strobes.resize(beats * kStrobeBytes);
        writes_.push_back(std::move(write));
        ++report_.stats.write_bursts;
        report_.stats.most_writes = std::max<uint64_t>(report_.stats.most_writes, writes_.size());
    }

    void take_write_beat(Vtop& top) {
        bool slot = true;
        pay(slot, false);
        ++report_.stats.write_beats;
        Write& write = writes_[next_write_];
        get(top.m_axi_wdata, &write.data[write.taken * kBeatBytes], kBeatBytes);
        get(top.m_axi_wstrb, &write.strobes[write.taken * kStrobeBytes], kStrobeBytes);
        const bool last = ++write.taken == write.beats;
        if (last != bool(top.m_axi_wlast))
            report_.violation("WLAST is %d in beat %llu of a burst of %llu from %#llx", int(top.m_axi_wlast),
                              (unsigned long long)write.taken, (unsigned long long)write.beats,
                              (unsigned long long)write.address);
        if (!last) return;
        write.complete = true;
        write.due = write.hang ? UINT64_MAX : report_.stats.cycles + timing_.write_latency + write.delay;
        ++next_write_;
    }

    void offer_response(Vtop& top) {
        Write& write = writes_.front();
        for (uint64_t i = 0; i < write.beats; ++i) {
            const uint64_t address = write.address + i * kBeatBytes;
            const uint8_t* strobes = &write.strobes[i * kStrobeBytes];
            check_guard(address, strobes);
            const uint8_t answer = response(address, true);
            write.response = std::max(write.response, answer);
            if (!answer) memory_.write_strobed(address, &write.data[i * kBeatBytes], strobes, kBeatBytes);
        }
        top.m_axi_bresp = write.response;
        top.m_axi_bid = 0;
        b_offered_ = true;
    }

    void check_guard(uint64_t address, const uint8_t* strobes) {
        if (guard.empty()) return;
        uint64_t first = kBeatBytes, last = 0;
        for (uint64_t i = 0; i < kBeatBytes; ++i)
            if (strobes[i / 8] >> (i % 8) & 1) first = std::min(first, i), last = i;
        if (first == kBeatBytes) return;  // no strobe set: nothing is written
        for (const Range& r : guard)
            if (r.first <= address + first && address + last <= r.last) return;
        report_.violation("write of bytes %#llx to %#llx, outside every destination",
                          (unsigned long long)(address + first), (unsigned long long)(address + last));
    }

    Memory& memory_;
    Report& report_;
    Timing timing_{};
    Random random_[5];
    std::deque<Read> reads_;
    std::deque<Write> writes_;
    uint64_t next_write_ = 0;  // the oldest write whose data are not complete
    uint64_t credit_ = 0;
    bool r_offered_ = false, b_offered_ = false, last_was_read_ = false;
};

}  // namespace eva
