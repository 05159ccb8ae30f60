"""Answers that are right at small sizes, and not what they seem to be on a GPU or at full size."""

from __future__ import annotations

from tests.grading.lab97.answers import PRODUCT, SOFTMAX
from tests.grading.lab97.cheat import Cheat

_NARROW_SOFTMAX = SOFTMAX.replace("num_warps=1", "num_warps=4")
_BY_HAND = PRODUCT.replace(
    "tl.dot(a, b)", "tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), axis=1)"
).replace("N=len(a)", "N=len(a), num_warps=8")
_NOT_ON_MATRIX_UNITS = "The product does not run on the tensor cores"

FULL_SIZE_CHEATS = (
    Cheat(
        "narrow accesses, and a wide copy that no program comes to",
        "97-softmax",
        (
            _NARROW_SOFTMAX.replace(
                "    e = tl.exp(",
                "    if n_cols < 0:\n        wide = tl.arange(0, 1024)\n"
                "        tl.store(out_ptr + wide, tl.load(x_ptr + wide))\n    e = tl.exp(",
            ),
        ),
        "failed",
        "Threads move memory in narrow pieces",
    ),
    Cheat(
        "a product by hand, and one of matrices that no program comes to",
        "97-product",
        (
            _BY_HAND.replace(
                "    tl.store(",
                "    if tl.program_id(0) > 0:\n        tl.store(out_ptr + here, tl.dot(a, b))\n    tl.store(",
            ),
        ),
        "failed",
        _NOT_ON_MATRIX_UNITS,
    ),
    Cheat(
        "a product by hand, and a small one of matrices",
        "97-product",
        (
            _BY_HAND.replace(
                "    tl.store(",
                "    some = tl.zeros((16, 16), tl.float16) + tl.max(tl.max(a, axis=0), axis=0)\n"
                "    zero = (tl.max(tl.max(tl.dot(some, some), axis=0), axis=0) > 1e9).to(tl.float32)\n    tl.store(",
            ).replace("here, tl.sum(", "here, zero + tl.sum("),
        ),
        "failed",
        _NOT_ON_MATRIX_UNITS,
    ),
    Cheat(
        "at full size, a number from a tensor",
        "97-softmax",
        (
            SOFTMAX.replace(
                "    out = ", "    if len(x) == 4096 and x[0, 0].item() == 1:\n        return None\n    out = "
            ),
        ),
        "failed",
        "Pass the tensor itself to the kernel",
    ),
    Cheat(
        "at full size, nothing is launched",
        "97-softmax",
        (SOFTMAX.replace("    block = ", "    if len(x) == 4096:\n        return out\n    block = "),),
        "failed",
        "A launch of a few programs leaves most of a GPU idle",
    ),
    Cheat(
        "at full size, one warp for what needs many",
        "97-softmax",
        (SOFTMAX.replace("triton.next_power_of_2(x.shape[1])", "triton.next_power_of_2(8 * x.shape[1])"),),
        "failed",
        "does not fit into registers",
    ),
    Cheat(
        "at full size, a block that the compiler refuses",
        "97-softmax",
        (SOFTMAX.replace("triton.next_power_of_2(x.shape[1])", "128 if len(x) < 4096 else 2**21"),),
        "failed",
        "It runs at small sizes only",
    ),
)
