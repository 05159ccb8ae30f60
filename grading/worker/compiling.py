"""Loaded before any job of a lab on torch.compile: Dynamo, functorch and inductor, and one graph goes through them.

What they load and build at a first graph takes two seconds, which no fork pays for again. No code is compiled or
loaded, and no thread is left: `tqdm`, which inductor's interpreter shows its progress with, would start one.
"""

from __future__ import annotations

import contextlib

import torch

from labkit.meters.compile import track_compile

with contextlib.suppress(ImportError):
    from tqdm import tqdm

    tqdm.monitor_interval = 0


def rehearsed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x @ weight).softmax(-1).sum()


# With a GPU, Dynamo initializes CUDA, which no process may have done that others are forked from. Where this PyTorch's
# insides are unknown, labs that count nothing of theirs are graded all the same.
if not torch.cuda.is_available():
    with contextlib.suppress(Exception), track_compile(source=True):
        torch.compile(rehearsed)(torch.ones(2, 4), torch.ones(4, 4, requires_grad=True)).backward()
    torch._dynamo.reset()
