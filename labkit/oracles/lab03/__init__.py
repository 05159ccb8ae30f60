"""Lab 03, mixed precision: what is true of a right answer."""
