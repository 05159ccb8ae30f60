"""Lab 07: documents of any length packed into windows of a fixed one, without a token of padding that need not be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch.nn import functional as F

from labkit.spec import Answer, Case, Exercise, Run

IGNORED = -100
SPREAD = 0.9
"""Of the logarithm of a document's length, as in a corpus of web pages."""
SMALL = 256
"""Windows up to this size are attended to."""
HEAD_SIZE = 8


@dataclass(frozen=True)
class Packing(Case):
    """n_documents with this median length to be dealt to windows; and documents of the lengths `layout` to be laid out
    in one window.
    """

    n_documents: int
    window: int
    layout: tuple[int, ...]
    median: int = 20


def corpus(case: Packing, gen: torch.Generator) -> dict[str, Any]:
    """lengths: of the documents to be dealt. documents: the tokens of those that share a window. Token 0 is among them,
    within the longest document and at the end of the last one.
    """
    drawn = torch.exp(math.log(case.median) + SPREAD * torch.randn(case.n_documents, generator=gen))
    documents = [torch.randint(0, 30_000, (length,), generator=gen) for length in case.layout]
    longest = max(documents, key=len)
    longest[len(longest) // 2] = documents[-1][-1] = 0
    return {"lengths": drawn.long().clamp(1, case.window), "documents": documents}


def drive(ans, case: Packing, tree: dict, stage) -> dict[str, Any]:
    """order: the documents' numbers, window after window; sizes: how many are in each. laid_out: what `lay_out` made.
    leaks: pairs (i, j) of documents where the loss of document i has a gradient at the tokens of document j.
    """
    windows = [[int(number) for number in window] for window in ans.pack(tree["lengths"].tolist(), case.window)]
    documents = tree["documents"]
    ans.lay_out([document.clone() for document in documents], case.window)
    with stage.meter("memory"):
        laid_out = dict(ans.lay_out(documents, case.window))
    return {
        "order": torch.tensor([number for window in windows for number in window], dtype=torch.int64),
        "sizes": torch.tensor([len(window) for window in windows], dtype=torch.int64),
        "laid_out": laid_out,
        "leaks": leaks(laid_out, case) if case.window <= SMALL else [],
    }


def leaks(laid_out: dict[str, torch.Tensor], case: Packing) -> list[tuple[int, int]] | None:
    """Attention within the segments of cu_seqlens, and the loss of each document's tokens that have a label. None where
    cu_seqlens cannot be read.
    """
    offsets, labels = laid_out.get("cu_seqlens"), laid_out.get("labels")
    if not all(isinstance(found, torch.Tensor) and found.dim() == 1 for found in (offsets, labels)):
        return None
    if offsets.dtype.is_floating_point:
        return None
    bounds = offsets.tolist()
    if (
        bounds != sorted(bounds)
        or not bounds
        or bounds[0] < 0
        or bounds[-1] > case.window
        or len(labels) != case.window
    ):
        return None
    x = torch.ones(case.window, HEAD_SIZE).cumsum(0).sin().requires_grad_()
    borders = list(pairwise(accumulate(case.layout, initial=0)))
    found = []
    for i, (start, end) in enumerate(borders):
        out = attended(x, bounds)[start:end]
        (grad,) = torch.autograd.grad(out[labels[start:end] != IGNORED].square().sum() + 0 * x.sum(), x)
        found += [(i, j) for j, (first, last) in enumerate(borders) if i != j and grad[first:last].abs().max() > 0]
    return found


def attended(x: torch.Tensor, bounds: list[int]) -> torch.Tensor:
    """Causal self-attention of x (window, head size), one segment at a time; zero where no segment is."""
    out = torch.zeros_like(x)
    for start, end in pairwise(bounds):
        if end > start:
            segment = x[None, start:end]
            attended_to = F.scaled_dot_product_attention(segment, segment, segment, is_causal=True)
            out = out + F.pad(attended_to[0], (0, 0, start, len(x) - end))
    return out


PACKING = Exercise(
    id="07-packing",
    title="No token of padding",
    points=4,
    minutes=30,
    difficulty=3,
    answers=(Answer("pack"), Answer("lay_out")),
    public=(
        Packing(12, 16, (5, 7, 3), median=5),
        Packing(60, 64, (64,)),
        Packing(60, 64, (1, 30, 1, 20)),
        Packing(300, 128, (60, 68), median=40),
        Packing(100_000, 4096, (700, 900, 1100, 1300), median=120),
    ),
    inputs=corpus,
    drive=drive,
    run=Run(cpu_s=4.0, wall_s=30.0),
    meters=("memory",),
)
