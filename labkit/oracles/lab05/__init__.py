"""Lab 05, recomputation and offloading: what is true of a right answer."""
