"""The untrusted side: runs a student's cells and the exercises' drivers, and returns plain trees of arrays.

This package and `labkit` without its oracles are all that the worker's import path holds. It makes no verdict and
knows no expected value; whatever it says may be a lie, and the supervisor treats it so.
"""
