"""Lab 19, long context and experts: hidden cases."""
