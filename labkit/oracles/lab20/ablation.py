"""Lab 20: what is true of an ablation, from the table of all runs, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from labkit.compare import inputs_untouched
from labkit.exercises.lab20.ablation import (
    HELP,
    INDEPENDENT,
    NAMES,
    OVERLAP,
    SHARE,
    Knobs,
    extras,
    key_of,
    subsets,
)
from labkit.oracles.hints import Condition, once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-6, check_dtype=False)
PARTS = ("alone", "last", "together", "extra", "names")
Parts = dict[str, Any]


@once
def peaks(run: CaseRun[Knobs]) -> dict[tuple[str, ...], int]:
    """The peak by the knobs that are turned, in the order of the case."""
    return {some: run.tree["table"][key_of(some, run.case.names)] for some in subsets(run.case.names)}


def pairs(run: CaseRun[Knobs]) -> list[str]:
    return [key_of(pair, run.case.names) for pair in combinations(run.case.names, 2)]


def named(extra: Mapping[str, float], least: float) -> dict[str, str]:
    return {pair: INDEPENDENT if abs(x) <= least else HELP if x > 0 else OVERLAP for pair, x in extra.items()}


def expect(run: CaseRun[Knobs]) -> Parts:
    """Which runs were made is judged by a property."""
    names, at = run.case.names, peaks(run)
    extra = dict(zip(pairs(run), extras(run.tree["table"], names), strict=True))
    return {
        "alone": {name: at[()] - at[name,] for name in names},
        "last": {name: at[tuple(other for other in names if other != name)] - at[names] for name in names},
        "together": at[()] - at[names],
        "extra": extra,
        "names": named(extra, SHARE * at[()]),
        "runs": run.got["runs"],
    }


def needed(names: tuple[str, ...]) -> int:
    """Different runs: none, all, each alone, each left out, each pair."""
    n = len(names)
    return len({some for some in subsets(names) if len(some) in (0, 1, 2, n - 1, n)})


def no_more_runs_than_needed(run: CaseRun[Knobs]) -> str | None:
    """A property."""
    made, n_needed = run.got["runs"], needed(run.case.names)
    if len(made) <= n_needed:
        return None
    return f"run was called {len(made)} times; {n_needed} different runs tell it all, and {len(set(made))} were made"


def no_fewer_runs_than_needed(run: CaseRun[Knobs]) -> str | None:
    """A property: what was not run is not known."""
    n_made, n_needed = len(set(run.got["runs"])), needed(run.case.names)
    if n_made >= n_needed:
        return None
    return f"{n_made} different runs were made by calling run, and it takes {n_needed} to know all that was asked"


# Mistakes -------------------------------------------------------------------------------------------------------------


def part_is(part: str, made: Callable[[CaseRun[Knobs]], Any]) -> Condition:
    """This part is that of a mistake, and those before it are right; CANNOT_TELL where it changes nothing."""

    def when(run: CaseRun[Knobs]) -> Any:
        earlier = PARTS[: PARTS.index(part)]
        if any(run.got[one] != run.expected[one] for one in earlier):
            return False
        wrong = made(run)
        if wrong == run.expected[part]:
            return CANNOT_TELL if run.got[part] == wrong else False
        return run.got[part] == wrong

    return when


def cumulative(run: CaseRun[Knobs]) -> dict[str, int]:
    """One knob after the other, in the order of the list."""
    names, at = run.case.names, peaks(run)
    return {name: at[names[:i]] - at[names[: i + 1]] for i, name in enumerate(names)}


def negative(part: str) -> Condition:
    return part_is(part, lambda run: {name: -saved for name, saved in run.expected[part].items()})


def of_pairs(worked: Callable[[int, int, int, int], float]) -> Callable[[CaseRun[Knobs]], dict[str, float]]:
    """(peak of none, of the first, of the second, of both) -> what stands there for a pair."""

    def made(run: CaseRun[Knobs]) -> dict[str, float]:
        at = peaks(run)
        return {
            key_of((a, b), run.case.names): worked(at[()], at[a,], at[b,], at[a, b])
            for a, b in combinations(run.case.names, 2)
        }

    return made


def without_a_run(run: CaseRun[Knobs]) -> Any:
    return not run.got["runs"]


def names_with(least: Callable[[CaseRun[Knobs]], float]) -> Condition:
    return part_is("names", lambda run: named(run.expected["extra"], least(run)))


def either(*conditions: Condition) -> Condition:
    """One of these holds; CANNOT_TELL where none does and one cannot tell."""

    def when(run: CaseRun[Knobs]) -> Any:
        found = [condition(run) for condition in conditions]
        return True if True in found else CANNOT_TELL if CANNOT_TELL in found else False

    return when


def swapped(run: CaseRun[Knobs]) -> dict[str, str]:
    other = {HELP: OVERLAP, OVERLAP: HELP, INDEPENDENT: INDEPENDENT}
    return {pair: other[name] for pair, name in run.expected["names"].items()}


def names_by_share_of_both(run: CaseRun[Knobs]) -> dict[str, str]:
    """Beside what the two save, and not beside what the script takes."""
    both = of_pairs(lambda none, a, b, ab: none - ab)(run)
    return {pair: named({pair: extra}, SHARE * abs(both[pair]))[pair] for pair, extra in run.expected["extra"].items()}


def repeats(run: CaseRun[Knobs]) -> Any:
    """The values are right; runs were made again."""
    if no_more_runs_than_needed(run) is None:
        return CANNOT_TELL
    return len(set(run.got["runs"])) <= needed(run.case.names)


def all_subsets(run: CaseRun[Knobs]) -> Any:
    if no_more_runs_than_needed(run) is None:
        return CANNOT_TELL
    return len(set(run.got["runs"])) > needed(run.case.names)


def in_words(run: Observation) -> str:
    return f"ablation(run, {list(run.case.names)}), where run(set()) is {run.tree['table']['']:,}"


ABLATION = Oracle(
    id="20-ablation",
    expect=expect,
    tolerance=CLOSE,
    judge=(inputs_untouched, no_more_runs_than_needed, no_fewer_runs_than_needed),
    call=in_words,
    axis="other scripts, and other numbers of knobs",
    places={
        "alone": "what each saves alone",
        "last": "what each saves last",
        "together": "what all save",
        "extra": "extra of a pair",
        "names": "name of a pair",
    },
    errors={
        "run takes a set": "run takes the knobs that are turned, as a set or a list: run({'bf16'}), run(['bf16']).",
    },
    diagnose=(
        Hint(
            without_a_run,
            "run was never called, so these numbers come from no run of this script. What a knob saves depends on the "
            "script and on the other knobs: measure it.",
        ),
        Hint(negative("alone"), "The sign is wrong: what is saved is run without the knob minus run with it."),
        Hint(
            part_is("alone", lambda run: run.expected["last"]),
            "This is what each knob saves last, beside all the others. Alone means against the script without any.",
        ),
        Hint(
            part_is("alone", cumulative),
            "Knobs were turned one after the other, and each was compared with the run before. Then a knob's number "
            "depends on its place in the list. Alone means against the script without any.",
        ),
        Hint(
            part_is("alone", lambda run: {k: v / peaks(run)[()] for k, v in run.expected["alone"].items()}),
            "These are shares of the whole. What is saved is a difference, in the unit that run returns.",
        ),
        Hint(
            part_is("alone", lambda run: {name: peaks(run)[name,] for name in run.case.names}),
            "This is what the script takes with the knob. What is saved is the difference to the run without it.",
        ),
        Hint(
            part_is("last", lambda run: run.expected["alone"]),
            "This is what each saves alone. Last means: all the others are turned already, so leave out one knob at a "
            "time and compare with the run in which all are turned.",
        ),
        Hint(
            part_is("last", cumulative),
            "Here each knob was added to those before it in the list. Last means beside *all* others, wherever it "
            "stands in the list.",
        ),
        Hint(negative("last"), "The sign is wrong: with a knob left out, the script takes more than with all of them."),
        Hint(
            part_is("together", lambda run: sum(run.expected["alone"].values())),
            "This is the sum of what the knobs save alone, and no run gives it. Turn all of them, and run.",
        ),
        Hint(
            part_is("together", lambda run: sum(run.expected["last"].values())),
            "This is the sum of what the knobs save last, and no run gives it. Turn all of them, and run.",
        ),
        Hint(
            part_is("together", lambda run: peaks(run)[run.case.names]),
            "This is what the script takes with all knobs turned. What they save is the difference to none.",
        ),
        Hint(
            part_is("extra", of_pairs(lambda none, a, b, ab: none - ab)),
            "This is what both of a pair save together. The extra is that, less what each of them saves alone.",
        ),
        Hint(
            part_is("extra", of_pairs(lambda none, a, b, ab: ab - a - b + none)),
            "The sign is wrong: extra is positive if two knobs save more together than the sum of what each saves "
            "alone.",
        ),
        Hint(
            part_is("extra", of_pairs(lambda none, a, b, ab: none - ab - max(none - a, none - b))),
            "Both were compared with the better of the two. The extra is beyond what *both* save alone, added up.",
        ),
        Hint(
            either(names_with(lambda run: 0.0), part_is("names", names_by_share_of_both)),
            "An extra of at most 1 % of run(set()), of what the script without knobs takes, counts as none. (Not of "
            "what the two save.)",
        ),
        Hint(
            part_is("names", swapped),
            'Two knobs "help" each other if they save more together than alone, and "overlap" if they save less.',
        ),
        Hint(
            lambda run: bool(set(run.got["names"].values()) - set(NAMES)),
            'The names are "help", "overlap" and "independent", letter by letter.',
        ),
        Hint(
            repeats,
            "The numbers are right, but runs were made again that had been made before, and each run costs seconds. "
            "Keep what a set of knobs came to, in a dict.",
        ),
        Hint(
            all_subsets,
            "The numbers are right, but more runs were made than they need: no knob, each alone, each pair, each left "
            "out, and all.",
        ),
    ),
)
