"""Lab 15: what is true of accumulated gradients: one process's on the large batch, for one round of communication."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.no_sync import MicroBatches, network
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
"""float32 sums over rows and ranks in another order."""


def gradients(run: CaseRun[MicroBatches], ranks: Sequence[int], weigh: Any = None) -> list[list[Tensor]]:
    """The gradient of each step, of one process that has the rows of these ranks.

    weigh: (number of rows of a micro-batch, case) -> what its mean loss is multiplied with; the rank's share without.
    """
    weigh = weigh or (lambda n_rows, case: n_rows / sum(case.rows))
    steps = []
    for step in range(run.case.n_steps):
        model = network(run.case, run.tree["weights"])
        for rank in ranks:
            part = run.tree["ranks"][rank]
            for x, y in zip(part["x"][step], part["y"][step], strict=True):
                (F.mse_loss(model(x), y) * weigh(len(x), run.case) / len(ranks)).backward()
        steps.append([parameter.grad for parameter in model.parameters()])
    return steps


def large_batch(run: CaseRun[MicroBatches]) -> dict[str, Any]:
    """All rows in one batch, and a switch that is off inside and as before outside."""
    case = run.case
    steps = []
    for step in range(case.n_steps):
        model = network(case, run.tree["weights"])
        x, y = (torch.cat([piece for part in run.tree["ranks"] for piece in part[name][step]]) for name in "xy")
        F.mse_loss(model(x), y).backward()
        steps.append([parameter.grad for parameter in model.parameters()])
    n_micro = len(case.rows)
    one = {
        "grads": steps,
        "most_open": 1,
        "talked": [n_micro * (step + 1) for step in range(case.n_steps)],
        "flags": [False, False, False, True, True],
        "error_came_out": True,
    }
    return {"ranks": [one] * case.n_ranks}


def weighed(weigh: Any) -> Any:
    """A diagnosis: the micro-batches' losses were multiplied with this, which gives other gradients."""
    return lambda run: not right_gradients(run) and came_from(gradients(run, range(run.case.n_ranks), weigh), run.got)


def came_from(steps: list[list[Tensor]], got: dict) -> bool:
    """Every rank has these gradients."""
    return all(compare(steps, one["grads"], CLOSE) is None for one in got["ranks"])


def right_gradients(run: CaseRun[MicroBatches]) -> bool:
    return came_from(run.expected["ranks"][0]["grads"], run.got)


def a_multiple(run: CaseRun[MicroBatches]) -> bool:
    """All gradients are wrong by one factor."""
    right = flat(run.expected["ranks"][0]["grads"])
    found = flat(first(run.got)["grads"])
    factor = float(found @ right / (right @ right))
    return abs(factor - 1) > 1e-3 and torch.allclose(found, factor * right, atol=1e-4, rtol=1e-3)


def flat(steps: list[list[Tensor]]) -> Tensor:
    """All gradients of all steps behind one another."""
    return torch.cat([grad.reshape(-1) for grads in steps for grad in grads])


def last_only(run: CaseRun[MicroBatches]) -> bool:
    """Every rank has the mean of the last micro-batches' gradients, weighed with their rows."""
    if len(run.case.rows) < 2:
        return False
    ends = [{"x": [xs[-1:] for xs in part["x"]], "y": [ys[-1:] for ys in part["y"]]} for part in run.tree["ranks"]]
    return came_from(gradients(replace(run, tree={**run.tree, "ranks": ends}), range(run.case.n_ranks)), run.got)


def alone(run: CaseRun[MicroBatches]) -> bool:
    """Nothing travelled, and in the last step each rank has the gradient of its own rows."""
    return not any(one["talked"] for one in run.got["ranks"]) and all(
        compare(gradients(run, [rank])[-1], one["grads"][-1], CLOSE) is None
        for rank, one in enumerate(run.got["ranks"])
    )


def in_words(run: Observation) -> str:
    """What is accumulated in a case."""
    case = run.case
    steps = f"{case.n_steps} step{'s' * (case.n_steps != 1)}"
    ranks = f"{case.n_ranks} rank{'s' * (case.n_ranks != 1)}"
    rows = ", ".join(map(str, case.rows))
    return f"accumulate(ddp, batches, loss_of) in {steps} on {ranks}, micro-batches of {rows} rows"


def first(got: dict) -> dict[str, Any]:
    return got["ranks"][0]


