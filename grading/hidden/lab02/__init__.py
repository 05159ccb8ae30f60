"""Lab 02, float formats and summation error: hidden cases."""
