"""Lab 16: what a model of sharded units may send and hold, and the least that it cannot do without.

Values are not looked at here.
"""

from __future__ import annotations

from labkit.exercises.lab16.fsdp import MOMENTS, N_ROWS, Units
from labkit.oracles.lab16.sharded_steps import ROOM_BYTES
from labkit.spec import CaseRun


def passes_bytes(case: Units, reduce_bytes: int, least: bool = False) -> int:
    """Over a whole step of one micro-batch: two all-gathers of each unit, and a reduce-scatter of each that is trained.

    least: the first unit's second gather is left out, and those of frozen units before all that is trained.
    """
    total, needs_second = 0, not least
    for kind, size in zip(case.kinds, case.shard_sizes):
        total += size * case.dtypes[0].itemsize * (1 + needs_second)
        total += size * reduce_bytes * (kind != "frozen")
        needs_second = needs_second or kind != "frozen"
    return total


def most_bytes(run: CaseRun[Units]) -> int:
    case = run.case
    a_pass = (case.n_ranks - 1) * passes_bytes(case, case.dtypes[1].itemsize)
    return max(case.n_steps * case.n_micro * a_pass, 1)


def gathered_again(run: CaseRun[Units]) -> str | None:
    """A property: each unit was gathered in the backward pass as well, where that needs its weights."""
    case = run.case
    first = next((k for k, kind in enumerate(case.kinds) if kind != "frozen"), len(case.kinds))
    trained_units = sum(kind != "frozen" for kind in case.kinds)
    a_pass = len(case.kinds) + max(len(case.kinds) - first - 1, 0) + trained_units
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
    a_pass = case.n_ranks * (case.n_ranks - 1) * passes_bytes(case, case.dtypes[1].itemsize, least=True)
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


def held_forward(run: CaseRun[Units]) -> int:
    """The masters' shards, and activations."""
    return 4 * sum(run.case.shard_sizes) + activations(run.case) + ROOM_BYTES


def held_backward(run: CaseRun[Units]) -> int:
    """The shards with their gradients, and one unit that is about to be freed: its weights and gradient."""
    case = run.case
    own_bytes = 8 * sum(case.shard_sizes) + activations(case)
    return own_bytes + 2 * case.dtypes[0].itemsize * max(case.sizes) + ROOM_BYTES


def most_at_once(run: CaseRun[Units]) -> int:
    """Shards, gradients and states; of one unit the module as it is made, and copies of it; or weights and gradients of
    two units on their way."""
    case = run.case
    return 12 * sum(case.shard_sizes) + activations(case) + 28 * max(case.sizes) + 2 * ROOM_BYTES


def moments_of(case: Units) -> list[str]:
    """Between any two units, forward; and on the way back where an output has a gradient."""
    first = next((k for k, kind in enumerate(case.kinds) if kind != "frozen"), len(case.kinds))
    return [MOMENTS[0]] * len(case.kinds) + [MOMENTS[1]] * (len(case.kinds) - first)
