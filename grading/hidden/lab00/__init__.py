"""Lab 00, start here: hidden cases."""
