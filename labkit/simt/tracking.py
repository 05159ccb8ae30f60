"""Be told of every launch in a block, whoever makes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from labkit.simt.profile import KernelProfile

_OPEN: ContextVar[tuple[list[KernelProfile], ...]] = ContextVar("open blocks", default=())


@contextmanager
def track_cuda() -> Iterator[list[KernelProfile]]:
    """The profiles of all launches in the block, in their order; also of those that end in a `LaunchFault`.

        with track_cuda() as launches:
            kernels["transpose"].launch((10, 7), (32, 8), x, y, 200, 300)
        launches[0].bank_conflicts

    Blocks may be nested: each has them all.
    """
    launches: list[KernelProfile] = []
    token = _OPEN.set((*_OPEN.get(), launches))
    try:
        yield launches
    finally:
        _OPEN.reset(token)


def note(profile: KernelProfile) -> None:
    """Tell the open blocks of a launch."""
    for launches in _OPEN.get():
        launches.append(profile)
