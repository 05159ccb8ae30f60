"""Keep a notebook alive: every launch is checked for lanes out of bounds, also those that nobody measures.

An access out of bounds would corrupt memory or end the process, on a CPU as on a GPU. Races are not looked at here, and
on a GPU nothing is checked.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from labkit import interpreter
from labkit.devices import has_gpu
from labkit.meters.traffic.hooks import metered, open_profiles
from labkit.meters.traffic.profile import OutOfBounds, TrafficProfile

_GUARD = "_labkit_guard"


class LaunchOutOfBounds(IndexError):
    """A kernel touched what no argument holds. The launch was completed without these lanes."""


class _GuardsProfile(TrafficProfile):
    """Read by nobody but its guard: while another kind is open, somebody else reports the launch."""


def guard_launches() -> bool:
    """From now on, raise LaunchOutOfBounds after a launch that has lanes out of bounds; for the top of a notebook.

    Inside `track_traffic` nothing is raised, since it is reported there. False, and nothing is done, where a GPU runs
    all kernels or Triton is missing. May be called again, at no cost. Raises RuntimeError where the first call stands
    inside of `track_traffic`, whose end would end the guard.
    """
    if importlib.util.find_spec("triton") is None or (has_gpu() and not interpreter.enabled_beside_gpu()):
        return False
    interpreter.enable()
    from triton.runtime import interpreter as triton_interpreter

    if not hasattr(triton_interpreter, _GUARD):
        if open_profiles(triton_interpreter):
            raise RuntimeError("guard_launches() is for the top of a notebook: call it before `track_traffic`")
        guard = guarded(triton_interpreter)
        # Kept alive with the module: what closes it is its end.
        setattr(triton_interpreter, _GUARD, guard)
        guard.__enter__()
    return True


def _remedies(found: list[OutOfBounds]) -> Iterator[str]:
    if any(not one.strides for one in found):
        yield "Mask the lanes that have nothing to do: tl.load(..., mask=offs < n)"
    if any(one.strides for one in found):
        yield "Give the kernel the tensor's strides and use them, or give it x.contiguous()"


@contextmanager
def guarded(triton_interpreter: ModuleType) -> Iterator[None]:
    """Check the launches of a block; the interpreter is enabled already."""
    executor = triton_interpreter.GridExecutor
    stock = executor.__call__
    profile = _GuardsProfile()

    def launch(self, *args, **kwargs):
        profile.launches.clear()
        result = stock(self, *args, **kwargs)
        found = profile.out_of_bounds
        if found and all(isinstance(one, _GuardsProfile) for one in open_profiles(triton_interpreter)):
            raise LaunchOutOfBounds("\n".join([*map(str, found), *_remedies(found)]))
        return result

    with metered(triton_interpreter, profile):
        executor.__call__ = launch
        try:
            yield
        finally:
            executor.__call__ = stock
