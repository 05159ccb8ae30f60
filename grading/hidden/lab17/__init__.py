"""Lab 17, tensor parallelism: hidden cases."""
