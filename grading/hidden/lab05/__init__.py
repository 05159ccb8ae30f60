"""Lab 05, recomputation and offloading: hidden cases."""
