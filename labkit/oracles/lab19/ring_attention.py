"""Lab 19: the oracle of attention around a ring: PyTorch's attention to the whole text, and autograd's gradients."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab19.ring_attention import GUARDED_BYTES, Ring
from labkit.oracles.lab19.ring_mistakes import (
    accumulated,
    away_from_home,
    backward_is,
    counted_from_own_lse,
    forward_is,
    hops_short,
    joined,
    keys_in_own_places,
    last_block_of_queries,
    logarithms_added,
    no_number,
    no_number_in_gradients,
    only_own_block,
    overwritten,
    own_queries_only,
    without_the_last,
)
from labkit.oracles.lab19.scaled import gradients_scaled
from labkit.oracles.lab19.whole_attention import CLOSE, expect
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

ROOM_BYTES, GUARDS_BYTES = 2**18, 2**20
"""For logarithms, masks, and what Python itself holds; and in small cases for what looks after messages."""


def most_bytes(run: CaseRun[Ring]) -> int:
    """Keys and values travel n-1 hops in each pass, their gradients n: the last one brings them home."""
    n = run.case.n_ranks
    return (n - 1 if run.case.forward_only else 3 * n - 2) * run.case.block_bytes


def most_held(run: CaseRun[Ring]) -> int:
    """Two blocks of keys and values and two of their gradients, what a block adds to them, output and gradient of q
    and their parts; and a few tensors of scores."""
    case = run.case
    room = GUARDS_BYTES if case.block_bytes < GUARDED_BYTES else ROOM_BYTES
    blocks = 4.5 if case.forward_only else 7.5
    return round(blocks * case.block_bytes) + 5 * 4 * case.n_heads * case.length**2 + room


BOTH_FIRST = "All ranks wait for each other. Start both transfers (isend, irecv) first, then wait for both."


def in_words(run: Observation) -> str:
    case = run.case
    dealt = "dealt at random" if case.by_chance else "dealt in zigzag"
    shape = (case.n_heads, case.length, case.d)
    alone = "; the forward pass alone" if case.forward_only else ""
    tokens = case.n_ranks * case.length
    return f"{case.n_ranks} ranks, {tokens} tokens {dealt}; q, k and v of shape {shape} on each rank{alone}"


RING_ATTENTION = Oracle(
    id="19-ring-attention",
    call=in_words,
    places={
        "out": "output",
        "lse": "logarithm of the sums (lse)",
        "d_q": "gradient of q",
        "d_k": "gradient of k",
        "d_v": "gradient of v",
    },
    expect=expect,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    axis="other numbers of ranks, and texts that are not dealt in zigzag",
    errors={
        "changed the tensor that it was sending": "isend returns at once, while the tensor is still being read: call "
        "wait() on what it returned before you write into the tensor. Receive into a tensor of its own.",
        "deadlock: to receive": BOTH_FIRST,
        "deadlock: for a message": BOTH_FIRST,
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. Keys and values travel n-1 hops in the forward pass and n-1 in the backward pass; the "
            "gradients of k and v travel n. Positions and results stay at home.",
        ),
        Budget(
            "peak_bytes",
            most_held,
            "Too much is held: keys and values or their gradients of many ranks. A rank needs the block that it works "
            "on and the one that is coming. Do not keep the earlier ones.",
        ),
    ),
    diagnose=(
        Hint(
            forward_is(only_own_block),
            "Each rank attended to its own keys alone. Pass keys and values on around the ring, n-1 times.",
        ),
        Hint(
            forward_is(without_the_last),
            "One block is missing. Each rank works on n blocks, with n-1 hops between them.",
        ),
        Hint(
            forward_is(keys_in_own_places),
            "The mask is wrong from the second block on: the keys that have come are those of another rank, and stand "
            "at that rank's positions, positions[source].",
        ),
        Hint(
            forward_is(lambda run, rank: keys_in_own_places(run, rank, direction=1)),
            "The mask is wrong from the second block on: blocks travel one way and are counted the other way. If "
            "messages go to rank r + 1, then after `step` hops rank r has the block of rank r - step, and not of r + "
            "step.",
        ),
        Hint(
            forward_is(lambda run, rank: accumulated(run, rank, "sum")),
            "The outputs of the blocks were added up. Each is an average of values over its own keys: weigh it by the "
            "block's share of the sum of exponentials, exp(its lse - the lse of all).",
        ),
        Hint(
            forward_is(lambda run, rank: accumulated(run, rank, "mean")),
            "The outputs of the blocks were averaged. A block with larger scores counts more: weigh each output by "
            "exp(its lse - the lse of all).",
        ),
        Hint(
            forward_is(lambda run, rank: accumulated(run, rank, "not rescaled")),
            "What was there before was not rescaled. When a block comes, the sum of exponentials grows, so the output "
            "so far counts less: multiply it by exp(old lse - new lse).",
        ),
        Hint(
            forward_is(lambda run, rank: joined(run, rank, "sum")),
            "The output is right, but lse is not: logarithms do not add up. lse is the logarithm of the sum of all "
            "exponentials: use torch.logaddexp.",
        ),
        Hint(
            forward_is(lambda run, rank: joined(run, rank, "max")),
            "The output is right, but lse is not: it is the largest of the blocks' lse, not the logarithm of the sum "
            "of all exponentials. Use torch.logaddexp.",
        ),
        Hint(
            logarithms_added,
            "Logarithms do not add up: two blocks together have log(e^a + e^b), which is torch.logaddexp. Here a + b "
            "was taken, and it is -inf as soon as a query sees none of a block's keys.",
        ),
        Hint(
            no_number_in_gradients,
            "The gradients have NaN. Either attend_backward was given a block's own lse, which is -inf for a query "
            "that sees none of its keys: give it the out and lse over all keys. Or something was read before its "
            "wait() returned.",
        ),
        Hint(
            no_number,
            "NaN came back. Either something was read before its wait() returned, or a sum started from two times "
            "-inf: begin with the rank's own block, where every query sees at least itself.",
        ),
        Hint(
            backward_is(away_from_home),
            "The gradients of k and v are right, but on the wrong rank. They belong to the keys that they have "
            "travelled with: one more hop after the last block brings them home.",
        ),
        Hint(
            backward_is(own_queries_only),
            "The gradients of k and v come from the rank's own queries alone. Queries of all ranks have seen these "
            "keys, so the gradients have to travel with the keys, and each rank adds its contribution.",
        ),
        Hint(
            backward_is(overwritten),
            "The gradients of k and v are those of one rank's queries, the last that had the block. Each rank adds its "
            "contribution to what has come with the block, grads += ..., before it passes the sum on.",
        ),
        Hint(
            last_block_of_queries,
            "The gradient of q is that of the last block alone. Every block of keys adds to it.",
        ),
        Hint(
            gradients_scaled(("d_k", "d_v")),
            "The gradients of k and v are n or 1/n times the right ones. They are sums over the queries of all ranks: "
            "each rank adds its contribution once, and nothing is averaged.",
        ),
        Hint(
            backward_is(hops_short),
            "The gradients of k and v are a sum over the keys of different ranks. What a rank computes for the block "
            "that it has must travel with this block, and not into a sum of the rank's own.",
        ),
        Hint(
            backward_is(counted_from_own_lse),
            "The gradients were computed from a block's own lse or output. An attention weight is exp(score - lse) "
            "with the lse over all keys: give attend_backward the out and lse that ring_forward returned.",
        ),
    ),
)
