"""Lab 04: which micro-batch is the largest that fits, tried out under the same cap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from labkit.exercises.lab04.find_batch import Capped, build, loss_of, make_batch
from labkit.meters import track_memory
from labkit.observe import known_settings
from labkit.spec import CANNOT_TELL, CaseRun, Hint, KiB, Observation, Oracle, Tolerance

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Trial:
    """What is tried with a size: n_steps steps after n_micro backward passes each. The defaults are right."""

    n_steps: int = 2
    n_micro: int = 2
    backward: bool = True
    joined: bool = False
    """One backward pass for the losses of all micro-batches of a window."""
    steps: bool = True
    length: int = 0
    """Of the texts; 0 stands for the longest."""


@lru_cache(maxsize=4096)
def peak_bytes(case: Capped, size: int, trial: Trial = Trial()) -> int:
    """The most that is alive in such a trial."""
    with known_settings():
        # Named, so that the meter need not look for the parameters among all of Python's objects.
        model, optimizer = build(case, CPU)
        with track_memory(model, optimizer, sites=False) as profile:
            for _ in range(trial.n_steps):
                kept: list[torch.Tensor] = []
                for _ in range(trial.n_micro):
                    loss = loss_of(model, make_batch(case, size, trial.length or case.longest, CPU))
                    if trial.joined:
                        kept.append(loss)
                    elif trial.backward:
                        loss.backward()
                if kept:
                    torch.stack(kept).sum().backward()
                    kept.clear()
                if trial.steps:
                    optimizer.step()
                    optimizer.zero_grad()
    return profile.peak_bytes


@lru_cache(maxsize=1024)
def largest(case: Capped, trial: Trial = Trial(), most: int | None = None) -> int:
    """The largest size up to `most`, or up to the global batch, whose trial stays within the cap; 0 where none does."""
    fits, fails = 0, (case.global_batch if most is None else most) + 1
    while fails - fits > 1:
        size = (fits + fails) // 2
        if peak_bytes(case, size, trial) <= case.cap_bytes:
            fits = size
        else:
            fails = size
    return fits


def n_windows(case: Capped, size: int) -> int:
    return math.ceil(case.global_batch / size) if size else 0


def most_trials(case: Capped) -> int:
    """Doubling and halving take at most so many."""
    return 2 * math.ceil(math.log2(case.global_batch)) + 3


def expected(run: CaseRun[Capped]) -> dict[str, Any]:
    """The answer. Which sizes are tried, and what is alive then, is anyone's own."""
    size = largest(run.case)
    own = {name: run.got[name] for name in ("sizes", "left")}
    return {"micro_batch": size, "n_accumulate": n_windows(run.case, size), **own}


def few_trials(run: CaseRun[Capped]) -> str | None:
    tried, most = run.got["sizes"], most_trials(run.case)
    if len(tried) <= most:
        return None
    some = ", ".join(map(str, tried[:6]))
    return (
        f"{len(tried)} sizes were tried ({some}, ...); {most} are enough for a global batch of {run.case.global_batch}"
    )


few_trials.hint = (
    "One size after the other takes as many trials as the answer is large. Double until one fails, or keep a size that "
    "fits and one that does not, and try the one in the middle."
)


def found_by(*trials: Trial) -> Callable[[CaseRun[Capped]], object]:
    """A diagnosis: the size is what one of these trials finds, and it is wrong."""

    def diagnose(run: CaseRun[Capped]) -> object:
        wrong = {largest(run.case, trial) for trial in trials} - {largest(run.case)}
        return run.got["micro_batch"] in wrong if wrong else CANNOT_TELL

    return diagnose


