"""Lab 07, data loading: what is true of a right answer."""
