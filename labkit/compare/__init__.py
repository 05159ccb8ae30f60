"""A pure diff of nested tensors: the first place where a tree differs from the expected one, or nothing."""

from labkit.compare.diff import Mismatch, compare
from labkit.compare.properties import came_by, inputs_untouched, sent_around

__all__ = ["Mismatch", "came_by", "compare", "inputs_untouched", "sent_around"]
