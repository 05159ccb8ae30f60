"""Returns a mapping that says something else at every look, where one tensor is due."""

ROW = 2
HARMLESS = True
ANSWER = """
import collections.abc, torch

class Changing(collections.abc.Mapping):
    looks = 0
    def __len__(self): return 1
    def __iter__(self): return iter(["out"])
    def __getitem__(self, key):
        Changing.looks += 1
        return torch.zeros(Changing.looks)

def rms(x, dim):
    return Changing()
"""
