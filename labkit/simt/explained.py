"""The compiler's messages, said to who writes kernels: what it calls a JIT mode and host functions is `launch` here.

Of the messages that one mistake brings about, the one that names it is kept. Others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labkit.simt.diagnostics import Diagnostic

INSTEAD = {
    "host functions are not allowed in JIT mode": "a function needs __global__ or __device__ before it: only code of "
    "the GPU is compiled here, and kernels are launched from Python",
    "host variables are not allowed in JIT mode": "what is declared outside of functions needs __device__, "
    "__constant__ or __shared__ before it",
    "device-side kernel launch could not be processed": "a kernel cannot launch another one here: launch it from "
    "Python",
}
"""A part of a message -> what is said in its place."""
NO_DECLARATION = 'attribute "__global__" does not apply here'
"""Said first where the type of the first parameter is not known; seven more may follow, among them the cause."""
UNKNOWN = " is undefined"


def explained(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The same messages in other words, those that only follow from another left out."""
    kept: list[Diagnostic] = []
    no_declaration = {one.line for one in found if one.text.startswith(NO_DECLARATION)}
    causes = {line: _cause(found, line) for line in no_declaration}
    for one in found:
        cause = causes.get(one.line)
        if one.kind == "error" and cause is not None and one is not cause:
            continue
        text = next((ours for part, ours in INSTEAD.items() if part in one.text), one.text)
        kept.append(replace(one, text=text))
    return kept


def _cause(found: Sequence[Diagnostic], line: int) -> Diagnostic | None:
    return next((one for one in found if one.line == line and one.text.endswith(UNKNOWN)), None)
