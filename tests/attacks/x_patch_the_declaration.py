"""Replaces the exercise's declaration: other cases, another driver, no answer wanted."""

HARMLESS = True
BEFORE = """
import torch
from labkit import exercises
from labkit.exercises import lab00
exercise = exercises.find("00-warm-up")
for name, value in (("answers", ()), ("public", ()), ("drive", lambda *args: {"out": torch.zeros(())}),
                    ("inputs", lambda *args: {"x": torch.zeros(1, 1)}), ("points", 1000)):
    object.__setattr__(exercise, name, value)
exercises.find = lambda name: exercise
"""
