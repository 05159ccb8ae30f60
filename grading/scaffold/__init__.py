"""A lab or an exercise that is being begun: every file it needs, each with the smallest thing that works.

What is written passes `make check` as it stands; its author replaces it piece by piece (docs/authoring.md). Nothing
that exists is overwritten.
"""
