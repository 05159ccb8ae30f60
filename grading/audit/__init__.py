"""Hold the log of a course against the gradebook, the stored results and the archived submissions.

What a grade is worth, and what to do about a difference, is for people.
"""
