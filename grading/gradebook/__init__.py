"""Where our grading meets nbgrader: its configuration, its preprocessors, its gradebook, its feedback pages.

nbgrader keeps the format, the database, the exchange, late penalties, manual grading and feedback pages. Only the
execution is replaced.
"""
