"""Lab 95, which only tests have: kernels in CUDA C++."""
