"""Lab 17: what is true of blame: what was planted. Of hidden runs only the grader knows it (`grading.hidden`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.compare import inputs_untouched
from labkit.exercises.lab17.compose_bugs import CLIPPED, REPLICAS, TIES, Runs
from labkit.exercises.lab17.planted import EVERYWHERE, KINDS, NONE
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle

UNREDUCED = "backward not reduced"

Pair = tuple[dict[str, str], dict[str, str]]
"""(what was planted, what was blamed), each with its kind and its parameter."""


def expected(run: CaseRun[Runs]) -> dict[str, dict[str, str]]:
    """What the case says. ValueError where it says nothing."""
    if not run.case.bugs:
        raise ValueError("what is planted in these runs is not known here")
    return {f"run {n}": {"kind": kind, "parameter": at} for n, (kind, at) in enumerate(run.case.bugs, 1)}


def wrong(run: CaseRun[Runs]) -> list[Pair]:
    """The runs in which something else was blamed."""
    pairs = [(planted, run.got[name]) for name, planted in run.expected.items()]
    return [(planted, blamed) for planted, blamed in pairs if planted != blamed]


def all_wrong(holds: Callable[[dict[str, str], dict[str, str]], bool]) -> Callable[[CaseRun[Runs]], Any]:
    """A hint's condition: this is so in every run in which something else was blamed."""
    return lambda run: bool(wrong(run)) and all(holds(planted, blamed) for planted, blamed in wrong(run))


def kinds(planted: str, blamed: str = "") -> Callable[[dict[str, str], dict[str, str]], bool]:
    """One kind was planted, and another blamed; any other without its name."""
    return lambda a, b: a["kind"] == planted and a["kind"] != b["kind"] and b["kind"] in (blamed or b["kind"],)


def every_difference_a_missing_sum(run: CaseRun[Runs]) -> bool:
    """Wrong in several kinds of runs, and always the same thing was said."""
    said = {blamed["kind"] for _, blamed in wrong(run)}
    return said == {"not summed"} and len({planted["kind"] for planted, _ in wrong(run)}) > 1


def blamed_without_a_bug(run: CaseRun[Runs]) -> Any:
    """Something was blamed in a run without a bug. CANNOT_TELL where each run has one."""
    if all(planted["kind"] != NONE for planted in run.expected.values()):
        return CANNOT_TELL
    return any(planted["kind"] == NONE for planted, _ in wrong(run))


def never_seen_as(blamed: dict[str, str]) -> bool:
    """Whether what was blamed is no kind at all."""
    return blamed["kind"] not in (*KINDS, NONE)


def usual_kind(parameter: str) -> str:
    """The kind that a name suggests."""
    if parameter.endswith("bias"):
        return "on every rank"
    return "not summed" if "norm" in parameter else REPLICAS if parameter.endswith((".k.weight", ".v.weight")) else ""


def is_the_usual_kind(planted: dict[str, str], blamed: dict[str, str]) -> bool:
    """The right parameter, and the kind that its name suggests, which it is not."""
    return planted["parameter"] == blamed["parameter"] and blamed["kind"] == usual_kind(planted["parameter"])


def in_words(run: Observation) -> str:
    case = run.case
    return (
        f"blame(reference_grads, rank_grads, groups) of {len(run.tree['runs'])} runs: {case.data} data x {case.tensor} "
        f"tensor ranks, {case.kv_heads} key and value heads"
    )


DEFINITIONS = {
    "not summed": "If a gradient was not summed, the ranks of a tensor group have different terms of it, and the terms "
    "add up to the reference.",
    REPLICAS: "Where there are fewer key and value heads than ranks, only the ranks with the same head add up to the "
    "reference: those of a tensor group whose references are equal.",
    "on every rank": "A bias that is added on every rank gets its gradient as many times as a tensor group has ranks: "
    "t times the reference.",
    "wrong group": "If a gradient was averaged over all ranks, those of a tensor group have the same gradient, the "
    "mean of what they should have.",
    TIES: "Two names with equal references are one weight. If its gradients were not added, those under the two names "
    "add up to the reference. Blame the first name.",
    "averaged twice": "If the loss is averaged twice, all gradients are the reference divided by the size of a data "
    "group.",
    "wrong world size": "If a sum over the data group is divided by the number of all ranks, all gradients are the "
    "reference divided by the size of a tensor group.",
    CLIPPED: "If each rank clips by the norm of its own gradients, all gradients of a rank are the reference times one "
    "factor, and ranks of a tensor group have different factors.",
    "one seed": "With one dropout seed for all ranks the forward pass itself differs: the gradients of all "
    "parameters, those nearest to the loss too, point in another direction, and no factor mends it.",
    "backward not reduced": "If the backward pass of one all-gather does not add up the gradients of the ranks, all "
    "parameters before that place are wrong, and all after it are right. Blame the last wrong one.",
}

