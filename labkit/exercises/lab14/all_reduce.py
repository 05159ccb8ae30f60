"""Lab 14: an all-reduce four ways, each asked for by what it sends: all on the same cases."""

from __future__ import annotations

from labkit.exercises.lab14.group import all_reduce_exercise

NAIVE = all_reduce_exercise("naive", "Everything to one rank and back", points=2, minutes=15, difficulty=1)
TREE = all_reduce_exercise("tree", "Up a tree and down again", points=3, minutes=25, difficulty=2)
BUTTERFLY = all_reduce_exercise("butterfly", "Exchange with ever more distant partners", 3, minutes=25, difficulty=2)
RING = all_reduce_exercise("ring", "A chunk at a time around a ring", points=4, minutes=35, difficulty=3)
