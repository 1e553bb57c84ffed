"""eva_hw: a generator of EVA, an accelerator that decodes vector-quantized LLMs."""

__version__ = "0.1.0"
