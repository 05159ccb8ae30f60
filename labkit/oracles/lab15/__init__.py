"""Lab 15, data parallel: what is true of a right answer."""
