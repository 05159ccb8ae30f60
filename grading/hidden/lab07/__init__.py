"""Lab 07, data loading: hidden cases."""
