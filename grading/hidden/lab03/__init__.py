"""Lab 03, mixed precision: hidden cases."""
