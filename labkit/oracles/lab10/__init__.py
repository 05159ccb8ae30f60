"""Lab 10, the architecture of a GPU: what is true of an answer."""
