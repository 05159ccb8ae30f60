"""Lab 04, batch size and gradient accumulation: what is true of a right answer."""
