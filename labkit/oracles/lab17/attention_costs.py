"""Lab 17: what attention whose heads are dealt out may cost: calls and bytes of a pass, bytes held by a rank."""

from __future__ import annotations

from labkit.exercises.lab17.tp_attention import Heads
from labkit.oracles.lab17.ranks import ROOM_BYTES, all_reduce_bytes, least_all_reduce_bytes
from labkit.spec import CaseRun


def passes(case: Heads) -> tuple[int, int]:
    """The fewest and the most calls of a backward pass: keys and values may be summed at once, or each by itself."""
    x = int(case.trains_input)
    return (x + 1, x + 2) if case.n_replicas > 1 else (x, x)


def most_bytes(run: CaseRun[Heads]) -> int:
    case = run.case
    x = all_reduce_bytes(case.tokens[0] * case.tokens[1] * case.hidden, case.n_ranks)
    kv = 2 * all_reduce_bytes(case.kv_heads_of_rank * case.head_dim * case.hidden, case.n_replicas)
    return max(case.n_micro * ((1 + case.trains_input) * x + kv), 1)


def least_forward(case: Heads) -> int:
    """What all ranks together send at least to sum a tensor of the shape of x."""
    return least_all_reduce_bytes(case.tokens[0] * case.tokens[1] * case.hidden, case.n_ranks)


def least_backward(case: Heads) -> int:
    """The same where x has a gradient, and the sums of w_k and w_v in every group that holds the same heads."""
    kv = 2 * case.kv_heads_of_rank * case.head_dim * case.hidden
    groups = case.n_ranks // case.n_replicas
    return least_forward(case) * case.trains_input + groups * least_all_reduce_bytes(kv, case.n_replicas)


def held(run: CaseRun[Heads]) -> int:
    case = run.case
    n_heads = 2 * case.n_heads // case.n_ranks + 2 * case.kv_heads_of_rank
    return 4 * n_heads * case.head_dim * case.hidden + ROOM_BYTES


def most_at_once(run: CaseRun[Heads]) -> int:
    """While the layer is built, whole weights, a copy of them, and parts; later parts, gradients and activations."""
    case = run.case
    batch, length = case.tokens
    width = (case.n_heads + case.n_kv_heads) * case.head_dim
    activations = batch * (length * (8 * case.hidden + 8 * width) + 6 * case.n_heads * length**2)
    return held(run) + 4 * (4 * width * case.hidden + activations) + ROOM_BYTES
