"""The reference kernels of solutions/kernels: one file an operation, the same definitions for the CPU and for a GPU."""
