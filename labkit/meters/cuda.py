"""The meter of CUDA C++ kernels as a driver opens it: what the launches of a block cost, and which lines cost it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from labkit.measures import MEASURES, add_to
from labkit.simt import KernelProfile, track_cuda

_PARTS: Mapping[str, tuple[str, ...]] = {
    "arithmetic": ("flops",),
    "global_requests": ("global_load_requests", "global_store_requests"),
    "global_sectors": ("global_load_sectors", "global_store_sectors"),
    "shared_requests": ("shared_load_requests", "shared_store_requests"),
    "shared_wavefronts": ("shared_load_wavefronts", "shared_store_wavefronts"),
    "local_requests": ("local_load_requests", "local_store_requests"),
    "atomic_lanes": ("global_atomic_lanes", "shared_atomic_lanes"),
}
"""Measures that are not a counter of a line by the same name."""


def cuda_figures(launches: Sequence[KernelProfile]) -> dict[str, float]:
    """The measures of these launches, by name, added up."""
    names = [measure.name for measure in MEASURES.values() if measure.meter == "cuda"]
    found = {name: sum(_figure(one, name) for one in launches) for name in names if name != "cuda_launches"}
    return {"cuda_launches": len(launches), **found}


def _figure(profile: KernelProfile, name: str) -> int:
    return profile.flops if name == "arithmetic" else getattr(profile, name)


def most_expensive(launches: Sequence[KernelProfile], name: str, n: int = 3) -> list[str]:
    """The lines that a measure consists of, the largest first: "line 7: 4,096 of tile[x][y] = in[i];"."""
    found = []
    for one in launches:
        for line, counts in one.by_line.items():
            value = sum(counts.get(part, 0) for part in _PARTS.get(name, (name,)))
            if value and line:
                found.append((value, f"line {line}: {value:,} of {one.text_of(line)}"))
    found.sort(key=lambda row: -row[0])
    return list(dict.fromkeys(text for _, text in found))[:n]


@contextmanager
def measure_cuda(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """Add the launches of the block to `measured`, by the names of `cuda_figures`; the lines that cost most, to `held`.

    Nothing is added where a launch raises: it is the error that is told then.
    """
    with track_cuda() as launches:
        yield
    for name, value in cuda_figures(launches).items():
        add_to(measured, name, value)
        if held is not None and (lines := most_expensive(launches, name)):
            held[name] = [*held.get(name, ()), *lines]
