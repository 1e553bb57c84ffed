# Terasic DE10-Nano: the oscillator.
create_clock -name clk_in -period 20.000 [get_ports clk_in]
derive_pll_clocks
derive_clock_uncertainty
set_false_path -from [get_ports uart_rx]
set_false_path -to [get_ports {uart_tx led[*]}]
