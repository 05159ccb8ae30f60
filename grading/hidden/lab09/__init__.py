"""Lab 09, timing an asynchronous device: hidden cases."""
