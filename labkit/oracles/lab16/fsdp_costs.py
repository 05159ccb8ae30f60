"""Lab 16: what a model of sharded units may send and hold, and the least that it cannot do without.

Values are not looked at here.
"""

from __future__ import annotations

from labkit.exercises.lab16.fsdp import LATER, MOMENTS, N_ROWS, Units
from labkit.oracles.lab16.sharded_steps import ROOM_BYTES
from labkit.spec import CaseRun


def unit_bytes(case: Units, least: bool = False) -> list[tuple[int, int]]:
    """Of each unit the bytes of a shard that travel forward and backward: an all-gather in both passes, and a
    reduce-scatter where it is trained.

    least: the second gathers of frozen units before all that is trained are left out, as nothing comes back to them.
    """
    found = []
    for k, (kind, size) in enumerate(zip(case.kinds, case.shard_sizes)):
        gathered, reduced = (size * dtype.itemsize for dtype in case.dtypes)
        needs_second = not least or k >= first_trained(case)
        found.append((gathered, gathered * needs_second + reduced * (kind != "frozen")))
    return found


def pass_bytes(case: Units, least: bool = False) -> int:
    """The same of a whole micro-batch."""
    return sum(map(sum, unit_bytes(case, least)))


def most_bytes(run: CaseRun[Units]) -> int:
    case = run.case
    return max(case.n_steps * case.n_micro * (case.n_ranks - 1) * pass_bytes(case), 1)


def gathered_again(run: CaseRun[Units]) -> str | None:
    """A property: each unit was gathered in the backward pass as well, where that needs its weights."""
    case = run.case
    trained_units = sum(kind != "frozen" for kind in case.kinds)
    a_pass = len(case.kinds) + len(case.kinds) - first_trained(case) + trained_units
    least, called = case.n_steps * case.n_micro * a_pass, run.measured.get("collectives", 0)
    if called >= least or case.n_ranks == 1:
        return None
    return f"a rank called {called:g} collectives, and with gathers in the backward pass it is {least} at least"


gathered_again.hint = (
    "Units were not gathered again for the backward pass, so somebody kept their weights: autograd keeps what backward "
    "needs unless pack replaces it, and an attribute keeps what it refers to."
)


def reduced_as_asked(run: CaseRun[Units]) -> str | None:
    """A property: the ranks sent what gathers and reductions in the asked dtypes cannot do without."""
    case = run.case
    a_pass = case.n_ranks * (case.n_ranks - 1) * pass_bytes(case, least=True)
    least, sent = case.n_steps * case.n_micro * a_pass, run.measured.get("bytes_total", 0)
    if sent >= least:
        return None
    return f"the ranks sent {sent:g} bytes, and with gradients in {case.reduce_dtype} it takes {least} at least"


reduced_as_asked.hint = (
    "Too few bytes were sent. Gradients are converted to reduce_dtype before the reduce-scatter and not after it: with "
    "param_dtype = bfloat16 and reduce_dtype = float32 they travel in float32."
)


def most_calls(run: CaseRun[Units]) -> int:
    case = run.case
    trained_units = sum(kind != "frozen" for kind in case.kinds)
    return case.n_steps * case.n_micro * (2 * len(case.kinds) + trained_units)


def activations(case: Units) -> int:
    return 40 * N_ROWS * case.width * len(case.kinds)


def held_forward(run: CaseRun[Units], later: bool = False) -> int:
    """The masters' shards, and activations; later also the states of the shards that are trained, and gradients where
    a step has several micro-batches."""
    case = run.case
    trained = sum(size for kind, size in zip(case.kinds, case.shard_sizes) if kind != "frozen")
    more = trained * ((case.n_steps > 1) + (case.n_micro > 1)) if later else 0
    return 4 * (sum(case.shard_sizes) + more) + activations(case) + ROOM_BYTES


def held_backward(run: CaseRun[Units], later: bool = False) -> int:
    """The same with gradients, and one unit that is about to be freed: its weights and gradient."""
    case = run.case
    about_to_be_freed = 2 * case.dtypes[0].itemsize * max(case.sizes)
    return held_forward(run, later) + 4 * sum(case.shard_sizes) + about_to_be_freed


def most_at_once(run: CaseRun[Units]) -> int:
    """Shards, gradients and states; of one unit the module as it is made, and copies of it; or weights and gradients of
    two units on their way."""
    case = run.case
    return 12 * sum(case.shard_sizes) + activations(case) + 28 * max(case.sizes) + 2 * ROOM_BYTES


def first_trained(case: Units) -> int:
    """The first unit whose output has a gradient."""
    return next((k for k, kind in enumerate(case.kinds) if kind != "frozen"), len(case.kinds))


def moments_of(case: Units) -> list[str]:
    """Between any two units, forward; and on the way back where an output has a gradient."""
    n, n_back = len(case.kinds), len(case.kinds) - first_trained(case)
    passes = [MOMENTS] + [LATER] * (case.n_steps * case.n_micro - 1)
    return [label for forward, backward in passes for label in [forward] * n + [backward] * n_back]


def sent_by_moments(run: CaseRun[Units]) -> list[tuple[int, int]]:
    """What all ranks together have sent at least by each moment, and send afterwards."""
    case, by_then, so_far = run.case, [], 0
    units = unit_bytes(case, least=True)
    for _ in range(case.n_steps * case.n_micro):
        for forward, _ in units:
            so_far += forward
            by_then.append(so_far)
        for _, backward in reversed(units[first_trained(case) :]):
            by_then.append(so_far)
            so_far += backward
    n_sent = case.n_ranks * (case.n_ranks - 1)
    return [(n_sent * n, n_sent * (so_far - n)) for n in by_then]
