"""Answers to lab 97 that earn nothing: what each tries, the exercise, cells, and how its verdict must read.

A cheat's cells are put behind the imports, the last of them is the answer's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.grading.lab97.answers import ADD, ADD_KERNEL, PRODUCT, SOFTMAX, TOTAL


@dataclass(frozen=True)
class Cheat:
    """says: a part of what the student reads, or, of a suspected answer, of what the instructor reads."""

    tries: str
    exercise: str
    cells: tuple[str, ...]
    outcome: str
    says: str


_LAUNCH = "add_kernel[(triton.cdiv(x.numel(), 128),)](x, y, {out}, x.numel(), BLOCK_SIZE=128)"
_PATCH = """
from labkit.meters import METERS
import contextlib
honest = METERS["traffic"]
@contextlib.contextmanager
def less(measured, held):
    with honest(measured, held): yield
    measured.update(load_bytes=8.0 * measured["launches"], store_bytes=0.0, atomic_bytes=0.0, launches=1.0,
                    out_of_bounds=0.0, races=0.0, computed_by_torch=0.0)
METERS["traffic"] = less
"""
_FORGE = """
from labkit.meters.launch_log import LaunchLog
as_it_was = LaunchLog.as_tree
def forged(self, outputs):
    tape = as_it_was(self, outputs)
    if not outputs: return tape
    {change}
    return tape
LaunchLog.as_tree = forged
"""
_IN_TORCH = "def add(x, y):\n    return x + y"


def _in_kernel(line: str, before: str = "") -> tuple[str, ...]:
    """A right kernel with one more line in it."""
    return (before + ADD.replace("    mask = offs < n\n", f"    mask = offs < n\n    {line}\n"),)


_A_KERNEL_FOR_EACH_SIZE = """
""" + "\n".join(f"@triton.jit\ndef k{n}(x_ptr):\n    y = ().__class__\n" for n in range(4))
_NAME_THE_SIZE = """
    from labkit.meters.launch_log import digest_of_function
    n = sum(tape["outputs"]["out"]["shape"])
    if n not in (300, 257):
        kernel = (k0, k1, k2, k3)[n % 4]
        tape["entries"][0]["kernel"] = [f"k{n % 4}", digest_of_function(kernel.fn)]
"""
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
_TOUCH = """
@triton.jit
def touch_kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.load(x_ptr + tl.arange(0, N)))


def total(x):
    touch_kernel[(1,)](x, 1)
