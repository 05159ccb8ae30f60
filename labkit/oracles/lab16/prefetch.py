"""Lab 16: what is true of an order of commands: it is a training step, and nearly as short as any."""

from __future__ import annotations

from itertools import pairwise

from labkit.clock import makespan
from labkit.exercises.lab16.prefetch import BadOrder, Blocks, Command, commands_of, timeline
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab16.prefetch_best import best_ms
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

NEAR = 0.02
"""So much longer than the shortest step one may take."""


@once
def bad_order(run: CaseRun[Blocks]) -> BadOrder | None:
    try:
        timeline(run.got["order"], run.case)
    except BadOrder as error:
        return error
    return None


def is_a_step(run: CaseRun[Blocks]) -> str | None:
    """Every layer is whole when it is used, and never more than two are."""
    error = bad_order(run)
    return str(error) if error else None


@once
def taken_ms(run: CaseRun[Blocks]) -> float:
    return 1e3 * makespan(timeline(run.got["order"], run.case))


def is_short(run: CaseRun[Blocks]) -> str | None:
    """The step takes at most two percent longer than the best order."""
    best, taken = best_ms(run.case), taken_ms(run)
    if taken > (1 + NEAR) * best + 1e-9:
        return f"a step takes {taken:.1f} ms in this order, and {best:.1f} ms in the best one (2 % more are allowed)"
    return None


@once
def listed(run: CaseRun[Blocks]) -> list[Command]:
    """The commands that take time."""
    return [command for command in commands_of(run.got["order"], run.case) if command[0] != "free"]


def late_gathers(run: CaseRun[Blocks], kind: str) -> bool:
    """Between each gather for a pass of this kind and that pass there is no other pass; there are two at least."""
    commands, late = listed(run), []
    for place, (what, layer) in enumerate(commands):
        if what == "gather":
            ahead = [command for command in commands[place:] if command[0] in ("forward", "backward")]
            own = next(command for command in ahead if command[1] == layer)
            if own[0] == kind:
                late.append(ahead[0] == own)
    return len(late) > 1 and all(late)


def gathers_are_late(*kinds: str) -> Condition:
    """For passes of these kinds every gather is late. Of one layer nobody can tell: there is no pass in between."""
    return lambda run: CANNOT_TELL if run.case.n_layers == 1 else all(late_gathers(run, kind) for kind in kinds)


def too_many_gathers(run: CaseRun[Blocks]) -> bool:
    n_gathers = sum(kind == "gather" for kind, _ in listed(run))
    return n_gathers > max(2 * run.case.n_layers - 2, 1)


def reduces_before_gathers(run: CaseRun[Blocks]) -> bool:
    commands = listed(run)
    return any(before[0] == "reduce" and after[0] == "gather" for before, after in pairwise(commands))


def reduces_at_the_end(run: CaseRun[Blocks]) -> bool:
    commands, n = listed(run), run.case.n_layers
    return n > 1 and all(kind == "reduce" for kind, _ in commands[-n:])


def kind_is(*kinds: str) -> Condition:
    """The list is no training step, for this reason."""
    return lambda run: (error := bad_order(run)) is not None and error.kind in kinds


def in_words(run: CaseRun[Blocks]) -> str:
    case = run.case
    return (
        f"fsdp_order(n_layers={case.n_layers}) where gather, forward, backward and reduce take {case.gather_ms:g}, "
        f"{case.forward_ms:g}, {case.backward_ms:g} and {case.reduce_ms:g} ms"
    )


PREFETCH = Oracle(
    id="16-prefetch",
    call=in_words,
    judge=(is_a_step, is_short),
    axis="other numbers of layers, and a network that is slower or faster than the GPU",
    diagnose=(
        Hint(
            kind_is("layer"),
            "There is no such layer: a model of one layer has no second one to gather in advance, and below layer 0 "
            "there is none.",
        ),
        Hint(
            kind_is("crowded"),
            "Only two layers may be whole: list the free of a layer whose pass is done before you gather a third one. "
            "A layer that is still whole needs no second gather.",
        ),
        Hint(
            kind_is("freed early"),
            "A layer was freed before its own forward pass: list the pass first, then the free.",
        ),
        Hint(
            kind_is("not gathered"),
            "A forward pass needs its layer whole: list a gather of every layer before its forward pass.",
        ),
        Hint(
            kind_is("not whole"),
            "A pass needs its layer whole. After its forward pass a layer was freed, so it is gathered again for the "
            "backward pass; only what was kept since then is not.",
        ),
        Hint(
            kind_is("passes"),
            "The passes have one order: forward through layers 0 to n-1, then backward through n-1 to 0.",
        ),
        Hint(
            kind_is("unfinished"),
            "Every layer's gradient is reduced once, and in the end no layer is whole.",
        ),
        Hint(
            gathers_are_late("forward", "backward"),
            "Each gather stands right before the pass that waits for it, so network and GPU take turns. List the "
            "gather of the next layer before the pass of this one.",
        ),
        Hint(
            gathers_are_late("backward"),
            "The forward gathers are hidden, the backward ones are not: there, too, the gather of the next layer "
            "(which is the one below) goes before the pass of this one.",
        ),
        Hint(
            too_many_gathers,
            "A layer was freed that the backward pass needs next. The last two layers can stay whole from their "
            "forward pass to their backward pass: two gathers fewer.",
        ),
        Hint(
            reduces_before_gathers,
            "The network takes its work in your order. A pass waits for the gather, and nothing waits for the "
            "reduction: list the gather first.",
        ),
        Hint(
            reduces_at_the_end,
            "The reductions come last, when the GPU has nothing left to do. List each after the gather that follows "
            "its backward pass, so that it travels during the next one.",
        ),
    ),
)
