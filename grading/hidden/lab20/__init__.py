"""Lab 20, the capstone: hidden cases."""
