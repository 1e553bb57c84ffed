# The accelerator (module eva_top_<hash> of `make verilog`) for SKY130 at its typical corner: one clock, and the whole
# boundary timed against it. Read after the design; times in ns, capacitance in pF. Change the period here.

set period 10.0

create_clock -name clk -period $period [get_ports clk]
set_clock_uncertainty 0.25 [get_clocks clk]
set_clock_transition 0.15 [get_clocks clk]

set inputs {
    rst
    s_axil_awaddr s_axil_awprot s_axil_awvalid s_axil_wdata s_axil_wstrb s_axil_wvalid s_axil_bready
    s_axil_araddr s_axil_arprot s_axil_arvalid s_axil_rready
    m_axi_awready m_axi_wready m_axi_bid m_axi_bresp m_axi_bvalid
    m_axi_arready m_axi_rid m_axi_rdata m_axi_rresp m_axi_rlast m_axi_rvalid
}
set outputs {
    irq
    s_axil_awready s_axil_wready s_axil_bresp s_axil_bvalid s_axil_arready s_axil_rdata s_axil_rresp s_axil_rvalid
    m_axi_awid m_axi_awaddr m_axi_awlen m_axi_awsize m_axi_awburst m_axi_awlock m_axi_awcache m_axi_awprot m_axi_awqos
    m_axi_awvalid m_axi_wdata m_axi_wstrb m_axi_wlast m_axi_wvalid m_axi_bready
    m_axi_arid m_axi_araddr m_axi_arlen m_axi_arsize m_axi_arburst m_axi_arlock m_axi_arcache m_axi_arprot m_axi_arqos
    m_axi_arvalid m_axi_rready
}

# The interconnect outside has 30 % of the period on either side.
set_input_delay -max [expr {0.3 * $period}] -clock clk [get_ports $inputs]
set_input_delay -min 0.1 -clock clk [get_ports $inputs]
set_output_delay -max [expr {0.3 * $period}] -clock clk [get_ports $outputs]
set_output_delay -min 0.0 -clock clk [get_ports $outputs]

set_driving_cell -lib_cell sky130_fd_sc_hd__inv_2 -pin Y [get_ports $inputs]
set_load 0.033 [get_ports $outputs]
set_max_fanout 16 [current_design]
set_max_transition 0.75 [current_design]
