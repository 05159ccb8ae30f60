"""The way in: how submissions reach `submitted/STUDENT/LAB/`, and the archive of every one that ever did.

Reading what arrives (`folder`, `archive`, `exchange`), finding whose it is (`platform`, `roster`), deciding which one
counts (`choose`), putting it in its place (`accept`), one after the other (`take_in`). Nothing is graded here.
"""
