"""Lab 02, float formats and summation error: what is true of a right answer."""
