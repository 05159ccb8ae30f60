"""Lab 12, Triton and fusion: hidden cases."""