COMPOSE_BUGS = Oracle(
    id="17-compose-bugs",
    expect=expected,
    judge=(inputs_untouched,),
    call=in_words,
    axis="every kind of bug, in an order and at parameters of its own, other numbers of ranks, and runs without a bug",
    unusable={
        "not enough values to unpack": 'blame returns a pair, ("norm.weight", "not summed") say, or None.',
        "too many values to unpack": 'blame returns a pair, ("norm.weight", "not summed") say, or None.',
    },
    diagnose=(
        Hint(
            all_wrong(lambda planted, blamed: blamed["parameter"] in KINDS),
            "The two are exchanged: blame returns the parameter first, and then the kind.",
        ),
        Hint(
            all_wrong(lambda planted, blamed: never_seen_as(blamed)),
            "That is not the name of a kind. Write the names exactly as in the table, letter by letter.",
        ),
        Hint(
            every_difference_a_missing_sum,
            "Not every difference is a missing sum. Before you say so, add up the gradients of the tensor group and "
            "compare the sum with the reference.",
        ),
        Hint(
            all_wrong(lambda planted, blamed: blamed["kind"] == NONE),
            "Nothing was found in a run with a bug. One number for the whole run, such as its loss or the norm of all "
            "gradients, can look right: compare parameter by parameter, on every rank, relative to the size of each.",
        ),
        Hint(
            blamed_without_a_bug,
            "Something was blamed in a run without a bug. There, gradients of the ranks and of one process agree to "
            "about 12 digits, but not to the last bit, because sums are added up in another order.",
        ),
        Hint(
            all_wrong(lambda a, b: a["kind"] == b["kind"] == UNREDUCED),
            "The kind is right. Everything before the mistake is wrong as well, so the parameter to blame is the wrong "
            "one that is nearest to the loss: the last in the order of the dict.",
        ),
        Hint(
            all_wrong(lambda a, b: a["kind"] == b["kind"] == TIES),
            "The kind is right. Of the two names of a tied weight, blame the first.",
        ),
        Hint(
            all_wrong(lambda a, b: a["kind"] == b["kind"] and a["parameter"] == EVERYWHERE),
            'The kind is right. All parameters are wrong, so the parameter to blame is "all".',
        ),
        Hint(
            all_wrong(
                lambda a, b: (
                    kinds("averaged twice", "wrong world size")(a, b)
                    or kinds("wrong world size", "averaged twice")(a, b)
                )
            ),
            "One factor for all parameters and ranks: 1 / (size of a data group) says that the loss was averaged "
            "twice, 1 / (size of a tensor group) that a sum over the data group was divided by the number of all "
            "ranks.",
        ),
        Hint(
            all_wrong(is_the_usual_kind),
            "The parameter is right. The kind is the usual one for a parameter of this name, but these gradients show "
            "another. A bias can lack a sum, and keys and values can be averaged over all ranks: test what the "
            "gradients of a tensor group add up to.",
        ),
        *(Hint(all_wrong(lambda a, b, kind=kind: a["kind"] == kind), text) for kind, text in DEFINITIONS.items()),
        Hint(
            all_wrong(lambda a, b: b["kind"] == UNREDUCED and a["parameter"] not in (EVERYWHERE, NONE)),
            "This is what is left when no other test holds. Here one parameter is wrong, or two, so some test does not "
            "hold that should. Sums and means go over the ranks of a *tensor* group.",
        ),
        *(Hint(all_wrong(lambda a, b, kind=kind: b["kind"] == kind), text) for kind, text in DEFINITIONS.items()),
    ),
)
