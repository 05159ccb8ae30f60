"""Lab 09, timing an asynchronous device: what is true of a right answer."""
