"""The attack matrix: hand in every submission of tests/attacks/ beside honest ones, grade, and measure the damage.

Nothing here is used when a class is graded.
"""
