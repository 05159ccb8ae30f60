"""Lab 06, optimizers: what is true of an answer."""
