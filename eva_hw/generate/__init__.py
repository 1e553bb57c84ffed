"""What the generator writes: Verilog, register descriptions, memory maps and manifests."""

from .verilog import write_verilog

__all__ = ["write_verilog"]
