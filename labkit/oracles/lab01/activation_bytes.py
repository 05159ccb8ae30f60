"""Lab 01: what a forward pass keeps, by the meter on the model of transformers, and the hint on a wrong sum."""

from __future__ import annotations

from collections.abc import Callable

from labkit.exercises.lab01.activation_bytes import Forward
from labkit.oracles.calls import fields_in_words
from labkit.oracles.hints import once
from labkit.oracles.lab01.activation_mistakes import MISTAKES, RTOL, measured, mistakes_in, rows
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

SOMETHING_MISSING = (
    "something that is kept is not in the sum. Go through a layer in order, and ask of each operation what its "
    "backward pass reads."
)
SOMETHING_TOO_MUCH = (
    "something in the sum is not kept, or is counted twice. Two operations that read the same tensor keep it once, and "
    "an addition keeps nothing."
)


@once
def mistakes_of(run: CaseRun[Forward]) -> list[str]:
    return mistakes_in(run.case, float(run.got["out"]))


def leads_to(mistake: str) -> Callable[[CaseRun[Forward]], object]:
    """A diagnosis: this mistake alone explains the sum, and where another does so as well, nobody can tell."""

    def when(run: CaseRun[Forward]) -> object:
        found = mistakes_of(run)
        if len(found) > 1 and mistake in found:
            return CANNOT_TELL
        return found == [mistake]

    return when


def off_by(run: CaseRun[Forward]) -> str:
    """What the sum is off, in the unit that one counts in, and what to look for."""
    each = (float(run.got["out"]) - measured(run.case)) / rows(run.case)
    if each < 0:
        return f"{-each:,.0f} bytes too few per token and layer: {SOMETHING_MISSING}"
    return f"{each:,.0f} bytes too many per token and layer: {SOMETHING_TOO_MUCH}"


def call_of(run: Observation) -> str:
    """The call that the case makes, and the configuration that it hands over."""
    case = run.case
    call = f"activation_bytes(config, {case.batch_size}, {case.seq_len}, {case.attention!r}, {case.dtype_bytes})"
    return f"{call}, config: {fields_in_words(vars(case.shape()))}"


ACTIVATION_BYTES = Oracle(
    id="01-activation-bytes",
    expect=lambda run: {"out": measured(run.case)},
    tolerance=Tolerance(rtol=RTOL),
    fact=off_by,
    call=call_of,
    diagnose=tuple(Hint(leads_to(mistake), mistake) for mistake in MISTAKES),
)
