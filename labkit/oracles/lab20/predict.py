"""Lab 20: what the public runs cost, as the game bills them, and what a wrong prediction left out or counted twice.

The figures are stored: a bill takes seconds. A test bills the runs again. No rule is written here that gives them.
"""

from __future__ import annotations

from collections.abc import Sequence

from labkit.exercises.lab20.config import Config
from labkit.exercises.lab20.predict import PREDICT as EXERCISE
from labkit.oracles.lab20.predicted_wrongly import (
    FAILS,
    FULL,
    PARTS,
    costs_marks,
    largest_weight,
    mostly_hidden,
    moved_is,
    only,
    peak_is,
    peak_off_by,
    sent,
    texts,
    times,
    to_and_from,
    too_low_where,
    weights,
    wide,
)
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle, Rivals, Tolerance

AT_THE_LIMIT = 0.5
"""Of the points, for an error just below FAILS."""
BILLED = (
    (1461714944, 0, 204800),
    (3785359360, 0, 409600),
    (2468347904, 0, 327680),
    (1488977920, 4766607360, 5898240),
    (1216348160, 210026496000, 61440),
    (2256535552, 182634946560, 245760),
    (347078656, 19045416960, 61440),
)
"""Of each public run, in order: peak bytes, bytes moved, tokens."""

CLOSE = {
    "peak_bytes": Tolerance(rtol=FAILS, check_dtype=False),
    "moved_bytes": Tolerance(atol=0.5, rtol=1e-6, check_dtype=False),
    "tokens": Tolerance(check_dtype=False),
}


def billed(run: CaseRun[Config]) -> dict[str, float]:
    """Hidden runs have an expectation of their own."""
    return dict(zip(PARTS, map(float, BILLED[EXERCISE.public.index(run.case)]), strict=True))


def error(run: CaseRun[Config]) -> float:
    """Of the peak, relative."""
    return abs(run.got["peak_bytes"] / run.expected["peak_bytes"] - 1)


def by_the_largest_error(runs: Sequence[CaseRun[Config]]) -> float:
    """1 up to FULL, and then in a line to AT_THE_LIMIT at FAILS. Where nothing is expected, nothing is wrong."""
    if any(run.expect is None for run in runs):
        return 1.0
    way = (max(map(error, runs)) - FULL) / (FAILS - FULL)
    return 1 - (1 - AT_THE_LIMIT) * min(max(way, 0.0), 1.0)


def how_far(run: CaseRun[Config]) -> str | None:
    """A fact on the first part that is wrong."""
    c = run.case
    if only("peak_bytes", run):
        off = run.got["peak_bytes"] - run.expected["peak_bytes"]
        per_weight, per_tensor = abs(off) / c.size.n_parameters, abs(off) / wide(c)
        return (
            f"the peak is {abs(off) / run.expected['peak_bytes']:.0%} too {'high' if off > 0 else 'low'}; the "
            f"difference is that of {per_weight:.2f} bytes a weight, or of {per_tensor:.1f} tensors of tokens × width"
        )
    for part in PARTS[1:]:
        if only(part, run):
            right = run.expected[part]
            if right == 0:
                return f"{part}: nothing, with one card and the states on it"
            return f"{part} is {run.got[part] / right:.4g} times the right number"
    return None


def in_words(run: Observation) -> str:
    return f"predict({run.case})"


