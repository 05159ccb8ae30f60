"""bfloat16 and float8 as the interpreter keeps them, raw bits in unsigned integers, to float32 and back by PyTorch.

So conversions are PyTorch's own, to the bit: nearest, ties to even, overflow as the installed version does it. Only
these three formats; AMD's and e4b15 stay as Triton has them.
"""

from __future__ import annotations

import numpy as np
import torch

_STORED = {
    "bf16": (torch.bfloat16, torch.int16, np.uint16),
    "fp8e4nv": (torch.float8_e4m3fn, torch.uint8, np.uint8),
    "fp8e5": (torch.float8_e5m2, torch.uint8, np.uint8),
}
"""Triton's name -> PyTorch's type, the integer type that PyTorch can view it as, and the interpreter's."""


def is_stored_as_bits(dtype: object) -> bool:
    """Whether the interpreter keeps this Triton type (scalar or block) as integers that arithmetic must not touch."""
    return getattr(dtype, "scalar", dtype).name in _STORED


def widen(bits: np.ndarray, dtype: object) -> np.ndarray:
    """The float32 values of bit patterns; exact."""
    kind, view, _ = _STORED[dtype.scalar.name]
    integers = np.ascontiguousarray(bits).view(np.int16 if view is torch.int16 else np.uint8)
    return torch.from_numpy(_writable(integers)).view(kind).float().numpy().reshape(bits.shape)


def narrow(values: np.ndarray, dtype: object) -> np.ndarray:
    """The bit patterns nearest to values of any numeric type; float64 and integers pass through float32, as in PyTorch.

    Values that PyTorch cannot hold become what it makes of them.
    """
    kind, view, stored = _STORED[dtype.scalar.name]
    with np.errstate(over="ignore", invalid="ignore"):
        singles = np.ascontiguousarray(values, dtype=np.float32)
    return torch.from_numpy(_writable(singles)).to(kind).view(view).numpy().view(stored).reshape(np.shape(values))


def truncate_bf16(values: np.ndarray) -> np.ndarray:
    """The bfloat16 patterns of float32 values rounded toward zero; NaN stays NaN."""
    singles = np.ascontiguousarray(values, dtype=np.float32)
    bits = (singles.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    # A NaN whose payload lies in the lower half would turn into an infinity.
    return np.where(np.isnan(singles), bits | np.uint16(0x40), bits)


def _writable(array: np.ndarray) -> np.ndarray:
    # PyTorch warns about memory that it must not write to, such as a broadcast constant.
    return array if array.flags.writeable else array.copy()
