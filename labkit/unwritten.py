"""Memory that nobody has written to, as a meter of kernels fills it and as a judge recognises it.

Every byte is UNWRITTEN_BYTE, which is NaN in every format of floating point. Arithmetic makes NaNs of other bits, and
hands this one on: what rests on such memory, directly or through a sum, has its bits. Integers cannot be told apart.
"""

from __future__ import annotations

import torch
from torch import Tensor

UNWRITTEN_BYTE = 0xFF

_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def unwritten_floats(*shape: int) -> Tensor:
    """A float32 tensor of this shape that nobody has written to, for a kernel to write its result to."""
    return torch.full(shape, -1, dtype=torch.int32).view(torch.float32)


def unwritten(values: Tensor) -> Tensor:
    """Of each element whether all its bits are those of memory that nobody has written to; False for integers."""
    if not values.is_floating_point():
        return torch.zeros(values.shape, dtype=torch.bool)
    return values.contiguous().view(_SAME_SIZE[values.element_size()]) == -1
