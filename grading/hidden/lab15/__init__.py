"""Lab 15, data parallel: hidden cases."""
