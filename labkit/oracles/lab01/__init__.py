"""Lab 01, napkin math: what is true of a right answer."""
