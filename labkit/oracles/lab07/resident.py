"""Lab 07: how fast a loop is whose images all lie on the device, and from which epoch on that pays."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count, pairwise

import torch

from labkit.exercises.lab07.cache import Pictures
from labkit.exercises.lab07.slow_loop import MS, PIXELS, WIDTH, trained
from labkit.oracles.hints import once
from labkit.oracles.lab09.logs import host_waits
from labkit.simdevice import Command, from_plain
from labkit.spec import CaseRun

MOST_TIME = 1.1
"""Times what a loop takes that copies everything first."""
CLOSE = 1e-4
SMALL_BYTES = 1024
"""Losses, and what else is kept of each step."""


def total_of(run: CaseRun[Pictures], scale: float = 255.0) -> float:
    """The sum of all losses, without any device."""
    weight, total = run.tree["weight"].clone(), 0.0
    for _ in range(run.case.n_epochs):
        for batch in run.tree["train"].split(run.case.batch_size):
            total += trained(weight, batch / scale).item()
    return total


def right_total(run: CaseRun[Pictures]) -> str | None:
    got, wanted = run.got["total"], total_of(run)
    if isinstance(got, torch.Tensor) and got.numel() == 1:
        got = got.item()
    if isinstance(got, int | float) and math.isclose(got, wanted, rel_tol=CLOSE):
        return None
    shown = f"{got:.6g}" if isinstance(got, int | float) else repr(got)[:60]
    return f"train_resident returns {shown}; the losses add up to {wanted:.6g}"


@once
def commands(run: CaseRun[Pictures]) -> tuple[Command, ...]:
    return from_plain(run.got["commands"])


def copied_bytes(run: CaseRun[Pictures]) -> int:
    """To the device, but for the model's weight."""
    copies = [one.nbytes for one in commands(run) if one.kind == "copy" and one.place == "device"]
    return sum(copies) - 4 * PIXELS * WIDTH


def waits_in_every_step(run: CaseRun[Pictures]) -> bool:
    n_steps = run.case.n_epochs * math.ceil(run.case.n_train / run.case.batch_size)
    return len(host_waits(commands(run))) >= n_steps


def copies_once(run: CaseRun[Pictures]) -> str | None:
    copied, wanted = copied_bytes(run), run.tree["train"].numel()
    if copied <= wanted:
        return None
    return f"train_resident copies {copied:,} bytes of images in {run.case.n_epochs} epochs; all images are {wanted:,}"


@once
def staying_bytes(run: CaseRun[Pictures]) -> int:
    """What lies on the device during one step and still does during the next one: the least of all epochs but the
    first, in which images may still arrive.
    """
    live: dict[int, int] = {}
    during: list[dict[int, int]] = []
    for one in commands(run):
        if one.kind == "alloc" and one.place == "device":
            live[one.block] = one.nbytes
        elif one.kind == "free":
            live.pop(one.block, None)
        elif one.kind == "kernel" and one.flops:
            during.append(dict(live))
    n_steps = math.ceil(run.case.n_train / run.case.batch_size)
    later = during[n_steps:]
    return min(sum(now[block] for block in now.keys() & then.keys()) for then, now in pairwise(later))


def stays_bytes(run: CaseRun[Pictures]) -> str | None:
    """The images as bytes, the weight, a batch as numbers, and small things."""
    case = run.case
    most = run.tree["train"].numel() + 4 * PIXELS * WIDTH + case.loop.float_bytes + SMALL_BYTES
    if staying_bytes(run) <= most:
        return None
    return f"from step to step {staying_bytes(run):,} bytes stay on the device; {most:,} are enough"


def best_s(run: CaseRun[Pictures]) -> float:
    """All copies first; then the slower of host and device decides about every step."""
    loop = run.case.loop
    copies_s = loop.copy_ms * MS * (4 * PIXELS * WIDTH + run.tree["train"].numel()) / loop.float_bytes
    n_steps = run.case.n_epochs * math.ceil(loop.n / loop.batch_size)
    return copies_s + loop.python_ms * MS + n_steps * max(loop.python_ms, loop.step_ms) * MS


def in_time(run: CaseRun[Pictures]) -> str | None:
    got, best = run.got["seconds"], best_s(run)
    if got <= MOST_TIME * best:
        return None
    return f"train_resident takes {1e3 * got:.0f} ms; {1e3 * best:.0f} ms are enough"


def true_plan(plan: list[int]) -> int | None:
    """The first epoch at whose end the fill and e resident epochs have taken less time than e epochs of the loader."""
    fill_ms, resident_ms, loader_ms, data_bytes, free_bytes = plan
    if free_bytes < data_bytes or loader_ms <= resident_ms:
        return None
    return next(epoch for epoch in count(1) if fill_ms + epoch * resident_ms < epoch * loader_ms)


def right_plans(run: CaseRun[Pictures]) -> str | None:
    for plan, got in zip(run.tree["plans"], run.got["plans"], strict=True):
        if got != true_plan(plan):
            return f"pays_from({', '.join(map(str, plan))}) is {got!r}, and should be {true_plan(plan)!r}"
    return None


def plans_as(mistake: Callable[[list[int]], object]) -> Callable[[CaseRun[Pictures]], bool]:
    """A diagnosis: all plans are what a mistake makes of them."""
    return lambda run: run.got["plans"] == [mistake(plan) for plan in run.tree["plans"]]


def rounded_up(plan: list[int]) -> int | None:
    return None if true_plan(plan) is None else -(-plan[0] // (plan[2] - plan[1]))


def rounded_down(plan: list[int]) -> int | None:
    return None if true_plan(plan) is None else plan[0] // (plan[2] - plan[1])


def negative(plan: list[int]) -> int | None:
    """Without a look at the sign of what an epoch gains. None of the plans divides by 0, or the answer raises."""
    gain_ms = plan[2] - plan[1]
    return plan[0] // gain_ms + 1 if gain_ms and plan[3] <= plan[4] else None


def refuses_the_full(plan: list[int]) -> int | None:
    """Data that take just the free memory are not taken in."""
    return None if plan[3] == plan[4] else true_plan(plan)


def forgets_memory(plan: list[int]) -> int | None:
    return true_plan([*plan[:3], 0, 0])
