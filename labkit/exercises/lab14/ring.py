"""Lab 14: an all-reduce a chunk at a time around a ring."""

from __future__ import annotations

from labkit.exercises.lab14.group import all_reduce_exercise

RING = all_reduce_exercise("ring", "A chunk at a time around a ring", points=4, minutes=35, difficulty=3)
