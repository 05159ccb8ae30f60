"""Replaces what the worker runs the exercise with: it answers "done" to everything."""

HARMLESS = True
BEFORE = """
import torch, labkit.observe.runs as observe, labkit.tree as tree
from labkit.spec import Observation
def fine(exercise, answers, case, given, *args, **kwargs):
    return Observation(case, given, {"out": torch.zeros(())}, given, {"peak_bytes": 0.0}, None)
import grading.worker.exercise as served
served.observe = observe.observe = fine
observe.plain = tree.plain = lambda value, depth=0: value
"""
