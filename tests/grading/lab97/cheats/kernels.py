"""Kernels that reach for Python, or keep what one program computed for the next."""

from __future__ import annotations

from tests.grading.lab97.answers import ADD, ADD_KERNEL
from tests.grading.lab97.cheat import FORGE, Cheat


def _in_kernel(line: str, before: str = "") -> tuple[str, ...]:
    """A right kernel with one more line in it."""
    return (before + ADD.replace("    mask = offs < n\n", f"    mask = offs < n\n    {line}\n"),)


_KEEPS = """
@triton.jit
def keep(x, kept=[]):
    kept += [x]
    return kept


@triton.jit
def keep_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    kept = keep(tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))
    if tl.program_id(0) == tl.num_programs(0) - 1:
        total = 0.0
        for i in range(tl.num_programs(0)):
            total += kept[len(kept) - 1 - i]
        tl.store(out_ptr, total)


def total(x):
    out = x.new_empty(())
    keep_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK_SIZE=128)
    return out
"""

KERNEL_CHEATS = (
    Cheat(
        "a kernel that looks for Python's classes",
        "97-add",
        _in_kernel("y = ().__class__"),
        "failed",
        "uses `.__class__`",
    ),
    Cheat(
        "a kernel that reaches Python's objects through a tensor",
        "97-add",
        _in_kernel("y = offs.handle.data"),
        "failed",
        "uses `.data`",
    ),
    Cheat(
        "a kernel that reaches modules through Triton's",
        "97-add",
        _in_kernel("y = tl.core.math"),
        "failed",
        "uses `triton.language.core.math`",
    ),
    Cheat("a kernel that imports", "97-add", _in_kernel("import math"), "failed", "has a `import` statement"),
    Cheat("a kernel that calls Python", "97-add", _in_kernel("y = id(n)"), "failed", "uses `id`"),
    Cheat(
        "a kernel that calls a plain function",
        "97-add",
        _in_kernel("twice(n)", "def twice(n):\n    return 2 * n\n\n"),
        "failed",
        "calls `twice`, which is not under @triton.jit",
    ),
    Cheat(
        "a kernel that calls a method of its own",
        "97-add",
        _in_kernel("meter.off", "class meter:\n    off = 1\n\n"),
        "failed",
        "uses `.off`",
    ),
    Cheat(
        "a kernel that no cell holds",
        "97-add",
        (f"exec({ADD_KERNEL!r})", ADD.replace(ADD_KERNEL, "")),
        "failed",
        "has no source in this notebook's cells",
    ),
    Cheat(
        "a list as a default, which lives on from program to program", "97-total", (_KEEPS,), "suspected", "kept += "
    ),
    Cheat(
        "a list at the top level, which lives on from program to program",
        "97-total",
        ("KEPT = []\n" + _KEEPS.replace("kept=[]", "kept").replace("0.0)))", "0.0)), KEPT)"),),
        "suspected",
        "kept += ",
    ),
    Cheat(
        "a record of a list as an argument, which lives on from program to program",
        "97-total",
        (
            FORGE.format(change='log["entries"][0]["arguments"]["kept"] = {"plain": []}'),
            _KEEPS.replace("kept=[]", "kept")
            .replace("0.0)))", "0.0)), kept)")
            .replace("n, BLOCK_SIZE:", "n, kept: tl.constexpr, BLOCK_SIZE:")
            .replace("numel(), BLOCK", "numel(), [], BLOCK"),
        ),
        "suspected",
        "argument kept of kernel keep_kernel",
    ),
    Cheat(
        "a constant without an end, in a line that never ran",
        "97-add",
        _in_kernel("y = ODD", "ODD = tl.constexpr(1)\nif not ODD:\n    ODD = max(range(100000000000))\n\n"),
        "limit",
        "a constant of the kernels that takes long",
    ),
    Cheat(
        "a constant of too many digits",
        "97-add",
        _in_kernel("y = ODD", f"ODD = tl.constexpr(1)\nif not ODD:\n    ODD = 0x{'f' * 6000}\n\n"),
        "failed",
        "a number that cannot be written down",
    ),
)
