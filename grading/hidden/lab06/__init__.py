"""Lab 06, optimizers: hidden cases."""
