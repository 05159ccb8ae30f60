"""Lab 14: an all-reduce by exchanges with ever more distant partners."""

from __future__ import annotations

from labkit.exercises.lab14.group import all_reduce_exercise

BUTTERFLY = all_reduce_exercise(
    "butterfly", "Exchange with ever more distant partners", points=0.4, minutes=25, difficulty=2, optional=True
)
