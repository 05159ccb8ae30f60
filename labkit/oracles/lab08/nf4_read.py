"""Lab 08: what a 4-bit weight says about how it was made, read back from its values alone.

The layout of the stored tensors is the student's own, so scales and codes are recovered from the dequantized
weight: the element of a block with the largest magnitude has the code 1 or -1, whose value is the scale.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from labkit.exercises.lab08.nf4 import BLOCK, SECOND_BLOCK, Weights
from labkit.oracles.hints import once
from labkit.spec import CaseRun

CODEBOOK = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
"""As published: Dettmers and others, QLoRA (2023), appendix E."""
SMALLEST = 1e-3
"""A recovered scale below this share of the block's largest element says nothing about codes."""


def blocks_of(flat: torch.Tensor, size: int) -> torch.Tensor:
    """(blocks, size), the last one filled up with zeros."""
    return torch.nn.functional.pad(flat, (0, -len(flat) % size)).reshape(-1, size)


def code_of(u: torch.Tensor) -> torch.Tensor:
    """The code nearest to each value."""
    codes = torch.tensor(CODEBOOK, dtype=torch.float64)
    middles = (codes[1:] + codes[:-1]) / 2
    return codes[torch.bucketize(u, middles)]


def nearest(u: torch.Tensor) -> torch.Tensor:
    """How far each value is from the nearest code."""
    return (u - code_of(u)).abs()


@dataclass(frozen=True)
class Read:
    """Blocks in float64. w, back: (n_blocks, 64). scale: the right scale of each; used: the one found in `back`."""

    case: Weights
    w: torch.Tensor
    back: torch.Tensor

    @functools.cached_property
    def scale(self) -> torch.Tensor:
        return self.w.abs().amax(1)

    @functools.cached_property
    def used(self) -> torch.Tensor:
        at = self.w.abs().argmax(1, keepdim=True)
        return (self.back.gather(1, at) * self.w.gather(1, at).sign()).squeeze(1)

    @functools.cached_property
    def readable(self) -> torch.Tensor:
        """The blocks whose scale is there to be divided by."""
        return (self.scale > 0) & (self.used > SMALLEST * self.scale)

    @functools.cached_property
    def codes(self) -> torch.Tensor:
        """The values on the scale of the code, of the readable blocks."""
        return self.back[self.readable] / self.used[self.readable, None]

    def wanted(self, by: str) -> torch.Tensor:
        """The weights of the readable blocks over their right scale, or over the one that was used."""
        return self.w[self.readable] / (self.scale if by == "scale" else self.used)[self.readable, None]

    def off_grid(self, atol: float = 1e-3) -> torch.Tensor:
        return nearest(self.codes) > atol

    def not_nearest(self, atol: float = 1e-3) -> torch.Tensor:
        """Where another code is nearer, whether the code was chosen with the exact scale or with the stored one."""
        bad = torch.ones_like(self.codes, dtype=torch.bool)
        for by in ("scale", "used"):
            u = self.wanted(by)
            bad &= (u - self.codes).abs() > nearest(u) + atol
        return bad

    def scale_steps(self, centred: bool = True) -> torch.Tensor:
        """The step of an 8-bit scale, of each block: from the largest |scale - mean| of its 256 scales."""
        d = self.scale - self.scale.mean() if centred else self.scale
        groups = blocks_of(d.abs(), SECOND_BLOCK)
        return (groups.amax(1) / 127).repeat_interleave(SECOND_BLOCK)[: len(d)]

    def scale_allowed(self, centred: bool = True, steps: float = 0.5) -> torch.Tensor:
        """How far a stored scale may be from the right one."""
        exact = 1e-5 * self.scale + 1e-12
        return exact + 1.01 * steps * self.scale_steps(centred) if self.case.double else exact


@once
def read(run: CaseRun[Weights]) -> Read:
    w, back = (t.double().reshape(-1) for t in (run.tree["w"], run.got["back"]))
    return Read(run.case, blocks_of(w, BLOCK), blocks_of(back, BLOCK))


def bits_per_weight(run: CaseRun[Weights]) -> float:
    """Of all tensors, with their names and with 8 bytes for each number of a shape: values could hide in these too."""
    n_bytes = sum(kept.nbytes + 8 * kept.dim() + len(name.encode()) for name, kept in run.got["state"].items())
    return 8 * n_bytes / run.case.numel
