"""Lab 10: a chain of functions in one kernel: two reads and a write, 16 bytes at a time where that is possible."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.kernel_life_cycle import ARCHS, PER_THREAD, THREADS, Fused
from labkit.oracles.cuda import STAYS_IN_REGISTERS, and_faults
from labkit.simt.lanes import WARP
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

TENSORS = 3
_FOURS = (
    "Where n is no multiple of 4, the last thread has fewer than four elements. And the index of a `float4` pointer "
    "counts in fours: place t of it holds the elements 4 t to 4 t + 3."
)
ERRORS = and_faults(
    {
        "misaligned:": "A float4 has to begin at a multiple of 16 bytes, and a tensor may begin anywhere, as a slice. "
        "See whether the addresses of x, y and z are all multiples of 16, and read single elements where they are not.",
        "out of bounds: reads": f"Read four at once only where all four exist, and the rest one by one. {_FOURS}",
        "out of bounds: writes": f"Write four at once only where all four exist, and the rest one by one. {_FOURS}",
    }
)


def parts(run: CaseRun[Fused]) -> tuple[torch.Tensor, torch.Tensor]:
    return run.tree["x"][run.case.x_at :], run.tree["y"][run.case.y_at :]


def right(run: CaseRun[Fused]) -> torch.Tensor:
    x, y = parts(run)
    return torch.maximum(x * x, 3 * y + 1)


def requests(run: CaseRun[Fused]) -> int:
    """One of each warp for each tensor, four of them where the elements are read one by one; some more for the end."""
    each = -(-run.case.n // (WARP * PER_THREAD)) * (1 if run.case.aligned else PER_THREAD)
    return TENSORS * (each + PER_THREAD)


def is_result(play: Callable[[CaseRun[Fused]], torch.Tensor]) -> Callable[[CaseRun[Fused]], bool]:
    """Whether a mistake gives exactly this, with NaN where it stores nothing."""
    return lambda run: (
        torch.equal(run.got["z"].nan_to_num(-99.5), play(run).nan_to_num(-99.5))
        and not torch.equal(play(run), right(run))
    )


def without_the_rest(run: CaseRun[Fused]) -> torch.Tensor:
    z = right(run).clone()
    z[run.case.n // PER_THREAD * PER_THREAD :] = float("nan")
    return z


def not_stored(run: CaseRun[Fused]) -> bool:
    """Whether some places still hold the NaN that was there before, and all others what they should."""
    missing = run.got["z"].isnan()
    return bool(missing.any()) and torch.equal(run.got["z"][~missing], right(run)[~missing])


def exchanged(run: CaseRun[Fused]) -> torch.Tensor:
    x, y = parts(run)
    return torch.maximum(3 * x + 1, y * y)


def one_each(run: CaseRun[Fused]) -> torch.Tensor:
    """What comes out where every thread takes one element, of blocks that were to take four times as many."""
    z = right(run).clone()
    z[run.case.grid * THREADS :] = float("nan")
    return z


def smaller(run: CaseRun[Fused]) -> torch.Tensor:
    x, y = parts(run)
    return torch.minimum(x * x, 3 * y + 1)


def launched(run: Observation) -> str:
    names = "".join(
        f"{name}{f' (from element {at} on)' if at else ''}, "
        for name, at in (("x", run.case.x_at), ("y", run.case.y_at), ("z", run.case.z_at))
    )
    return f"fused<<<{run.case.grid}, {THREADS}>>>({names}n={run.case.n})"


KERNEL_LIFE_CYCLE = Oracle(
    id="10-kernel-life-cycle",
    expect=lambda run: {"z": right(run), "stack_bytes": [0] * len(ARCHS)},
    judge=(inputs_untouched,),
    budgets=(
        STAYS_IN_REGISTERS,
        Budget(
            "global_requests",
            requests,
            "There are more loads and stores than two reads and a write of 16 bytes a thread. Where all three "
            "addresses are multiples of 16, a thread reads a `float4` of x and one of y and stores one of z.",
        ),
    ),
    diagnose=(
        Hint(
            is_result(without_the_rest),
            "The last elements are missing, those that are left when n is divided by 4.",
        ),
        Hint(
            is_result(one_each),
            "Only the first quarter was stored: the launch has a thread for every four elements, of which thread t has "
            "4 t to 4 t + 3.",
        ),
        Hint(
            not_stored,
            "Elements of z were never stored, and the others are right. Where four at once are not possible, because "
            "of an address or at the end, a loop over single elements has to store them.",
        ),
        Hint(is_result(exchanged), "f belongs to x and g to y: they are exchanged."),
        Hint(is_result(smaller), "h is the larger of the two, not the smaller."),
        Hint(
            lambda run: torch.equal(run.got["z"], right(run)) and any(run.got["stack_bytes"]),
            "The values are right, but in the machine code a thread keeps bytes in memory: an array that is indexed at "
            "run time, or more registers than it may have.",
        ),
    ),
    errors=ERRORS,
    places={"stack_bytes": "bytes that a thread keeps in memory, on sm_80, sm_90 and sm_100"},
    axis="tensors that begin elsewhere, and lengths that 4 does not divide",
    call=launched,
)
