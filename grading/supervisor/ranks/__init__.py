"""Exercises of several ranks: which cells a rank runs first, a job for each rank, and the router between them."""
