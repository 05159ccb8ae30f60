"""Lab 00, start here: what is true of a right answer."""
