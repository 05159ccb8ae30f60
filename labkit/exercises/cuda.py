"""What drivers of exercises on CUDA C++ have in common: a cell's text -> the kernel that it has to define.

The student writes `transpose = r\"\"\"...\"\"\"`, one string of CUDA C++. It is `Answer("transpose", kind="text")` of
an exercise with `Run(cells=False)`: the grader takes the string out of the cell's text, and runs no Python of the
student's for it. A check in a notebook is given the string itself. The driver launches the kernel inside of
`stage.meter("cuda")`, on tensors of the CPU, and returns these.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from labkit.simt import Kernel, compile_cuda

MAX_WORK = 1 << 30


class NoPlainString(ValueError):
    """The answer's cell makes its text by a computation, which the grader does not carry out."""


def cuda_source(text: str, name: str) -> str:
    """The CUDA C++ of an answer. text: of its cell, which assigns one string to `name`; or that string itself.

    Raises NoPlainString where the cell computes it. Of C++ that no cell is around, nothing is asked.
    """
    value = _assigned(text, name)
    if value is None and not re.search(rf"^{name}\s*=", text, re.MULTILINE):
        return text
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    raise NoPlainString(
        f'the grader reads `{name}` from the text of its cell: write it as one plain string, {name} = r"""...""", '
        "without f, + or a call"
    )


def cell_of(program: Sequence[str], name: str) -> str | None:
    """The last of these cells that assigns something to `name`: what the grader would look at."""
    return next((cell for cell in reversed(program) if _assigned(cell, name) is not None), None)


def _assigned(text: str, name: str) -> ast.expr | None:
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    values = [
        one.value
        for one in statements
        if isinstance(one, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in one.targets)
    ]
    return values[-1] if values else None


def kernel_of(text: str, name: str, arch: int = 80) -> Kernel:
    """The kernel `name` of the answer `name`, for small launches: an endless one ends after about two seconds.

    Raises NoPlainString, LookupError where there is no kernel of this name, and what `compile_cuda` raises.
    """
    kernels = compile_cuda(cuda_source(text, name), arch, max_work=MAX_WORK)
    if name not in kernels:
        have = f"it defines {', '.join(kernels)}" if kernels else "it defines none at all"
        raise LookupError(f"the kernel has to be called `{name}`; {have}")
    return kernels[name]