PREDICT = Oracle(
    id="20-predict",
    expect=billed,
    tolerance=lambda run: CLOSE,
    budgets=(
        Budget(
            "dispatches",
            0,
            "Operations on tensors were run to find these numbers: that is a measurement, and this a prediction. "
            "Every number follows from the fields of config by arithmetic.",
        ),
    ),
    score=by_the_largest_error,
    call=in_words,
    fact=how_far,
    axis="other sizes, dtypes and numbers of cards, and peaks at another moment of the step",
    places={"peak_bytes": "peak_bytes", "moved_bytes": "moved_bytes", "tokens": "tokens"},
    diagnose=(
        Rivals(
            (
                Hint(
                    times("peak_bytes", lambda c: 1 / 2**30),
                    "This is in GiB. All memory is asked for in bytes.",
                ),
                Hint(
                    times("peak_bytes", lambda c: 1 / 2**20),
                    "This is in MiB. All memory is asked for in bytes.",
                ),
                Hint(
                    times("peak_bytes", lambda c: 1e-9),
                    "This is in GB. All memory is asked for in bytes.",
                ),
                Hint(
                    peak_is(lambda c: 16 * c.size.n_parameters),
                    "These are 16 bytes a weight. The tokens of a micro-batch take memory too, and states on the "
                    "host take none.",
                ),
                Hint(
                    times("peak_bytes", lambda c: c.n_cards),
                    "This is the memory of all cards together. A card has to hold its own alone.",
                ),
                Hint(
                    peak_off_by(lambda c: -8 * c.size.n_parameters * (not c.states_on_host)),
                    "AdamW's states are missing: on the card they take two float32 numbers a weight, all the time.",
                ),
                Hint(
                    peak_off_by(lambda c: -4 * c.size.n_parameters * (not c.states_on_host)),
                    "AdamW keeps two numbers a weight, m and v, and both are in float32, whatever the weights are in.",
                ),
                Hint(
                    peak_off_by(lambda c: (2 * c.bytes_per_number - 8) * c.size.n_parameters * (not c.states_on_host)),
                    "AdamW keeps two numbers a weight, m and v, and both are in float32, whatever the weights are in.",
                ),
                Hint(
                    peak_off_by(lambda c: 8 * c.size.n_parameters * c.states_on_host),
                    "The states were counted in runs that keep them on the host. On the card they exist for one weight "
                    "at a time, at the update.",
                ),
                Hint(
                    peak_off_by(lambda c: weights(c) * (c.n_micro == 1)),
                    "With one micro-batch the gradients of the step before are freed when the loss is computed. They "
                    "exist at the loss only where they are summed over micro-batches.",
                ),
                Hint(
                    peak_off_by(lambda c: -weights(c) * (c.n_micro > 1)),
                    "With several micro-batches the gradients are summed, so after the first one they exist "
                    "all the time: at the loss and in the blocks as well.",
                ),
                Hint(
                    peak_off_by(lambda c: -4 * c.vocab * texts(c)),
                    "At the loss there are three tensors of tokens × vocab in float32: the logarithms of the "
                    "probabilities, their gradient, and the gradient of the logits.",
                ),
                Hint(
                    peak_off_by(lambda c: -8 * c.vocab * texts(c)),
                    "At the loss there are three tensors of tokens × vocab in float32: the logarithms of the "
                    "probabilities, their gradient, and the gradient of the logits.",
                ),
                Hint(
                    peak_off_by(lambda c: 3 * (c.bytes_per_number - 4) * c.vocab * texts(c)),
                    "The loss is computed in float32: its three tensors of tokens × vocab have 4 bytes a number, also "
                    "where the weights have 2.",
                ),
                Hint(
                    peak_off_by(lambda c: 15 * c.n_layers * wide(c) * c.recompute),
                    "Runs that recompute keep one tensor a block, its input, and not all 16.",
                ),
                Hint(
                    peak_off_by(lambda c: -c.width * (4 * c.width + c.vocab) * c.bytes_per_number),
                    "Beside a block at work two new gradients exist: of the largest matrix in it, and of the "
                    "embedding, whose gradient as the head is there before any block's. Both have the weights' dtype.",
                ),
            )
        ),
        Hint(
            costs_marks(lambda c: -4 * largest_weight(c) * (c.states_on_host and c.bytes_per_number == 2)),
            "A little too low, where the states are on the host and the weights in bfloat16: `weight.grad.float()` is "
            "a copy then, as large as the largest weight, with 4 bytes a number.",
        ),
        Hint(
            too_low_where(lambda c: c.states_on_host and not mostly_hidden(c)),
            "Too low, where the states are on the host. There the largest moment is the update of the largest weight: "
            "count the tensors of that weight's shape that exist in the loop over the weights, with their dtypes.",
        ),
        Hint(
            too_low_where(mostly_hidden),
            "Too low, in a run that recomputes and has few words. There the largest moment is the backward pass of the "
            "last block: all its tensors exist again, those of the blocks below it are kept, and so on.",
        ),
        Hint(
            too_low_where(lambda c: c.states_on_host or mostly_hidden(c)),
            "Too low, wherever the loss is not the largest moment. Work out all three moments, and take `max`.",
        ),
        Rivals(
            (
                Hint(
                    moved_is(lambda c: sent(c) / 2 + to_and_from(c)),
                    "An all-reduce is a reduce-scatter and an all-gather: each sends (n − 1)/n of the bytes. This is "
                    "one of the two.",
                ),
                Hint(
                    moved_is(lambda c: 2 * (c.n_cards - 1) * weights(c) + to_and_from(c)),
                    "This is what all cards send together. Asked for is what one card sends.",
                ),
                Hint(
                    moved_is(lambda c: 2 * weights(c) * (c.n_cards > 1) + to_and_from(c)),
                    "A card sends (n − 1)/n of a tensor in each half of a ring: its own part never travels, and with "
                    "one card nothing does.",
                ),
                Hint(
                    moved_is(lambda c: 2 * weights(c) + to_and_from(c)),
                    "A card sends (n − 1)/n of a tensor in each half of a ring: its own part never travels, and with "
                    "one card nothing does.",
                ),
                Hint(
                    moved_is(lambda c: sent(c) * c.n_micro + to_and_from(c)),
                    "The gradients were sent once for each micro-batch. The script adds them up and sends the sum.",
                ),
                Hint(
                    moved_is(lambda c: sent(c) * 4 / c.bytes_per_number + to_and_from(c)),
                    "The gradients are sent in the dtype of the weights, and not always in float32.",
                ),
                Hint(
                    moved_is(to_and_from),
                    "What the cards send one another is missing: the gradients are summed over all cards by a ring.",
                ),
                Hint(
                    moved_is(sent),
                    "What goes between card and host is missing: with the states there, every step fetches both "
                    "and takes them back.",
                ),
                Hint(
                    moved_is(lambda c: sent(c) + to_and_from(c) / 2),
                    "States on the host travel twice a step, to the card and back, and both are in float32 whatever "
                    "the weights are in.",
                ),
                Hint(
                    moved_is(lambda c: sent(c) + to_and_from(c) * c.bytes_per_number / 4),
                    "States on the host travel twice a step, to the card and back, and both are in float32 whatever "
                    "the weights are in.",
                ),
                Hint(
                    moved_is(lambda c: (sent(c) + to_and_from(c)) / c.n_steps),
                    "These are the bytes of one step. Asked for are those of the whole run, n_steps of them.",
                ),
            )
        ),
        Rivals(
            (
                Hint(
                    times("tokens", lambda c: 1 / c.n_cards),
                    "These are the tokens of one card. Each of n_cards works on its own.",
                ),
                Hint(
                    times("tokens", lambda c: 1 / c.n_micro),
                    "These are the tokens of one micro-batch a step. A step has n_micro of them.",
                ),
                Hint(
                    times("tokens", lambda c: 1 / c.seq_len),
                    "These are texts. Each has seq_len tokens.",
                ),
                Hint(
                    times("tokens", lambda c: 1 / c.n_steps),
                    "These are the tokens of one step. Asked for are those of the whole run, n_steps of them.",
                ),
            )
        ),
    ),
)
