"""Lab 02: what is true of stochastic rounding, and a hint for each way in which it is not."""

from __future__ import annotations

from collections.abc import Callable

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.stochastic_rounding import Draws
from labkit.oracles.lab02.rounding_faults import find
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


def rounding_problem(run: CaseRun) -> str | None:
    finding = find(run)
    return finding and finding.text


def found(key: str, *cannot_tell: str) -> Callable[[CaseRun[Draws]], object]:
    """A diagnosis: the finding is this one. One of `cannot_tell` says nothing against it: few draws hide it.

    Nor does a case with just_above, where many mistakes look alike.
    """

    def diagnose(run: CaseRun[Draws]) -> object:
        finding = find(run)
        if finding is not None and (finding.key in cannot_tell or (run.case.just_above and finding.key != key)):
            return CANNOT_TELL
        return finding is not None and finding.key == key

    return diagnose


def called(run: CaseRun[Draws]) -> str:
    """How it was called, each time."""
    columns = len(run.tree["x"])
    if run.case.just_above:
        exact, above = run.tree["x"].tolist()
        return (
            f"stochastic_round(x, generator), x float32 of shape ({run.case.n_copies}, 2): {exact:.9g}, which bfloat16 "
            f"has, in one column, and the next float32, {above:.9g}, in the other"
        )
    return (
        f"stochastic_round(x, generator), x float32 of shape ({run.case.n_copies}, {columns}): in each column the same "
        f"number, of size {run.case.scale:g} or a special value"
    )


STOCHASTIC_ROUNDING = Oracle(
    id="02-stochastic-rounding",
    judge=(inputs_untouched, rounding_problem),
    diagnose=(
        Hint(found("kind"), "Return a bfloat16 tensor of x's shape, and leave the last conversion nothing to round."),
        Hint(found("truncates"), "The low 16 bits are cut off, which rounds toward zero. Add noise to them first."),
        Hint(
            found("nearest"),
            "This is rounding to nearest: adding half a step always rounds a number the same way, so a small update "
            "is lost every time. The number added must be random, from zero to just below a whole bfloat16 step.",
        ),
        Hint(
            found("away"),
            "Every value moves away from zero. What is added must be random, from zero to just below a whole bfloat16 "
            "step.",
        ),
        Hint(found("one-draw"), "One random number serves several elements. Draw one for every element."),
        Hint(
            found("again"),
            "The noise is right, but the last conversion rounds once more, to nearest. Cut the low 16 bits off after "
            "adding, so that the conversion has nothing left to round.",
        ),
        Hint(
            found("flushed"),
            "Small values came back as 0. Below its smallest normal number, 2**-126, bfloat16 has subnormals too.",
        ),
        Hint(
            found("swapped"),
            "The two probabilities are swapped: a value close to its lower neighbour mostly goes up. A draw from [0, "
            "1) is below p with probability p.",
        ),
        Hint(
            found("narrow", "bias", "reseeded"),
            "The noise is too narrow: values low in a step never reach the next one. It must be uniform over exactly "
            "one bfloat16 step, which is 2**16 float32 steps.",
        ),
        Hint(
            found("exact"),
            "A value that bfloat16 has must stay. The noise must be less than one bfloat16 step: below 2**16, as a "
            "whole number of float32 steps.",
        ),
        Hint(found("negative"), "Only negative values are wrong. Is the step taken away from zero, or always upward?"),
        Hint(
            found("far"),
            "The result is neither of the two bfloat16 neighbours of x. Either the noise is wider than one bfloat16 "
            "step, or the step is not the one at x: it is 2**16 float32 steps, and doubles at every power of two.",
        ),
        Hint(
            found("nan"),
            "NaN did not stay NaN. Adding to its bits can run into the sign bit, and clearing them can leave inf. "
            "Take special values from x itself.",
        ),
        Hint(
            found("zero"),
            "bfloat16 has both zeros, so -0.0 stays -0.0. Adding 0.0 to it, or choosing a plain 0, loses the sign.",
        ),
        Hint(found("inf"), "inf has to stay inf. Take special values from x itself."),
        Hint(
            found("overflow"),
            "Above the largest finite bfloat16 a carry makes inf. A finite x must stay finite, so round it toward "
            "zero there.",
        ),
        Hint(
            found("ignored"),
            "The draws did not come from `generator` but from PyTorch's global one. Pass generator=generator on.",
        ),
        Hint(
            found("reseeded"),
            "The generator's state was not used, or was set back. Draw from it as it is, without seeding anything.",
        ),
        Hint(
            found("short"),
            "The largest noise never comes up, so a value one float32 step above a bfloat16 stays down for ever. "
            "torch.randint leaves its upper end out: randint(2**16, ...) gives the numbers from 0 to 2**16 - 1.",
        ),
        Hint(
            found("bias"),
            "The chance of rounding up must be the fraction of the step by which x lies above its lower neighbour. Is "
            "the noise uniform over exactly one bfloat16 step, that is 16 bits?",
        ),
    ),
    call=called,
)
