"""Lab 10: what is true of occupancy, waves and bytes in flight on a chip."""

from __future__ import annotations

from fractions import Fraction

from labkit.exercises.lab01.function_calls import Call
from labkit.exercises.lab10.chips import Chip
from labkit.exercises.lab10.occupancy import arguments_of
from labkit.oracles.lab10.sm import Rules, resident_blocks
from labkit.simt.lanes import WARP
from labkit.spec import CaseRun

ALL = Rules()


def occupancy(n_blocks: int, threads: int, chip: Chip) -> float:
    return n_blocks * -(-threads // WARP) / chip.max_warps


def waves_of(n_blocks: int, n_resident: int, chip: Chip) -> list[float]:
    """[waves, efficiency], counted off: each wave takes as many blocks as there is room for."""
    room = n_resident * chip.n_sms
    starts = range(0, n_blocks, room)
    return [len(starts), float(Fraction(n_blocks, len(starts) * room))]


def bandwidth_share(n_threads: int, loads: int, load_bytes: int, chip: Chip) -> float:
    """Little's law the other way round: what arrives in a second, over what can."""
    arrives = chip.n_sms * n_threads * loads * load_bytes / chip.latency_s
    return min(arrives, chip.bytes_per_s) / chip.bytes_per_s


def on_sm(kernel: tuple, chip: Chip) -> int:
    """Threads of a kernel on an SM."""
    return resident_blocks(*kernel[:3], chip) * kernel[0]


def shares(kernels: tuple, chip: Chip) -> list[float]:
    return [bandwidth_share(on_sm(one, chip), *one[3:], chip) for one in kernels]


def first_largest(values: list[float]) -> int:
    return next(i for i, value in enumerate(values) if all(value >= other * (1 - 1e-12) for other in values))


def true_result(run: CaseRun[Call]) -> dict[str, object]:
    given = arguments_of(run.case)
    if run.case.function == "resident":
        n_blocks = resident_blocks(*given)
        return {"out": [n_blocks, occupancy(n_blocks, given[0], given[3])]}
    if run.case.function == "waves":
        return {"out": waves_of(*given)}
    if run.case.function == "in_flight":
        n_threads, loads, load_bytes, _ = given
        return {"out": [n_threads * loads * load_bytes, bandwidth_share(*given)]}
    return {"out": first_largest(shares(*given))}
