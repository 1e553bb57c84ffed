"""A real language model to try the accelerator on: GGUF reading, tokens, and a NumPy forward pass."""
