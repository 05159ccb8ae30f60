"""Calls the library's checkpoint out of a table of all that its module holds."""

ROW = 46
HARMLESS = True
EXERCISE = "05-checkpoint"
ANSWER = """
import torch.utils.checkpoint as borrowed
table = [value for name, value in sorted(vars(borrowed).items()) if name == "checkpoint"]

def checkpoint(function, *args):
    return table[0](function, *args, use_reentrant=False)
"""
