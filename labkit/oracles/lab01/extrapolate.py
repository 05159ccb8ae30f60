"""Lab 01: the peak of the deep model, built and measured, and what was made of the two shallow ones instead."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.exercises.lab01.extrapolate import Deep
from labkit.exercises.lab01.llama import moments
from labkit.oracles.calls import as_call
from labkit.spec import CaseRun, Hint, Oracle, Tolerance


def deep_peak(case: Deep) -> int:
    """The peak of a training step at full depth."""
    return moments(case.shape(), case.batch_size, case.seq_len).peak


def measurements(tree: dict) -> dict[str, int]:
    """Depth -> bytes, as they come back where they were left alone."""
    return {str(depth): n_bytes for depth, n_bytes in zip(tree["layers"], tree["peak_bytes"], strict=True)}


class Line:
    """The two measurements, and what was made of them."""

    def __init__(self, run: CaseRun[Deep]) -> None:
        (self.first, self.second), (self.low, self.high) = run.tree["layers"], run.tree["peak_bytes"]
        self.depth, self.found = run.case.num_hidden_layers, float(run.got["out"])
        self.per_layer = (self.high - self.low) / (self.second - self.first)

    def is_one_of(self, *guesses: float) -> bool:
        return any(abs(self.found - guess) <= 1e-3 * abs(guess) for guess in guesses)


def line(when: Callable[[Line], bool]) -> Callable[[CaseRun[Deep]], bool]:
    """A diagnosis of 01-extrapolate."""
    return lambda run: when(run.memo(Line))


EXTRAPOLATE = Oracle(
    id="01-extrapolate",
    expect=lambda run: {"out": deep_peak(run.case), "measured": measurements(run.tree)},
    # Each layer adds the same bytes; whatever does not grow so is far below a percent.
    tolerance=lambda run: {"out": Tolerance(rtol=0.01)},
    call=lambda run: as_call(
        "extrapolate", dict(zip(run.tree["layers"], run.tree["peak_bytes"], strict=True)), run.case.num_hidden_layers
    ),
    places={"measured": "`measured` after the call"},
    errors={
        "KeyError": (
            "The keys of `measured` are the two depths that were measured, any two: read them from the dictionary."
        ),
    },
    diagnose=(
        Hint(
            lambda run: run.got["measured"] != measurements(run.tree),
            "`measured` belongs to the caller, who goes on using it: read from it, and take nothing out.",
        ),
        Hint(
            line(
                lambda d: d.is_one_of(
                    d.depth * d.low / d.first,
                    d.depth * d.high / d.second,
                    d.depth * (d.first * d.low + d.second * d.high) / (d.first**2 + d.second**2),
                    d.depth * (d.low / d.first + d.high / d.second) / 2,
                )
            ),
            "That is a line through the origin: it multiplies embeddings, logits and everything else that a model has "
            "only once. Two measurements give the slope and the part that does not grow.",
        ),
        Hint(
            line(lambda d: d.is_one_of(d.low + d.depth * d.per_layer, d.high + d.depth * d.per_layer)),
            "Too many layers are added: the measured model has layers already, so only the difference in depth is to "
            "be added.",
        ),
        Hint(
            line(
                lambda d: d.is_one_of(
                    d.low + (d.depth - d.first) * (d.high - d.low),
                    d.low + (d.depth - 1) * (d.high - d.low),
                    d.high + (d.depth - 2) * (d.high - d.low),
                    d.high + (d.depth - d.second) * (d.high - d.low),
                    d.low + (d.depth - d.first) * abs(d.high - d.low),
                )
            ),
            "The difference of the two measurements is not always one layer: divide it by the difference in depth, "
            "sign included.",
        ),
        Hint(
            line(lambda d: d.is_one_of(d.depth * d.per_layer)),
            "That is the layers alone: what does not grow with depth is missing (embeddings, logits, their states).",
        ),
        Hint(
            line(
                lambda d: d.is_one_of(
                    d.low + (d.depth - 1) * d.per_layer,
                    d.high + (d.depth - 2) * d.per_layer,
                    d.low + (d.depth - d.second) * d.per_layer,
                    d.high + (d.depth - d.first) * d.per_layer,
                )
            ),
            "The slope is right, but it starts from the wrong depth: the keys of `measured` say how deep the measured "
            "models are, in any order.",
        ),
        Hint(
            line(
                lambda d: (
                    d.first > d.second
                    and d.is_one_of(
                        *(
                            n_bytes - (d.depth - n) * d.per_layer
                            for n_bytes in (d.low, d.high)
                            for n in (d.first, d.second)
                        )
                    )
                )
            ),
            "The deeper model may come first in `measured`: take each depth with its own bytes, and both differences "
            "in the same order.",
        ),
        Hint(
            lambda run: math.isfinite(run.got["out"]),
            "The line goes through both measurements: put their depths in for n_layers and see whether their bytes "
            "come out.",
        ),
    ),
)
