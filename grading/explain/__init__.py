"""A second look at one student's work, for the instructor's eyes: cases, expected and returned values, budgets, code.

What students are not shown is shown here, the hidden cases too. No grade changes.
"""
