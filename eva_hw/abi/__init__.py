"""What hardware and software agree on in memory: job descriptors and registers. No Amaranth here."""
