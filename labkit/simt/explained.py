"""The compiler's messages, said to who writes kernels: what it calls a JIT mode and host functions is `launch` here.

Of the messages that one mistake brings about, the one that names it is kept. Others stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from labkit.simt.diagnostics import Diagnostic

INSTEAD = {
    "host functions are not allowed in JIT mode": "a function needs __global__ or __device__ before it: only code of "
    "the GPU is compiled here, and kernels are launched from Python",
    "host variables are not allowed in JIT mode": "what is declared outside of functions needs __device__, "
    "__constant__ or __shared__ before it",
    "expression must have pointer-to-object type": "a single number has no elements: only a pointer or an array takes "
    "[ ], and a pointer takes one index, so row r, column c of a matrix is p[r * cols + c]",
    'no instance of overloaded function "atomicAdd"': "atomicAdd takes the address of a place, and a value of its "
    "type: atomicAdd(&place, 1)",
    "device-side kernel launch could not be processed": "a kernel cannot launch another one here: launch it from "
    "Python",
}
"""A part of a message -> what is said in its place."""
NO_DECLARATION = 'attribute "__global__" does not apply here'
"""Said first where the type of the first parameter is not known; seven more may follow, among them the cause."""
UNKNOWN = " is undefined"
WITHOUT_MASK = re.compile(r'identifier "(__(?:shfl(?:_up|_down|_xor)?|ballot|any|all))" is undefined')
"""Calls of old tutorials, which CUDA has no more."""
NO_SEMICOLON = 'expected a ";"'


def explained(found: Sequence[Diagnostic], source: str) -> list[Diagnostic]:
    """The same messages in other words, those that only follow from another left out."""
    rows = source.splitlines()
    kept: list[Diagnostic] = []
    no_declaration = {one.line for one in found if one.text.startswith(NO_DECLARATION)}
    causes = {line: _cause(found, line) for line in no_declaration}
    for one in found:
        cause = causes.get(one.line)
        if one.kind == "error" and cause is not None and one is not cause:
            continue
        kept.append(_where_it_is_missing(replace(one, text=_in_our_words(one.text)), rows))
    return kept


def _in_our_words(text: str) -> str:
    if old := WITHOUT_MASK.match(text):
        return f"{text}: it is called {old[1]}_sync now, and the lanes that take part come first, 0xffffffff for all"
    return next((said for part, said in INSTEAD.items() if part in text), text)


def _where_it_is_missing(one: Diagnostic, rows: Sequence[str]) -> Diagnostic:
    """The compiler sees that a semicolon is missing at the next word, which may be the first of a later line."""
    if one.text != NO_SEMICOLON or one.column < 1 or rows[one.line - 1][: one.column - 1].strip():
        return one
    for line in range(one.line - 1, 0, -1):
        if code := rows[line - 1].split("//")[0].rstrip():
            return replace(one, line=line, column=len(code) + 1, text=f"{NO_SEMICOLON} at the end of this line")
    return one


def _cause(found: Sequence[Diagnostic], line: int) -> Diagnostic | None:
    return next((one for one in found if one.line == line and one.text.endswith(UNKNOWN)), None)
