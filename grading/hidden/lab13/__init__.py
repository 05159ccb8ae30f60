"""Lab 13, tiles and online algorithms: hidden cases."""
