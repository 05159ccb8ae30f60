"""Lab 13, tiles and online algorithms: what is true of a right answer."""
