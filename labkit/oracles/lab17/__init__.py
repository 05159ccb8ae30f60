"""Lab 17, tensor parallelism: what is true of its answers."""
