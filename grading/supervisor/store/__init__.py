"""Exercises with a store: the books that the supervisor keeps, and the jobs that run on them one after the other."""
