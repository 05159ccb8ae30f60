"""What a source may contain before the compiler reads it: its size, and which headers it includes.

A compiler quotes what it includes in its errors, so an include of a file of this machine would show that file. Only
NVIDIA's own headers of device code are allowed, and an include is looked for in the raw text, comments and macros
included: a directive that cannot be read with certainty is refused. Nothing else of C++ is judged here.
"""

from __future__ import annotations

import re

from labkit.simt.prelude import IN_IT
from labkit.spec import STUB_MESSAGE

MAX_SOURCE_BYTES = 200_000

OF_CUDA = ("cuda_fp16.h", "cuda_bf16.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h")
HEADERS = frozenset({*OF_CUDA, *IN_IT})

INSTEAD = {
    **dict.fromkeys(("stdio.h", "cstdio"), "printf needs no header here"),
    **dict.fromkeys(("math.h", "cmath"), "the functions of mathematics need no header here"),
    **dict.fromkeys(("cuda_runtime.h", "cuda.h"), "kernels need no header here, and the host's side is `launch`"),
    **dict.fromkeys(("assert.h", "cassert"), "assert needs no header here"),
    **dict.fromkeys(("iostream", "vector", "stdlib.h", "cstdlib"), "only kernels are compiled here, no program around"),
    "cooperative_groups.h": "it needs libcu++, which the labs do not install: use __syncthreads(), __syncwarp() and "
    "__shfl_sync() and their like",
    "mma.h": "tensor cores are reached by inline assembly here: mma.sync.aligned.m16n8k16 and ldmatrix",
    "curand_kernel.h": "cuRAND is not installed: make the random numbers in PyTorch and pass them in",
    "cub/cub.cuh": "CUB is not installed: write what you need of it",
}
"""What is told of headers that courses use and that are not here."""

_COMMENT = r"/\*.*?\*/|//[^\n]*"
_DIRECTIVE = re.compile(
    rf"(?:\#|%:|\?\?=)(?:\s|{_COMMENT})*(include_next|include|import|embed|line|\d+)\b([^\n]*)", re.DOTALL
)
_ALLOWED = re.compile(r"\s*<([\w./]+)>\s*(//.*|/\*.*)?")


class SourceRefused(ValueError):
    """The source is too large or contains a directive that the labs do not allow. line: 1 is the first."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


class BlankKernel(NotImplementedError):
    """The source is a stub that its student has not filled in. blank: what it defines, as cells are told of it."""

    def __init__(self, source: str) -> None:
        super().__init__(STUB_MESSAGE)
        found = re.search(r"__global__\s+void\s+(\w+)", source)
        self.blank = found[1] if found else "the kernel"


def check_source(source: str) -> None:
    """Raise `SourceRefused` for what must not reach the compiler, and `BlankKernel` for a stub."""
    if STUB_MESSAGE in source:
        raise BlankKernel(source)
    if len(source.encode()) > MAX_SOURCE_BYTES:
        raise SourceRefused(f"the source has {len(source.encode()):,} bytes; at most {MAX_SOURCE_BYTES:,} are compiled")
    if "\0" in source:
        raise SourceRefused("the source contains a null character", source[: source.index("\0")].count("\n") + 1)
    # A backslash at the end of a line joins it to the next, and ??/ is another way to write the backslash.
    joined = re.sub(r"(?:\\|\?\?/)[ \t\r\f\v]*\n", "", source)
    for found in _DIRECTIVE.finditer(joined):
        keyword, rest = found[1], found[2]
        header = _ALLOWED.fullmatch(rest)
        if keyword == "include" and header and header[1] in HEADERS:
            continue
        line = _line_of(source, joined, found.start())
        if keyword == "include":
            what = f"#include {rest.strip()[:60]}"
            if header and header[1] in INSTEAD:
                raise SourceRefused(f"{what} is not allowed: {INSTEAD[header[1]]}", line)
            raise SourceRefused(f"{what} is not allowed; these headers are: {', '.join((*OF_CUDA, *IN_IT))}", line)
        raise SourceRefused(f"the directive #{keyword} is not allowed", line)


def _line_of(source: str, joined: str, at: int) -> int:
    """The line of the source that place `at` of the joined text comes from; where lines were joined, the last one."""
    spliced = len(source) - len(joined)
    return (joined if not spliced else source)[: at + spliced].count("\n") + 1
