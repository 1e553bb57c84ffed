"""The accelerator on an FPGA board."""
