"""Lab 14, collectives: hidden cases."""
