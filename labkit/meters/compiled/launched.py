"""The compiler as a meter: every kernel that a block launched, compiled for the GPUs of the course, in figures.

The same kernel with arguments of the same kind is compiled once in a process, and weighed by all its launches.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from labkit.meters.compiled.build import compile_report
from labkit.meters.compiled.report import CompileReport
from labkit.meters.compiled.weighed import weighed
from labkit.meters.launches import Launched, listening
from labkit.meters.launches_work import Work

ARCHS = (80, 90)
"""What a measured launch is compiled for: an A100 and an H100."""
AT_EASE = 128
"""Registers a thread, of at most 255. A kernel that takes no more on the first GPU, and multiplies no matrices, moves
memory in the same pieces on the others and spills on none, so it is compiled for that one alone: 0.1 s each."""


@contextmanager
def measure_compiled(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add to `measured` what `compiled_figures` says of the block's launches; `held` names the kernels behind it."""
    launched: list[Launched] = []
    with listening(launched.append):
        yield
    made = _made(launched, ARCHS)
    worst = _worst(made)
    measured.update(worst)
    if held is not None:
        for name in worst:
            held[name] = [f"{one.kernel} for sm_{one.arch}: {figures[name]:,}" for one, figures in made]


def compiled_figures(launched: Sequence[Launched], archs: Sequence[int] = ARCHS) -> dict[str, float]:
    """The figures of `weighed` that are worst over kernels and GPUs.

    registers, spills, shared_bytes: the most of any kernel. vector_width: the least of any kernel that touches memory.
    matrix_instructions, matrix_flops: of all kernels together, on the GPU where they are fewest. A simple kernel is
    compiled for the first GPU alone: see AT_EASE. Raises CompileFailed.
    """
    return _worst(_made(launched, archs))


def _made(launched: Sequence[Launched], archs: Sequence[int]) -> list[tuple[CompileReport, dict[str, float]]]:
    """What was made of each kind of launch, for each GPU."""
    kinds: dict[_Kind, Work] = {}
    for one in launched:
        kinds.setdefault(_kind(one), Work()).add(one.work)
    made = []
    for kind, work in kinds.items():
        for arch in archs:
            report = _report(kind, arch)
            made.append((report, weighed(report, work)))
            if report.registers <= AT_EASE and not report.matrix_instructions and not work.products:
                break
    return made


def _worst(made: Sequence[tuple[CompileReport, dict[str, float]]]) -> dict[str, float]:
    figures = [each for _, each in made]
    most = {name: max((one[name] for one in figures), default=0) for name in ("registers", "spills", "shared_bytes")}
    widths = [one["vector_width"] for one in figures if one["vector_width"]]
    fewest = {}
    for name in ("matrix_instructions", "matrix_flops"):
        totals = Counter({report.arch: 0 for report, _ in made})
        for report, each in made:
            totals[report.arch] += each[name]
        fewest[name] = min(totals.values(), default=0)
    return {**most, "vector_width": min(widths, default=0), **fewest}


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
