"""Lab 04, batch size and gradient accumulation: hidden cases."""
