"""Lab 09: what is asked, given and run for a training loop that must not wait for the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.simdevice import Machine, SimDevice, as_plain
from labkit.spec import Answer, Case, Exercise, Run

IGNORED = -100
"""The label that does not count, as in F.cross_entropy."""
MACHINE = Machine("the device of the check")
ERRORS = {
    "does not require grad": "nothing here requires a gradient: was `weight` bound anew? A step changes it in place, "
    "`weight -= ...`",
    "a leaf Variable": "autograd would record this change of `weight`: make it under `with torch.no_grad():`",
}
"""In words of this exercise, by what PyTorch's own message contains."""


@dataclass(frozen=True)
class Loop(Case):
    """Steps of a linear classifier.

    ignored_share: the part of the labels that do not count. empty: steps in which none counts, so that the mean loss is
    0/0. overflow: steps whose input holds an infinity. infinite: steps with a label of the last class, which the
    weight rules out by a logit of -inf: their loss is inf, and their gradient is finite.
    """

    n_steps: int = 12
    n_rows: int = 16
    width: int = 8
    n_classes: int = 5
    ignored_share: float = 0.3
    empty: tuple[int, ...] = (4,)
    overflow: tuple[int, ...] = ()
    infinite: tuple[int, ...] = ()
    lr: float = 0.5


def loop_inputs(case: Loop, gen: torch.Generator) -> dict[str, object]:
    """weight: (n_classes, width); xs: (n_rows, width) and ys: (n_rows,) for each step, on the host."""
    xs, ys = [], []
    # Labels that a linear layer can learn, so that losses and accuracy move.
    teacher = torch.randn(case.n_classes, case.width, generator=gen)
    for step in range(case.n_steps):
        x = torch.randn(case.n_rows, case.width, generator=gen)
        if case.infinite:
            x[:, 0] = 1.0
        y = (x @ teacher.T)[:, : case.n_classes - bool(case.infinite)].argmax(-1)
        ignored = torch.rand(case.n_rows, generator=gen) < case.ignored_share
        ignored[0] = False
        y[ignored | torch.tensor(step in case.empty)] = IGNORED
        if step in case.overflow:
            x[0, 0] = torch.inf
        if step in case.infinite:
            y[0] = case.n_classes - 1
        xs.append(x)
        ys.append(y)
    weight = 0.1 * torch.randn(case.n_classes, case.width, generator=gen)
    if case.infinite:
        weight[-1, 0] = -torch.inf
    return {"weight": weight, "xs": xs, "ys": ys}


def drive_loop(ans, case: Loop, tree: dict, stage) -> dict[str, object]:
    """metrics and weight as the answer leaves them. Its commands are those from n_before to n_after."""
    with SimDevice(MACHINE) as sim:
        weight = tree["weight"].to(sim.device).requires_grad_()
        sim.synchronize()
        n_before = len(sim.commands)
        try:
            metrics = ans.train(sim.device, weight, list(zip(tree["xs"], tree["ys"], strict=True)), case.lr)
        except RuntimeError as error:
            words = next((words for part, words in ERRORS.items() if part in str(error)), None)
            if words is None:
                raise
            raise RuntimeError(words).with_traceback(error.__traceback__) from None
        n_after = len(sim.commands)
        sim.synchronize()
        commands = as_plain(sim.commands)
        trained = weight.detach().cpu()
    return {"metrics": metrics, "weight": trained, "commands": commands, "n_before": n_before, "n_after": n_after}


HIDDEN_SYNCS = Exercise(
    id="09-hidden-syncs",
    title="A loop that never waits",
    points=4,
    minutes=35,
    difficulty=2,
    answers=(Answer("train"),),
    public=(
        Loop(),
        Loop(n_steps=9, n_rows=24, empty=(), overflow=(2, 6)),
        Loop(n_steps=10, empty=(0, 9), infinite=(5,), lr=0.2),
    ),
    inputs=loop_inputs,
    drive=drive_loop,
    # The first optimizer of a process loads PyTorch's compiler, seconds on a busy machine.
    run=Run(wall_s=20.0),
)
