// The AXI4 rules that the master must keep, checked in every cycle.
#pragma once

#include "pins.h"
#include "report.h"

namespace eva {

class AxiRules {
public:
    explicit AxiRules(Report& report) : report_(report) {}

    void reset() { ar_ = aw_ = Request{}, w_.valid = b_ = r_ = false; }

    // Call with all pins of this cycle settled, before the clock edge.
    void check(Vtop& top) {
        address("AR", ar_, top.m_axi_arvalid, top.m_axi_arready, top.m_axi_araddr, top.m_axi_arlen, top.m_axi_arsize,
                top.m_axi_arburst);
        address("AW", aw_, top.m_axi_awvalid, top.m_axi_awready, top.m_axi_awaddr, top.m_axi_awlen, top.m_axi_awsize,
                top.m_axi_awburst);
        data(top);
        lite(top);
    }

    void check_reset(Vtop& top) {
        if (top.m_axi_arvalid || top.m_axi_awvalid || top.m_axi_wvalid || top.s_axil_bvalid || top.s_axil_rvalid)
            report_.violation("a VALID output is high during reset");
    }

private:
    struct Request {
        bool waiting = false;
        uint64_t address = 0;
        uint32_t rest = 0;
    };
    struct Data {
        bool valid = false;
        bool last = false;
        uint8_t bytes[kBeatBytes], strobes[kBeatBytes];
    };

    void address(const char* name, Request& held, bool valid, bool ready, uint64_t address, uint32_t length,
                 uint32_t size, uint32_t burst) {
        const uint32_t rest = length | size << 8 | burst << 16;
        if (held.waiting && !valid) report_.violation("%sVALID was withdrawn before %sREADY", name, name);
        if (held.waiting && valid && (held.address != address || held.rest != rest))
            report_.violation("%s payload changed while waiting: address %#llx to %#llx", name,
                              (unsigned long long)held.address, (unsigned long long)address);
        if (valid && !held.waiting) {
            const uint64_t bytes = (length + 1) * kBeatBytes;
            if (address % kBeatBytes)
                report_.violation("%sADDR %#llx is not aligned to a beat of %u bytes", name,
                                  (unsigned long long)address, unsigned(kBeatBytes));
            if (size != log2_of(kBeatBytes))
                report_.violation("%sSIZE is %u, must be %u", name, size, log2_of(kBeatBytes));
            if (burst != 1) report_.violation("%sBURST is %u, must be 1 (INCR)", name, burst);
            if (address / 4096 != (address + bytes - 1) / 4096)
                report_.violation("%s burst of %llu bytes from %#llx crosses a 4 KiB boundary", name,
                                  (unsigned long long)bytes, (unsigned long long)address);
        }
        held = {valid && !ready, address, rest};
    }

    void data(Vtop& top) {
        const bool valid = top.m_axi_wvalid, last = top.m_axi_wlast;
        if (w_.valid && !valid) report_.violation("WVALID was withdrawn before WREADY");
        if (!valid) {
            w_.valid = false;
            return;
        }
        if (!w_.valid && top.m_axi_wready) return;
        Data now;
        now.valid = !top.m_axi_wready;
        now.last = last;
        get(top.m_axi_wdata, now.bytes, kBeatBytes);
        get(top.m_axi_wstrb, now.strobes, kStrobeBytes);
        if (w_.valid && (w_.last != last || std::memcmp(w_.bytes, now.bytes, kBeatBytes) ||
                         std::memcmp(w_.strobes, now.strobes, kStrobeBytes)))
            report_.violation("W payload changed while waiting");
        w_ = now;
    }

    void lite(Vtop& top) {
        if (b_ && !top.s_axil_bvalid) report_.violation("s_axil BVALID was withdrawn before BREADY");
        if (r_ && !top.s_axil_rvalid) report_.violation("s_axil RVALID was withdrawn before RREADY");
        if (r_ && top.s_axil_rvalid && top.s_axil_rdata != r_data_)
            report_.violation("s_axil RDATA changed while waiting");
        b_ = top.s_axil_bvalid && !top.s_axil_bready;
        r_ = top.s_axil_rvalid && !top.s_axil_rready;
        r_data_ = top.s_axil_rdata;
    }

    Report& report_;
    Request ar_, aw_;
    Data w_;
    bool b_ = false, r_ = false;
    uint32_t r_data_ = 0;
};

}  // namespace eva
