"""The compiler as a meter: every kernel that a block launched, compiled for the GPUs of the course, in figures.

The same kernel with arguments of the same kind is compiled once in a process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from labkit.meters.compiled.build import compile_report
from labkit.meters.compiled.report import CompileReport
from labkit.meters.launches import Launched, listening

ARCHS = (80, 90)
"""What a measured launch is compiled for: an A100 and an H100."""


@contextmanager
def measure_compiled(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add to `measured` what `compiled_figures` says of the block's launches; `held` names the kernels behind it."""
    launched: list[Launched] = []
    with listening(launched.append):
        yield
    reports = _reports(launched, ARCHS)
    measured.update(_worst(reports))
    if held is not None:
        for name in _worst(reports):
            held[name] = [f"{one.kernel} for sm_{one.arch}: {one.figures()[name]:,}" for one in reports]


def compiled_figures(launched: Sequence[Launched], archs: Sequence[int] = ARCHS) -> dict[str, float]:
    """The figures of `CompileReport.figures` that are worst over kernels and GPUs.

    registers, spills, shared_bytes: the most of any kernel. vector_width: the least of any kernel that touches memory.
    matrix_instructions: of all kernels together, on the GPU where they are fewest. Raises CompileFailed.
    """
    return _worst(_reports(launched, archs))


def _reports(launched: Sequence[Launched], archs: Sequence[int]) -> list[CompileReport]:
    return [_report(kind, arch) for kind in dict.fromkeys(map(_kind, launched)) for arch in archs]


def _worst(reports: Sequence[CompileReport]) -> dict[str, float]:
    figures = [report.figures() for report in reports]
    most = {name: max((one[name] for one in figures), default=0) for name in ("registers", "spills", "shared_bytes")}
    totals = {report.arch: 0 for report in reports}
    for report in reports:
        totals[report.arch] += report.figures()["matrix_instructions"]
    widths = [one["vector_width"] for one in figures if one["vector_width"]]
    return {
        **most,
        "vector_width": min(widths, default=0),
        "matrix_instructions": min(totals.values(), default=0),
    }


@dataclass(frozen=True)
class _Kind:
    """All of a launch that the compiled kernel depends on; `launched` is any launch of the kind."""

    function: Callable
    calls: tuple[int, ...]
    arguments: tuple[tuple[str, object], ...]
    options: tuple[tuple[str, object], ...]
    launched: Launched = field(compare=False)


@functools.lru_cache(maxsize=256)
def _report(kind: _Kind, arch: int) -> CompileReport:
    one = kind.launched
    return compile_report(one.kernel, arch=arch, **one.arguments, **one.options)


def _kind(launched: Launched) -> _Kind:
    function = launched.function
    # What it calls may have been defined anew in a notebook since.
    calls = tuple(id(function.__globals__.get(name)) for name in function.__code__.co_names)
    arguments = tuple(
        (name, repr(value) if name in function.__annotations__ else _specialized(value))
        for name, value in launched.arguments.items()
    )
    return _Kind(function, calls, arguments, tuple(sorted(launched.options.items())), launched)


def _specialized(value: object) -> object:
    """How Triton tells arguments apart: by type, by whether they are 1, and by whether 16 divides them."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.data_ptr() % 16 == 0)
    if type(value) is int:
        return ("int", value == 1, value % 16 == 0, value.bit_length() > 31)
    return type(value).__name__ if isinstance(value, float) else repr(value)
