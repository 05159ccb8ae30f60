"""Lab 14, collectives: what is true of a right answer."""
