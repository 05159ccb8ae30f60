"""Compute float32 in float32: in a block of code nothing rounds the inputs of products to TF32 or bfloat16.

PyTorch lets cuDNN do so unless told otherwise, and a notebook may have asked for it. PyTorch has two sets of names for
this, old and new; both are put back as they were. What a GPU rounds otherwise than a CPU stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import backends

T = TypeVar("T")


@contextlib.contextmanager
def full_float32() -> Iterator[None]:
    """Run a block in full precision, whatever is set outside."""
    places = (backends.cuda.matmul, backends.mkldnn.matmul, backends.cudnn.conv, backends.cudnn.rnn)
    before = [place.fp32_precision for place in places]
    # Where both sets have been used, the old names cannot be read: they are then at their defaults.
    products = _readable(torch.get_float32_matmul_precision, "highest")
    cudnn = _readable(lambda: backends.cudnn.allow_tf32, True)
    torch.set_float32_matmul_precision("highest")
    backends.cudnn.allow_tf32 = False
    for place in places:
        place.fp32_precision = "ieee"
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        backends.cudnn.allow_tf32 = cudnn
        for place, precision in zip(places, before, strict=True):
            place.fp32_precision = precision


def _readable(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except RuntimeError:
        return otherwise
