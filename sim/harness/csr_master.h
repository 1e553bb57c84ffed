// The host's side of the AXI4-Lite slave: one access at a time.
#pragma once

#include "pins.h"

namespace eva {

class CsrMaster {
public:
    void reset() { state_ = State{}; }

    void start_write(uint32_t address, uint32_t data) { start(address, data, true); }
    void start_read(uint32_t address) { start(address, 0, false); }
    bool busy() const { return state_.busy; }
    uint32_t data() const { return state_.data; }
    uint32_t response() const { return state_.response; }

    // With `stall`, address and data of a write are offered in any order and answers taken late.
    void drive(Vtop& top, uint64_t stall) {
        const bool write = state_.busy && state_.write, read = state_.busy && !state_.write;
        state_.aw_shown |= write && !random_.chance(stall);
        state_.w_shown |= write && !random_.chance(stall);
        state_.ar_shown |= read && !random_.chance(stall);
        top.s_axil_awvalid = write && state_.aw_shown && !state_.aw_done;
        top.s_axil_awaddr = state_.address;
        top.s_axil_awprot = 0;
        top.s_axil_wvalid = write && state_.w_shown && !state_.w_done;
        top.s_axil_wdata = state_.data;
        top.s_axil_wstrb = 0xF;
        top.s_axil_bready = write && !random_.chance(stall);
        top.s_axil_arvalid = read && state_.ar_shown && !state_.ar_done;
        top.s_axil_araddr = state_.address;
        top.s_axil_arprot = 0;
        top.s_axil_rready = read && !random_.chance(stall);
    }

    void sample(Vtop& top) {
        state_.aw_done |= top.s_axil_awvalid && top.s_axil_awready;
        state_.w_done |= top.s_axil_wvalid && top.s_axil_wready;
        state_.ar_done |= top.s_axil_arvalid && top.s_axil_arready;
        if (top.s_axil_bvalid && top.s_axil_bready) {
            state_.response = top.s_axil_bresp;
            state_.busy = false;
        }
        if (top.s_axil_rvalid && top.s_axil_rready) {
            state_.response = top.s_axil_rresp;
            state_.data = top.s_axil_rdata;
            state_.busy = false;
        }
    }

private:
    struct State {
        bool busy = false, write = false;
        bool aw_shown = false, w_shown = false, ar_shown = false;
        bool aw_done = false, w_done = false, ar_done = false;
        uint32_t address = 0, data = 0, response = 0;
    };

    void start(uint32_t address, uint32_t data, bool write) {
        state_ = State{};
        state_.busy = true;
        state_.write = write;
        state_.address = address;
        state_.data = data;
    }

    State state_;
    Random random_{0xC5A};
};

}  // namespace eva
