"""Lab 01, napkin math: hidden cases."""