def other_length(run: CaseRun[Capped]) -> object:
    """The size is what texts of another length find."""
    lengths = run.tree["lengths"]
    ordered, mean = sorted(lengths), sum(lengths) / len(lengths)
    guesses = {ordered[0], ordered[len(lengths) // 2], ordered[-2], lengths[0], lengths[-1], int(mean), math.ceil(mean)}
    wrong = {largest(run.case, Trial(length=length)) for length in guesses}
    return run.got["micro_batch"] in wrong - {largest(run.case)}


def right_size(run: CaseRun[Capped]) -> bool:
    return run.got["micro_batch"] == largest(run.case)


def a_failed_trial_stays(run: CaseRun[Capped]) -> object:
    """Beside what a model and its states take, activations were alive when the next model was built."""
    model = build(run.case, CPU)[0]
    states = 4 * 4 * sum(parameter.numel() for parameter in model.parameters())
    return max(run.got["left"][1:], default=0) > states + 16 * KiB


def last_of(sizes: Callable[[Capped], set[int]]) -> Callable[[CaseRun[Capped]], bool]:
    """A diagnosis: the size is the largest of these that fits, and a larger one fits, too."""

    def diagnose(run: CaseRun[Capped]) -> bool:
        best = largest(run.case)
        return run.got["micro_batch"] == max((one for one in sizes(run.case) if one <= best), default=0) < best

    return diagnose


def halved(case: Capped) -> set[int]:
    return {case.global_batch >> k for k in range(12)}


def doubled(case: Capped) -> set[int]:
    return {2**k for k in range(12)}


def evened(run: CaseRun[Capped]) -> bool:
    """A smaller size than would fit, with which all micro-batches are equally large or nearly so."""
    best, size, total = largest(run.case), run.got["micro_batch"], run.case.global_batch
    return 0 < size < best and (total % size == 0 or size == math.ceil(total / n_windows(run.case, best)))


LAST_OF_FEW = (
    "This size fits, but it is only the last of those that doubling or halving comes by. Search on between it and the "
    "one that failed."
)


def how_far(run: CaseRun[Capped]) -> str | None:
    size = run.got["micro_batch"]
    if not isinstance(size, int) or size < 1 or size > run.case.global_batch:
        return None
    peak = peak_bytes(run.case, size)
    verdict = "does not fit" if peak > run.case.cap_bytes else "fits"
    right = f"the largest that fits is {best}" if (best := largest(run.case)) else "not even one text fits"
    return f"training with {texts(size)} takes {peak:,} bytes and {verdict} into {run.case.cap_bytes:,}; {right}"


def texts(n: int) -> str:
    return "1 text" if n == 1 else f"{n} texts"


def called(run: Observation) -> str:
    return (
        f"find_batch(build, make_batch, loss_of, lengths={run.tree['lengths']}, global_batch={run.case.global_batch}) "
        f"under a cap of {run.case.cap_bytes:,} bytes"
    )


FIND_BATCH = Oracle(
    id="04-find-batch",
    expect=expected,
    tolerance=Tolerance(),
    judge=(few_trials,),
    call=called,
    fact=how_far,
    axis="caps, model sizes and global batches",
    errors={
        "by zero": "Where not even one text fits, the largest micro-batch is 0: return (0, 0) before you divide by it.",
    },
    places={"micro_batch": "micro_batch", "n_accumulate": "n_accumulate"},
    diagnose=(
        Hint(
            lambda run: run.got["n_accumulate"] is None,
            "Return two whole numbers, (micro_batch, n_accumulate), and (0, 0) where not even one text fits.",
        ),
        Hint(
            lambda run: (
                run.got["micro_batch"] == n_windows(run.case, largest(run.case))
                and run.got["n_accumulate"] == largest(run.case)
            ),
            "The two numbers have changed places: the micro-batch comes first.",
        ),
        Hint(
            lambda run: not right_size(run) and a_failed_trial_stays(run),
            "What a failed trial had computed was still alive when the next one began. Inside `except`, the error's "
            "traceback keeps the frames in which it happened, and with them the graph: leave the `except` block "
            "first, and only then try again.",
        ),
        Hint(
            lambda run: largest(run.case) == 0 and (run.got["micro_batch"], run.got["n_accumulate"]) != (0, 0),
            "Not even one text fits here: return (0, 0).",
        ),
        Hint(
            lambda run: largest(run.case) > 0 and run.got["micro_batch"] == 0,
            "Every size was taken for one that does not fit. Does a trial that runs to its end return True, and does "
            "`except` catch nothing but torch.OutOfMemoryError?",
        ),
        Hint(
            found_by(
                Trial(backward=False, steps=False, n_steps=1, n_micro=1),
                Trial(backward=False, steps=False),
            ),
            "The trial only goes forward. Gradients, and the optimizer's states, come later and need room.",
        ),
        Hint(
            found_by(Trial(n_steps=1), Trial(n_steps=1, n_micro=1)),
            "The trial does not go on after a step. AdamW's states are made in the first step and are alive from then "
            "on, so the peak is in the second step: take one, and go forward and backward again.",
        ),
        Hint(
            found_by(Trial(n_micro=1)),
            "The trial leaves out a moment of training: the second micro-batch of a step after the first one, when "
            "weights, moments and the gradients of the micro-batch before are alive beside its activations. Take two "
            "micro-batches in each of two steps, and clear the gradients only after a step.",
        ),
        Hint(
            found_by(Trial(joined=True)),
            "The trial keeps the graphs of both micro-batches until one backward pass for both. Accumulation calls "
            "backward for each micro-batch before the next one goes forward, so more texts fit.",
        ),
        Hint(
            other_length,
            "The trial's texts are shorter than the longest. A batch of the longest ones comes sooner or later, and it "
            "has to fit, too: take max(lengths).",
        ),
        Hint(
            lambda run: isinstance(run.got["micro_batch"], int) and run.got["micro_batch"] > run.case.global_batch,
            "A micro-batch never needs more texts than the global batch has.",
        ),
        Hint(last_of(halved), LAST_OF_FEW),
        Hint(last_of(doubled), LAST_OF_FEW),
        Hint(
            evened,
            "This size makes all micro-batches alike, but a larger one fits, and the last micro-batch may be smaller: "
            "return the largest that fits.",
        ),
        Hint(
            lambda run: run.got["micro_batch"] == largest(run.case) + 1,
            "Off by one: this is the first size that is too large.",
        ),
        Hint(
            lambda run: right_size(run) and run.got["n_accumulate"] == 1,
            "The micro-batch is right, but the global batch is not kept: n_accumulate micro-batches have to hold all "
            "of its texts.",
        ),
        Hint(
            lambda run: right_size(run) and run.got["n_accumulate"] < n_windows(run.case, run.got["micro_batch"]),
            "Some texts of the global batch are left out: round the number of micro-batches up. The last one may be "
            "smaller.",
        ),
        Hint(
            lambda run: right_size(run) and run.got["n_accumulate"] == run.case.global_batch // largest(run.case) + 1,
            "One micro-batch is added even where the texts of the global batch fill whole ones: round up instead of "
            "adding 1.",
        ),
        Hint(
            lambda run: run.got["micro_batch"] == largest(run.case) - 1,
            "One text more still fits.",
        ),
    ),
)
