"""Lab 12, Triton and fusion: what is true of a right answer."""
