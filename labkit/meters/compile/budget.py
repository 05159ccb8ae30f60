"""Three meters for exercises: what Dynamo captured and ran, what inductor would generate, what is kept for backward.

They are apart because the others are only there where a graph reached inductor, and because each is probed on work of
its own (`grading/worker/probes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from labkit.measures import add_to
from labkit.meters.compile.track import track_compile


@contextmanager
def count_compiles(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add graphs, breaks, compiled frames, calls that ran eagerly and captured operations to `measured`.

    held: of "graph_breaks" the student's lines with the reasons, of "frames" the guards that failed.
    """
    with track_compile() as tracker:
        yield
    profile = tracker.profile
    add_to(measured, "graphs", len(profile.graphs))
    add_to(measured, "graph_breaks", len(profile.breaks))
    add_to(measured, "frames", profile.frames)
    add_to(measured, "eager_calls", profile.eager_calls)
    add_to(measured, "captured_operations", profile.operations)
    if held is not None:
        held["graph_breaks"] = [f"{one.where}: {one.reason}" for one in profile.breaks]
        held["frames"] = [f"{one.function}: {one.guard}" for one in profile.recompiles]


@contextmanager
def measure_generated(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add the numbers of generated kernels and of library calls, and the bytes of both, to `measured`.

    held: of "kernel_bytes" the kernels, the largest first.
    """
    with track_compile() as tracker:
        yield
    kernels = tracker.profile.kernels
    generated = sum(kernel.generated for kernel in kernels)
    add_to(measured, "generated_kernels", generated)
    add_to(measured, "library_calls", len(kernels) - generated)
    add_to(measured, "kernel_bytes", sum(kernel.total_bytes for kernel in kernels))
    if held is not None:
        largest = sorted(kernels, key=lambda kernel: -kernel.total_bytes)
        held["kernel_bytes"] = [f"{' + '.join(kernel.operations)}: {kernel.total_bytes} bytes" for kernel in largest]


@contextmanager
def measure_kept(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add what compiled forward graphs keep for their backward graphs, and what these would read without recomputing.

    held: stays as it is.
    """
    with track_compile() as tracker:
        yield
    add_to(measured, "kept_bytes", sum(one.after_bytes for one in tracker.profile.saved))
    add_to(measured, "kept_without_recomputing_bytes", sum(one.before_bytes for one in tracker.profile.saved))
