"""Lab 08: block-wise 4-bit NormalFloat with quantized scales. What is asked, given and run.

How near the result has to come is not here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise

BLOCK, SECOND_BLOCK = 64, 256
"""Weights that share a scale, and scales that share a scale of their own."""


@dataclass(frozen=True)
class Weights(Case):
    """kind: "normal", "uneven" (every block of another size), "outliers" (one in 200 is ten times as large),
    "faint" (every third block is 100,000 times as small), "zeros" (every third block is of zeros, every third one
    large), "grid" (values around every midpoint of the code).

    strided: the rows are not one after the other in memory, as in a transposed weight.
    """

    shape: tuple[int, ...] = (64, 96)
    double: bool = False
    kind: str = "normal"
    scale: float = 0.02
    task: bool = False
    strided: bool = False

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


def weights(case: Weights, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """w: float32 of the case's shape."""
    n = case.numel
    w = torch.randn(n, generator=gen)
    block = torch.arange(n) // BLOCK
    if case.kind == "uneven":
        w *= torch.exp(0.5 * torch.randn(int(block[-1]) + 1, generator=gen))[block]
    elif case.kind == "outliers":
        w = torch.where(torch.rand(n, generator=gen) < 1 / 200, 10 * w, w)
    elif case.kind == "zeros":
        w[block % 3 == 1] = 0.0
        w[block % 3 == 2] *= 3.0
    elif case.kind == "faint":
        w[block % 3 == 1] *= 1e-5
    elif case.kind == "grid":
        w = 2 * torch.rand(n, generator=gen) - 1
        w[::BLOCK] = 1.0
    return {"w": (case.scale * w).reshape(case.shape)}


def another(w: torch.Tensor) -> torch.Tensor:
    """A weight of the same shape that is quantized in between: what is kept outside of the state is then this one's."""
    return 2 * w.flip(0)


def drive_nf4(ans, case: Weights, tree: dict, stage) -> dict[str, object]:
    """codebook: the 16 values. state: all that is kept of w. back: what is made of it again.

    stays: the same comes back after a weight of another size was quantized, with the other value of `double`.
    """
    w = tree["w"].to(stage.device)
    w = w.T.contiguous().T if case.strided else w
    state = ans.quantize_nf4(w, case.double)
    tree["w"] = w.cpu()
    found: dict[str, object] = {"codebook": ans.nf4_codebook(), "state": state, "back": None, "stays": None}
    if isinstance(state, dict):
        state = _as_from_a_file(state)
        ans.quantize_nf4(another(w), case.double)
        found["back"] = ans.dequantize_nf4(state, case.shape)
        ans.quantize_nf4(w.flatten()[: BLOCK + 1], not case.double)
        found["stays"] = _same_again(ans, state, case, found["back"])
    return found


def _as_from_a_file(state: dict) -> dict:
    """What is left of a state that was saved and loaded: the names and the values, and nothing that hangs on them."""
    plain = torch.Tensor.detach
    return {
        name: plain(item).clone(memory_format=torch.contiguous_format) if isinstance(item, torch.Tensor) else item
        for name, item in state.items()
    }


def _same_again(ans, state: dict, case: Weights, back: object) -> bool:
    try:
        again = ans.dequantize_nf4(state, case.shape)
        return torch.equal(again.nan_to_num(), back.nan_to_num())
    except Exception:
        # A size that is left of the other weight shows in this way too.
        return False


NF4 = Exercise(
    id="08-nf4",
    title="Four bits for a weight",
    points=4,
    minutes=40,
    difficulty=3,
    answers=(Answer("nf4_codebook"), Answer("quantize_nf4"), Answer("dequantize_nf4")),
    public=(
        Weights((32, 64), kind="grid", scale=0.5),
        Weights((64, 64), kind="uneven", task=True),
        Weights((256, 256), kind="faint"),
        Weights((257, 256), double=True, kind="uneven"),
        Weights((300, 321), double=True, kind="outliers"),
        Weights((40, 64), double=True, kind="zeros"),
        Weights((7, 33), kind="normal", scale=3.0, strided=True),
    ),
    inputs=weights,
    drive=drive_nf4,
)