"""
_NARROW_SOFTMAX = SOFTMAX.replace("num_warps=1", "num_warps=4")
_BY_HAND = PRODUCT.replace(
    "tl.dot(a, b)", "tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), axis=1)"
).replace("N=len(a)", "N=len(a), num_warps=8")
_NOT_ON_MATRIX_UNITS = "The product does not run on the tensor cores"
_BY_TORCH = "rests on `add`, computed by PyTorch"

CHEATS = (
    Cheat("no kernel at all", "97-add", (_IN_TORCH,), "failed", "PyTorch computes a part of the result"),
    Cheat("no kernel, and no word of it", "97-add", (_PATCH, _IN_TORCH), "failed", _BY_TORCH),
    Cheat(
        "PyTorch, and a kernel launched on scratch memory",
        "97-softmax",
        (
            _PATCH,
            SOFTMAX.replace("    return out", "    return torch.softmax(x, -1)"),
        ),
        "failed",
        "rests on `_softmax`, computed by PyTorch",
    ),
    Cheat(
        "a kernel that copies PyTorch's result",
        "97-add",
        (
            _PATCH,
            ADD.replace("tl.load(x_ptr + offs, mask=mask) + tl.load", "tl.load").replace(
                "(x, y, out", "(x, x + y, out"
            ),
        ),
        "failed",
        _BY_TORCH,
    ),
    Cheat(
        "PyTorch's result as a number in the launch",
        "97-total",
        (
            _PATCH,
            "@triton.jit\ndef put(out_ptr, value):\n    tl.store(out_ptr, value)\n\n"
            "def total(x):\n    out = x.new_empty(())\n    put[(1,)](out, x.sum().item())\n    return out",
        ),
        "failed",
        "rests on `sum`, computed by PyTorch",
    ),
    Cheat(
        "a copy by a kernel, the rest by PyTorch",
        "97-total",
        (
            _PATCH,
            TOTAL.replace("tl.program_id(0), tl.sum(", "offs, (").split("def total")[0]
            + "def total(x):\n    copy = x.new_empty(-(-x.numel() // 128) * 128)\n"
            "    partial_kernel[(triton.cdiv(x.numel(), 128),)](x, copy, x.numel(), BLOCK_SIZE=128)\n"
            "    return copy.sum()",
        ),
        "failed",
        "read more often than it has to be",
    ),
    Cheat(
        "figures that the meter did not count",
        "97-add",
        (_PATCH, ADD.replace("    return out", f"    {_LAUNCH.format(out='out')}\n    return out")),
        "failed",
        "read more often than it has to be",
    ),
    Cheat(
        "a record of a launch that writes the result of PyTorch as constants",
        "97-total",
        (
            _PATCH,
            _FORGE.format(
                change='out = tape["outputs"]["out"]; tape["entries"] = [{"do": "constants", "to": out, '
                '"values": [float(VALUE)]}]'
            ),
            "def total(x):\n    global VALUE\n    VALUE = x.sum()\n    return VALUE",
        ),
        "failed",
        "come out of the kernels that the answer launches",
    ),
    Cheat(
        "a record in which PyTorch adds the inputs up",
        "97-add",
        (
            _PATCH,
            _FORGE.format(
                change='refs = [{"storage": n, "offset": 0, "shape": list(outputs["out"].shape), "strides": [1], '
                '"dtype": "float32"} for n in (0, 1)]\n    tape["entries"] = [{"do": "add", "to": '
                'tape["outputs"]["out"], "left": {"tensor": refs[0]}, "right": {"tensor": refs[1]}, '
                '"times": 1, "name": "add"}]'
            ),
            _IN_TORCH,
        ),
        "failed",
        _BY_TORCH,
    ),
    Cheat(
        "no record",
        "97-add",
        (_PATCH, _FORGE.format(change="tape = None"), _IN_TORCH),
        "suspected",
        "cannot be read",
    ),
    Cheat(
        "a record that names no results",
        "97-add",
        (_PATCH, _FORGE.format(change='tape["outputs"] = {}'), _IN_TORCH),
        "suspected",
        "names no origin of out",
    ),
    Cheat(
        "a record whose memory lies outside of everything",
        "97-add",
        (_FORGE.format(change='tape["outputs"]["out"]["offset"] = 10**6'), ADD),
        "suspected",
        "could not be run again",
    ),
    Cheat(
        "a record of much memory",
        "97-add",
        (_FORGE.format(change='tape["storages"].append({"bytes": 2**40})'), ADD),
        "suspected",
        "could not be run again",
    ),
    Cheat(
        "a record of a launch without an end",
        "97-total",
        (_FORGE.format(change='tape["entries"][0]["grid"] = [2**31 - 1, 1, 1]'), TOTAL),
        "limit",
        "a loop in a kernel that hardly ends",
    ),
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
        "an operation named after what was fed",
        "97-add",
        (
            _PATCH,
            _FORGE.format(change='tape["entries"][0].update(do="lost", name="n is 257", to=[tape["outputs"]["out"]])'),
            _IN_TORCH,
        ),
        "failed",
        "Let the result come out of the kernels",
    ),
    Cheat(
        "a kernel of its own text for each size that is fed",
        "97-add",
        (_A_KERNEL_FOR_EACH_SIZE, _FORGE.format(change=_NAME_THE_SIZE), ADD),
        "failed",
        "hint='A kernel that it launches cannot be run from its text alone",
    ),
    Cheat(
        "an operation of PyTorch's for each size that is fed",
        "97-add",
        (
            _PATCH,
            _FORGE.format(
                change='n = sum(tape["outputs"]["out"]["shape"])\n    names = [name for name in dir(torch.ops.aten) '
                'if name[0] != "_"]\n    name = "sin" if n in (300, 257) else names[n % len(names)]\n    '
                'tape["entries"][0] = {"do": "lost", "name": name, "to": [tape["outputs"]["out"]]}'
            ),
            _IN_TORCH,
        ),
        "failed",
        "The result rests on `sin`, computed by PyTorch",
    ),
    Cheat(
        "Triton replaced by PyTorch",
        "97-add",
        (
            "class Fake:\n    def __init__(self, fn): pass\n    def __getitem__(self, grid): return self\n"
            "    def __call__(self, x, y, out, n, BLOCK_SIZE): torch.add(x, y, out=out)\ntriton.jit = Fake",
            _PATCH,
            ADD,
        ),
        "failed",
        _BY_TORCH,
    ),
    Cheat(
        "the interpreter replaced by PyTorch",
        "97-add",
        (
            "from triton.runtime.interpreter import GridExecutor\n"
            "def fake(self, x, y, out, n, BLOCK_SIZE): torch.add(x, y, out=out)\nGridExecutor.__call__ = fake",
            _PATCH,
            ADD,
        ),
        "failed",
        _BY_TORCH,
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
            _FORGE.format(change='tape["entries"][0]["arguments"]["kept"] = {"plain": []}'),
            _KEEPS.replace("kept=[]", "kept")
            .replace("0.0)))", "0.0)), kept)")
            .replace("n, BLOCK_SIZE:", "n, kept: tl.constexpr, BLOCK_SIZE:")
            .replace("numel(), BLOCK", "numel(), [], BLOCK"),
        ),
        "suspected",
        "argument kept of kernel keep_kernel",
    ),
    Cheat(
        "a kernel that touches one number of what PyTorch sums up",
        "97-total",
        (_PATCH, _TOUCH + "    return x.sum()"),
        "failed",
        "rests on `sum`, computed by PyTorch",
    ),
    Cheat(
        "a kernel that touches the first of many parts that PyTorch sums up",
        "97-total",
        (_PATCH, _TOUCH.replace(", 1)", ", 32)") + "    return sum(one.sum() for one in x.split(32))"),
        "failed",
        "rests on `sum` or `add`, computed by PyTorch",
    ),
    Cheat(
        "PyTorch, number by number",
        "97-add",
        (
            _PATCH,
            "def add(x, y):\n    out = torch.empty_like(x)\n    for i in range(len(x)):\n"
            "        torch.add(x[i], y[i], out=out[i])\n    return out",
        ),
        "failed",
        _BY_TORCH,
    ),
    Cheat(
        "a record that has an input twice",
        "97-add",
        (_FORGE.format(change='tape["storages"].append({"input": "x"})'), ADD),
        "suspected",
        "names an input twice",
    ),
    Cheat(
        "a record that counts its memory backwards",
        "97-add",
        (_FORGE.format(change='tape["outputs"]["out"]["storage"] = -1'), ADD),
        "suspected",
        "could not be run again",
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
