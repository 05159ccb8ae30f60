"""PTX's types as numpy's: u8 … b64, f16, f32, f64; bf16 and packed pairs are kept as the bits that they are."""

from __future__ import annotations

import numpy as np

DTYPES = {
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "ub" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "tf32": np.dtype(np.uint32),
    "pred": np.dtype(bool),
}


def dtype_of(name: str) -> np.dtype:
    """numpy's dtype of a PTX type. Raises KeyError for one that is not executed."""
    return DTYPES[name]


def type_bytes(name: str) -> int:
    """The bytes of one value of a PTX type; a predicate counts one."""
    if name == "b128":
        return 16
    if name not in DTYPES:
        raise KeyError(f"the PTX type {name} is not executed")
    return DTYPES[name].itemsize


def bits_of(dtype: np.dtype) -> np.dtype:
    """The unsigned integer type of the same size."""
    return np.dtype(f"u{dtype.itemsize}")
