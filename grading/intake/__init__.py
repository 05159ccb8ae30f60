"""The way in: how submissions reach `submitted/STUDENT/LAB/`, and the store that keeps every one that ever did.

Reading what arrives (`folder`, `archive`), finding whose it is (`platform`, `roster`), deciding which one counts
(`choose`), putting it there (`accept`), and nbgrader's exchange (`exchange`). Nothing is graded here.
"""
