"""Powers of 1024 bytes. How an amount is written, `labkit.units` knows."""

GiB = 2**30
MiB = 2**20
KiB = 2**10
