"""Lab 10, the architecture of a GPU: hidden cases."""