NO_SYNC = Oracle(
    id="15-no-sync",
    call=in_words,
    places={
        "grads.*.*": ".grad of parameter {1} after step {0}",
        "talked": "list of micro-batches whose backward pass sent gradients",
        "talked.*": "micro-batch whose backward pass sent gradients",
        "flags.0": "require_backward_grad_sync inside of no_sync",
        "flags.1": "require_backward_grad_sync inside of a second no_sync",
        "flags.2": "require_backward_grad_sync after the inner of two no_sync",
        "flags.3": "require_backward_grad_sync after no_sync",
        "flags.4": "require_backward_grad_sync after a no_sync that an error has left",
        "error_came_out": "answer to whether an error passes through no_sync",
        "most_open": "number of forward passes that wait for their backward pass at once",
    },
    expect=large_batch,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "collectives",
            lambda run: run.case.n_steps * len(run.tree["weights"]),
            "Gradients were sent in more than one micro-step. Only the last one of a step sends.",
        ),
        Budget(
            "bytes_sent",
            # A ring lets a rank send 2 (n-1) chunks of a gradient, of ⌈elements / n⌉ float32 each.
            lambda run: (
                run.case.n_steps
                * sum(
                    2 * (run.case.n_ranks - 1) * 4 * math.ceil(weight.numel() / run.case.n_ranks)
                    for weight in run.tree["weights"]
                )
                + 4
            ),
            "Gradients were sent in more than one micro-step. Only the last one of a step sends.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: any(grad is None for grads in first(run.got)["grads"] for grad in grads),
            "`.grad` is empty after accumulate, which leaves the gradient there: clearing it is the training loop's.",
        ),
        Hint(
            lambda run: first(run.got)["most_open"] > 1,
            "Several forward passes were open at once, so the activations of all micro-batches were held. Call "
            "backward for each micro-batch before the next one goes forward.",
        ),
        Hint(
            lambda run: (
                right_gradients(run)
                and len(run.case.rows) > 1
                and first(run.got)["talked"] == list(range(1, run.case.n_steps + 1))
            ),
            "There is one forward pass a step for all rows, which do not fit into memory together. Take one "
            "micro-batch after the other.",
        ),
        Hint(
            lambda run: right_gradients(run) and len(first(run.got)["talked"]) > run.case.n_steps,
            "The values are right, but gradients were sent in more than one micro-step. The wrapper decides in its "
            "forward pass, so forward and backward both belong into no_sync.",
        ),
        Hint(
            lambda run: first(run.got)["flags"][4] is False and first(run.got)["flags"][3] is True,
            "After an error inside, the switch stayed off, and no gradient would ever travel again: put it back in a "
            "`finally`.",
        ),
        Hint(
            lambda run: first(run.got)["flags"][:3] == [False, False, True],
            "The inner one of two contexts switched the sending on while the outer was still open: put back what was "
            "there before, not True.",
        ),
        Hint(
            lambda run: first(run.got)["flags"][:2] == [True, True],
            "no_sync does not switch anything off: set ddp.require_backward_grad_sync to False inside.",
        ),
        Hint(
            lambda run: any(flag is not False for flag in first(run.got)["flags"][:2]),
            "Inside the context, and inside of a second one in it, the attribute has to be False: set it, whatever it "
            "was.",
        ),
        Hint(
            lambda run: first(run.got)["error_came_out"] is not True,
            "An error inside the context was swallowed. Let it pass: no `except`, no `return` in the `finally`, "
            "nothing true from `__exit__`.",
        ),
        Hint(
            lambda run: first(run.got)["flags"][3] is not True,
            "The switch stays off after the context, so no gradient ever travels again: put back what was "
            "there before.",
        ),
        Hint(
            alone,
            "Nothing travelled, and every rank has the gradient of its own rows. The last micro-step belongs outside "
            "of no_sync.",
        ),
        Hint(
            weighed(lambda n_rows, case: 1.0),
            "The micro-batches' mean losses were added up, not averaged: multiply each with its share of the rows.",
        ),
        Hint(
            weighed(lambda n_rows, case: 1 / len(case.rows)),
            "A mean of means is the mean only of equal parts. A micro-batch counts by its rows: len(x) / all rows.",
        ),
        Hint(
            weighed(lambda n_rows, case: n_rows),
            "The losses were weighed with their rows and never divided by all rows of the step.",
        ),
        Hint(
            weighed(lambda n_rows, case: n_rows / sum(case.rows) / case.n_ranks),
            "The gradients are divided by the number of ranks, too. The wrapper averages over the ranks already.",
        ),
        Hint(
            last_only,
            "Only the last micro-batch's gradient is there. `.grad` adds up what backward brings: clear it before the "
            "first micro-batch or not at all.",
        ),
        Hint(
            a_multiple,
            "The gradients are a multiple of the right ones: the shares of the micro-batches do not add up to 1. Each "
            "counts len(x) / all rows of the rank's step.",
        ),
        Hint(
            lambda run: first(run.got)["talked"] and first(run.got)["talked"][0] < len(run.case.rows),
            "Gradients were sent before the last micro-step, and what was added later never was. Only the last one "
            "sends, and it sends all that has been accumulated.",
        ),
    ),
)
