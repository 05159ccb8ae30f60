"""Whether every matrix of the model is trained: in the steps that are watched it goes down the loss's own slope.

Products may be made and thrown away, and a weight written as it was. So in a few steps the engine works out what the
loss's gradient is on the tokens that the step took, and looks where each weight went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.capstone.broken import RuleBroken
from labkit.capstone.model import FUSED, Decoder
from labkit.capstone.size import TINY

LEAST = 0.05


class Descent:
    """What the watched steps came to, matrix by matrix."""

    def __init__(self) -> None:
        self._along: Counter[str] = Counter()
        self._moved: Counter[str] = Counter()
        self._steep: Counter[str] = Counter()

    def look(self, before: Mapping[str, Tensor], after: Mapping[str, Tensor], served: Sequence[Tensor]) -> None:
        """A step on these sentences took the weights from one to the other."""
        both = torch.cat(list(served))
        model = Decoder(TINY, FUSED)
        model.load_state_dict(dict(before))
        with torch.enable_grad():
            F.cross_entropy(model(both[:, :-1]).flatten(0, 1), both[:, 1:].flatten()).backward()
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                way = after[name] - before[name]
                self._along[name] -= (way * weight.grad).sum().item()
                self._moved[name] += way.square().sum().item()
                self._steep[name] += weight.grad.square().sum().item()

    def cosines(self) -> dict[str, float]:
        """By matrix, how far its ways and the slopes have one direction: 1 for all of it, about 0 for none."""
        lengths = {name: (moved * self._steep[name]) ** 0.5 for name, moved in self._moved.items()}
        return {name: self._along[name] / length if length else 0.0 for name, length in lengths.items()}

    def check(self) -> None:
        """Raises RuleBroken where a matrix goes nowhere, or anywhere."""
        for name, cosine in self.cosines().items():
            if cosine < LEAST:
                raise RuleBroken(
                    f"the model's `{name}` is not trained: in the steps that were watched it does not go where the "
                    "loss of their tokens falls",
                    "work",
                )
