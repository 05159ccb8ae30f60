"""Lab 14: an all-reduce up a tree and down again."""

from __future__ import annotations

from labkit.exercises.lab14.group import all_reduce_exercise

TREE = all_reduce_exercise("tree", "Up a tree and down again", points=0.4, minutes=25, difficulty=2, optional=True)
