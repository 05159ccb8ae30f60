"""The compiler as a meter: every kernel that a block launched, compiled for the GPUs of the course, in figures.

The same kernel with arguments of the same kind is compiled once in a process, and weighed by all its launches.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType

import torch

from labkit.measures import add_to
from labkit.meters.compiled.build import compile_report
from labkit.meters.compiled.report import CompileReport
from labkit.meters.compiled.weighed import weighed
from labkit.meters.launches import KernelLaunch, Pointer, listening
from labkit.meters.launches_work import LaunchWork

ARCHS = (80, 90)
"""What a measured launch is compiled for: an A100 and an H100."""
AT_EASE = 128
"""Registers a thread, of at most 255. A kernel that takes no more on the first GPU, and multiplies no matrices, moves
memory in the same pieces on the others and spills on none, so it is compiled for that one alone: 0.1 s each."""
MOST_REPORTS = 256
"""So many are kept; then the oldest goes."""


@contextmanager
def measure_compiled(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add to `measured` what `compiled_figures` says of the block's launches; `held` names the kernels behind it."""
    launched: list[KernelLaunch] = []
    with listening(launched.append):
        yield
    made = _made(launched, ARCHS)
    for name, value in _worst(made).items():
        add_to(measured, name, value)
        if held is not None:
            held[name] = [f"{one.kernel} for sm_{one.arch}: {figures[name]:,}" for one, figures in made]


def compiled_figures(launched: Sequence[KernelLaunch], archs: Sequence[int] = ARCHS) -> dict[str, float]:
    """The figures of `weighed` that are worst over kernels and GPUs.

    registers, spills, shared_bytes: the most of any kernel. vector_width: the least of any kernel that touches memory.
    matrix_instructions, matrix_flops: of all kernels together, on the GPU where they are fewest. A simple kernel is
    compiled for the first GPU alone: see AT_EASE. Raises CompileFailed.
    """
    return _worst(_made(launched, archs))


def _made(launched: Sequence[KernelLaunch], archs: Sequence[int]) -> list[tuple[CompileReport, dict[str, float]]]:
    """What was made of each kind of launch, for each GPU."""
    kinds: dict[_Kind, tuple[KernelLaunch, LaunchWork]] = {}
    for one in launched:
        _, work = kinds.setdefault(_kind(one), (one, LaunchWork()))
        work.add(one.work)
    made = []
    for kind, (one, work) in kinds.items():
        for arch in archs:
            report = _report(kind, one, arch)
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
    """All of a launch that the compiled kernel depends on, and none of its tensors, which reports would keep alive."""

    code: tuple[tuple[FunctionType, tuple[object, ...]], ...]
    arguments: tuple[tuple[str, object], ...]
    options: tuple[tuple[str, object], ...]


_reports: dict[tuple[_Kind, int], CompileReport] = {}


def _report(kind: _Kind, launched: KernelLaunch, arch: int) -> CompileReport:
    """launched: any launch of the kind."""
    if (kind, arch) not in _reports:
        report = compile_report(launched.kernel, arch=arch, **launched.arguments, **launched.options)
        if len(_reports) >= MOST_REPORTS:
            del _reports[next(iter(_reports))]
        _reports[kind, arch] = report
    return _reports[kind, arch]


def _kind(launched: KernelLaunch) -> _Kind:
    function = launched.function
    arguments = tuple(
        (name, repr(value) if name in function.__annotations__ else _specialized(value))
        for name, value in launched.arguments.items()
    )
    return _Kind(_code(function), arguments, tuple(sorted(launched.options.items())))


def _code(kernel: FunctionType) -> tuple[tuple[FunctionType, tuple[object, ...]], ...]:
    """The kernel and all that it calls, each with the functions and constants that it finds by their names.

    Any of them may have been defined anew in a notebook since.
    """
    import triton.language as tl

    kinds = (int, float, str, tuple, tl.constexpr, tl.dtype)
    found: dict[FunctionType, tuple[object, ...]] = {}
    rest = [kernel]
    while rest:
        function = rest.pop()
        if function in found:
            continue
        taken = inspect.getclosurevars(function)
        values = {**taken.globals, **taken.nonlocals}
        inner = {name: getattr(value, "fn", None) for name, value in values.items()}
        called = {name: fn for name, fn in inner.items() if isinstance(fn, FunctionType)}
        constants = {name: repr(value) for name, value in values.items() if isinstance(value, kinds)}
        found[function] = (*called.items(), *constants.items())
        rest += called.values()
    return tuple(found.items())


def _specialized(value: object) -> object:
    """How Triton tells arguments apart: by type, by whether they are 1, and by whether 16 divides them."""
    if isinstance(value, torch.Tensor | Pointer):
        return (value.dtype, value.data_ptr() % 16 == 0)
    if type(value) is int:
        return ("int", value == 1, value % 16 == 0, value.bit_length() > 31)
    return type(value).__name__ if isinstance(value, float) else repr(value)
