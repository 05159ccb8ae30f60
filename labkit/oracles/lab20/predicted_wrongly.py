"""Lab 20: by what a prediction is off, for its hints.

Students have this file, so it knows differences, and no rule that gives the right numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.exercises.lab20.config import Config
from labkit.oracles.hints import Condition
from labkit.spec import CANNOT_TELL, CaseRun

FULL = 0.02
"""Up to this error of the peak a prediction gets full marks."""
FAILS = 0.08
"""Of the peak: from this error on a prediction fails."""
NEAR = 0.015
"""Of the peak: a mistake that explains a wrong one does so up to this."""
PARTS = ("peak_bytes", "moved_bytes", "tokens")


def wrong(run: CaseRun[Config], part: str) -> bool:
    """Whether this part is one that fails."""
    close = FAILS if part == "peak_bytes" else 1e-6
    return abs(run.got[part] - run.expected[part]) > close * run.expected[part]


def only(part: str, run: CaseRun[Config]) -> bool:
    """Whether this part fails, and none before it."""
    return wrong(run, part) and not any(wrong(run, one) for one in PARTS[: PARTS.index(part)])


def peak_off_by(n_bytes: Callable[[Config], float]) -> Condition:
    """A moment is wrong by that much. CANNOT_TELL where the peak is off by less: another moment is the largest then."""

    def when(run: CaseRun[Config]) -> Any:
        if not only("peak_bytes", run):
            return False
        peak, by = run.expected["peak_bytes"], n_bytes(run.case)
        off = run.got["peak_bytes"] - peak
        if by == 0 or off * by < 0:
            return False
        if abs(off - by) <= NEAR * peak:
            return True
        return CANNOT_TELL if abs(off) < abs(by) else False

    return when


def costs_marks(n_bytes: Callable[[Config], float]) -> Condition:
    """The peak is wrong by that much, which is not enough to fail."""

    def when(run: CaseRun[Config]) -> bool:
        peak = run.expected["peak_bytes"]
        off = run.got["peak_bytes"] - peak
        return FULL < abs(off) / peak <= FAILS and abs(off - n_bytes(run.case)) <= NEAR * peak

    return when


def times(part: str, factor: Callable[[Config], float]) -> Condition:
    """This part is so many times the right number."""

    def when(run: CaseRun[Config]) -> Any:
        if not only(part, run):
            return False
        right, by = run.expected[part], factor(run.case)
        close = NEAR if part == "peak_bytes" else 1e-6
        return by != 1 and abs(run.got[part] - by * right) <= close * abs(by * right)

    return when


def peak_is(n_bytes: Callable[[Config], float]) -> Condition:
    """The peak is this, which has little to do with the right one."""
    return lambda run: only("peak_bytes", run) and abs(run.got["peak_bytes"] / n_bytes(run.case) - 1) <= 1e-3


def moved_is(n_bytes: Callable[[Config], float]) -> Condition:
    """What a step moves by a mistake; it may be right in some runs."""

    def when(run: CaseRun[Config]) -> Any:
        if not only("moved_bytes", run):
            return False
        return abs(run.got["moved_bytes"] - run.case.n_steps * n_bytes(run.case)) <= 1e-6 * run.expected["moved_bytes"]

    return when


def too_low_where(holds: Callable[[Config], bool]) -> Condition:
    """The peak is too low, in such a run. One of another kind that fails says no."""
    return lambda run: (
        only("peak_bytes", run) and run.got["peak_bytes"] < run.expected["peak_bytes"] and holds(run.case)
    )


# A run's quantities, which its declaration gives ----------------------------------------------------------------------


def weights(c: Config) -> int:
    return c.size.n_parameters * c.bytes_per_number


def texts(c: Config) -> int:
    """Tokens of a micro-batch, on one card."""
    return c.micro_batch * c.seq_len


def wide(c: Config) -> int:
    """One tensor of the model's width."""
    return texts(c) * c.width * c.bytes_per_number


def sent(c: Config) -> float:
    """By a ring, once a step."""
    return 2 * (c.n_cards - 1) / c.n_cards * weights(c)


def to_and_from(c: Config) -> int:
    """The host, both states."""
    return 16 * c.size.n_parameters * c.states_on_host


def mostly_hidden(c: Config) -> bool:
    """A run that recomputes, and whose logits are smaller than what one block works on. With the states on the host,
    this work is also more than that of an update."""
    many_tokens = not c.states_on_host or (c.bytes_per_number == 4 and 2 * texts(c) > c.width >= c.vocab / 4)
    return c.recompute and many_tokens and 6 * c.vocab < 8 * c.width * c.bytes_per_number


def largest_weight(c: Config) -> int:
    """Numbers in it."""
    return c.width * max(4 * c.width, c.vocab)
