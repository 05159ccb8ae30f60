"""A matrix that is trained goes where the loss falls, and one that stands still or wanders about does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.capstone.broken import RuleBroken
from labkit.capstone.descent import LEAST, Descent
from labkit.capstone.language import Language
from labkit.capstone.model import FUSED, Decoder, start
from labkit.capstone.size import TINY

OUT = "blocks.2.out.weight"


def trained(change: Callable[[str, Tensor], Tensor], n_steps: int = 12) -> Descent:
    """Steps by change(name, gradient)."""
    language, model, descent = Language(3, TINY.vocab, TINY.seq_len), Decoder(TINY, FUSED), Descent()
    start(model, torch.Generator().manual_seed(0))
    for stream in range(1, n_steps + 1):
        both = language.sentences(4, stream)
        before = {name: one.detach().clone() for name, one in model.named_parameters()}
        F.cross_entropy(model(both[:, :-1]).flatten(0, 1), both[:, 1:].flatten()).backward()
        with torch.no_grad():
            for name, one in model.named_parameters():
                one += change(name, one.grad)
                one.grad = None
        after = {name: one.detach().clone() for name, one in model.named_parameters()}
        # As two calls of the script, of two sentences each.
        descent.look(before, after, both.split(2))
    return descent


def test_the_gradients_own_way_is_all_of_it_and_its_signs_are_most() -> None:
    cosines = trained(lambda _, grad: -0.1 * grad).cosines()
    assert len(cosines) == 2 + 4 * 4
    assert min(cosines.values()) > 0.999
    signs = trained(lambda _, grad: -1e-3 * grad.sign())
    assert min(signs.cosines().values()) > 0.3
    signs.check()


@pytest.mark.parametrize("way", ["stands still", "wanders", "climbs"])
def test_a_matrix_that_is_not_trained_is_named(way: str) -> None:
    gen = torch.Generator().manual_seed(1)
    ways = {
        "stands still": torch.zeros_like,
        "wanders": lambda grad: grad.norm() * torch.randn(grad.shape, generator=gen) / 32,
        "climbs": lambda grad: grad,
    }
    found = trained(lambda name, grad: ways[way](grad) if name == OUT else -0.1 * grad)
    assert found.cosines()[OUT] < LEAST
    with pytest.raises(RuleBroken, match=r"the model's `blocks\.2\.out\.weight` is not trained") as broken:
        found.check()
    assert broken.value.kind == "work"


def test_what_overflowed_is_left_to_its_loss() -> None:
    trained(lambda _, grad: grad * float("nan"), n_steps=2).check()
