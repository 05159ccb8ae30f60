"""The whole journey on a sample class: a course, submissions good and bad, grades, feedback, a report, a self-check.

What a demo student hands in is known beforehand, so the demo also proves that the grades are right.
"""
