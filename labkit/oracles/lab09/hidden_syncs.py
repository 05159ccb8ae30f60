"""Lab 09: what is true of a training loop that never waits, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab09.hidden_syncs import IGNORED, MACHINE, Loop
from labkit.oracles.hints import once
from labkit.oracles.lab05.programs import Program, program
from labkit.oracles.lab09.logs import host_waits, own_bounds, own_commands
from labkit.simdevice import Command, from_plain
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
TOO_MUCH = 1e30
"""No mean of finite losses comes near it; float32's largest number in the place of an infinity does."""
FETCHES = {
    "_local_scalar_dense": ".item() or the like",
    "tolist": "tolist()",
    "index": "an index by a mask",
    "nonzero": "nonzero",
    "masked_select": "masked_select",
    "equal": "torch.equal",
    "": "synchronize",
}


def reference(
    tree: dict, lr: float, adds_up: bool = False, over_all_rows: bool = False
) -> tuple[float, float, int, torch.Tensor]:
    """Mean loss, accuracy, skipped steps and the weight, by the plain loop on the host.

    adds_up: with the mistake that a step goes along the sum of all gradients so far; over_all_rows: with the one that
    the loss is divided by all rows, and not by those whose label counts.
    """
    weight = tree["weight"].clone().requires_grad_()
    sum_of_grads = torch.zeros_like(weight)
    losses, n_right, n_labels, n_skipped = [], 0, 0, 0
    for x, y in zip(tree["xs"], tree["ys"], strict=True):
        logits = F.linear(x, weight)
        loss = F.cross_entropy(logits, y, ignore_index=IGNORED, reduction="sum" if over_all_rows else "mean")
        loss = loss / len(y) if over_all_rows else loss
        if not math.isfinite(loss.item()):
            n_skipped += 1
            continue
        losses.append(loss.item())
        counts = y != IGNORED
        n_right += int((logits.argmax(-1) == y)[counts].sum())
        n_labels += int(counts.sum())
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            sum_of_grads += grad
            weight -= lr * (sum_of_grads if adds_up else grad)
    return sum(losses) / len(losses), n_right / n_labels, n_skipped, weight.detach()


@once
def program_of(run: CaseRun[Loop]) -> Program:
    return program(run.got, MACHINE)


def forwards(run: CaseRun[Loop]) -> list[int]:
    """Where in the list of commands a matrix product reads the weight, which is the first memory of the device."""
    commands = from_plain(run.got["commands"])
    weight = next(one.block for one in commands if one.kind == "alloc" and one.place == "device")
    span = range(*own_bounds(run.got))
    return [at for at in span if commands[at].kind == "kernel" and commands[at].flops and weight in commands[at].reads]


def waits(run: CaseRun[Loop]) -> list[Command]:
    """Of the host, before the last step's forward pass is launched."""
    return host_waits(own_commands(run.got, until=max(forwards(run), default=None)))


def kinds_of_waits(run: CaseRun[Loop]) -> Counter[str]:
    return Counter(FETCHES.get(one.name, one.name or "synchronize") for one in waits(run))


def right_metrics(run: CaseRun) -> str | None:
    got, (loss, accuracy, n_skipped, _) = run.got["metrics"], reference(run.tree, run.case.lr)
    if type(got) is not list or len(got) != 3 or any(type(value) not in (int, float) for value in got):
        return "train should return three Python numbers: the mean loss, the accuracy and the number of skipped steps"
    wanted = {"mean loss": loss, "accuracy": accuracy, "number of skipped steps": n_skipped}
    for (name, true), value in zip(wanted.items(), got, strict=True):
        if not math.isclose(value, true, rel_tol=1e-4, abs_tol=1e-5):
            return f"the {name} is {true:.5g}, and {value:.5g} was returned"
    return None


def right_weight(run: CaseRun) -> str | None:
    found = compare(reference(run.tree, run.case.lr)[3], run.got["weight"], CLOSE)
    return None if found is None else f"wrong weight at the end: expected {found.expected}, got {found.got}"


def trained_on_the_device(run: CaseRun) -> str | None:
    n_forwards = len(forwards(run))
    if n_forwards >= run.case.n_steps - len(skipped_in(run.case)):
        return None
    return f"the device saw {n_forwards} forward passes in {run.case.n_steps} steps"


def no_races(run: CaseRun) -> str | None:
    races = program_of(run).races
    return f"{len(races)} missing wait{'s' * (len(races) > 1)}; the first: {races[0]}" if races else None


def never_waits(run: CaseRun) -> str | None:
    found = kinds_of_waits(run)
    if not found:
        return None
    total, listed = found.total(), ", ".join(f"{n} x {name}" for name, n in found.most_common(3))
    return f"the host waits {total} time{'s' * (total > 1)} before the last step: {listed}"


def divides_by_all_rows(run: CaseRun[Loop]) -> object:
    wrong = reference(run.tree, run.case.lr, over_all_rows=True)[3]
    if compare(reference(run.tree, run.case.lr)[3], wrong, CLOSE) is None:
        return CANNOT_TELL
    return compare(wrong, run.got["weight"], CLOSE) is None


def metric(at: int, wrong: Callable[[Loop, dict, float], bool]):
    """Whether this metric is a number, and wrong in this way."""
    return lambda run: wrong(run, float(run.got["metrics"][at]))


def close(value: float, to: float) -> bool:
    return math.isclose(value, to, rel_tol=1e-4)


def skipped_in(case: Loop) -> set[int]:
    return {*case.empty, *case.overflow, *case.infinite}


def n_labels_of(run: CaseRun[Loop]) -> tuple[int, int]:
    """Labels that count, and all of them, in the steps that are not skipped."""
    kept = [y for step, y in enumerate(run.tree["ys"]) if step not in skipped_in(run.case)]
    return sum(int((y != IGNORED).sum()) for y in kept), sum(y.numel() for y in kept)


def mean_over_all_steps(run: CaseRun[Loop], value: float) -> bool:
    loss, _, n_skipped, _ = reference(run.tree, run.case.lr)
    return n_skipped > 0 and close(value * run.case.n_steps, loss * (run.case.n_steps - n_skipped))


def over_ignored_too(run: CaseRun[Loop], value: float) -> bool:
    right = reference(run.tree, run.case.lr)[1]
    n_labels, n_rows = n_labels_of(run)
    whole = run.case.n_steps * run.case.n_rows
    return right > 0 and any(close(value * n, right * n_labels) for n in {n_rows, whole} if n != n_labels)


def counts_skipped_steps(run: CaseRun[Loop], value: float) -> bool:
    """Right answers or labels of all steps, an overflowing one's too, in the place of those of the others."""
    right = reference(run.tree, run.case.lr)[1]
    if close(value, right):
        return False
    n_labels = n_labels_of(run)[0]
    n_all = sum(int((y != IGNORED).sum()) for y in run.tree["ys"])
    most = n_all - n_labels + 1e-3
    divided_by_all = n_all > n_labels and 0 <= value * n_all - right * n_labels <= most
    return divided_by_all or 1 - 1e-3 <= (value - right) * n_labels <= most


def waits_by(*names: str):
    return lambda run: any(one.name in names and one.kind == "sync" for one in waits(run))


def blocking_copy(to_device: bool):
    return lambda run: any(
        one.kind == "copy" and one.blocking and (one.place == "device") == to_device for one in waits(run)
    )


def from_pageable(run: CaseRun[Loop]) -> bool:
    """Whether the host waits for a copy from memory that nobody has pinned: it has no block of its own."""
    return any(one.kind == "copy" and one.place == "device" and not one.reads for one in waits(run))


def from_pinned(commands: Sequence[Command]) -> bool:
    """Whether a copy to the device among them reads pinned memory."""
    return any(one.kind == "copy" and one.place == "device" and one.reads for one in commands)


def nan_in_the_weight(run: CaseRun[Loop]) -> object:
    """An overflow makes the gradient NaN; a step without labels or with one infinite loss leaves it finite."""
    is_nan = bool(run.got["weight"].isnan().any())
    return is_nan if is_nan or run.case.overflow else CANNOT_TELL


HIDDEN_SYNCS = Oracle(
    id="09-hidden-syncs",
    call=lambda run: (
        f"train(device, weight of shape ({run.case.n_classes}, {run.case.width}), {run.case.n_steps} batches of "
        f"{run.case.n_rows} rows, lr={run.case.lr:g}); steps without labels: {list(run.case.empty)}, with a loss that "
        f"is not finite: {[*run.case.overflow, *run.case.infinite]}"
    ),
    axis="shapes, and which steps have no label or a loss that is not finite",
    judge=(inputs_untouched, right_weight, right_metrics, trained_on_the_device, no_races, never_waits),
    diagnose=(
        Hint(
            nan_in_the_weight,
            "NaN reached the weight. A factor cannot take it out, and a step with labels can have it too: choose with "
            "torch.where(loss.isfinite(), grad, 0.0).",
        ),
        Hint(
            lambda run: right_weight(run) is not None and math.isinf(run.got["metrics"][0]),
            "A loss of inf is not finite either, though nothing is NaN yet: decide by loss.isfinite(), on the device.",
        ),
        Hint(
            lambda run: torch.equal(run.got["weight"], run.tree["weight"]),
            "The weight is as it was: `weight = ...` makes another tensor. Change it in place, `weight -= ...`.",
        ),
        Hint(
            lambda run: compare(reference(run.tree, run.case.lr, adds_up=True)[3], run.got["weight"], CLOSE) is None,
            "Gradients add up in weight.grad: take torch.autograd.grad, or set weight.grad to None in every step.",
        ),
        Hint(
            divides_by_all_rows,
            "The loss of a step is a mean over the labels that count, and here its sum is divided by all rows. "
            "cross_entropy with ignore_index=-100 divides by the right number itself.",
        ),
        Hint(
            lambda run: right_weight(run) is not None,
            "Each step is weight -= lr * grad, in place and without recording it; a step whose loss is not finite "
            "leaves the weight as it is.",
        ),
        Hint(
            lambda run: (
                len(run.got["metrics"]) == 3 and any(isinstance(value, torch.Tensor) for value in run.got["metrics"])
            ),
            "Tensors came back. After the loop a wait does no harm: fetch the three numbers there with .item().",
        ),
        Hint(
            metric(0, lambda run, value: not abs(value) < TOO_MUCH),
            "A loss that is not finite got into the sum, where it stays. Add torch.where(finite, loss, 0.0).",
        ),
        Hint(
            metric(0, mean_over_all_steps),
            "The mean is over the steps that were not skipped: count those, on the device too.",
        ),
        Hint(
            metric(1, over_ignored_too),
            "The accuracy is over the labels that count: leave those of -100 out of the number that you divide by.",
        ),
        Hint(
            metric(1, counts_skipped_steps),
            "A skipped step counts nowhere: neither its right answers nor its labels are in the accuracy.",
        ),
        Hint(
            metric(2, lambda run, value: 0 < value == run.case.n_steps - reference(run.tree, run.case.lr)[2]),
            "That is the number of steps that count. The third number is that of the skipped ones: "
            "len(batches) less these.",
        ),
        Hint(
            lambda run: right_metrics(run) is not None,
            "Keep running sums over the steps that are not skipped: of losses, of steps, of right answers, of labels "
            "that count. Divide at the end.",
        ),
        Hint(
            lambda run: trained_on_the_device(run) is not None,
            "Copy each batch to `device` and run F.linear(x, weight) there.",
        ),
        Hint(
            lambda run: bool(program_of(run).races),
            "A non_blocking copy to the host is read before it has arrived. Keep the sums on the device and fetch them "
            "after the loop.",
        ),
        Hint(
            waits_by("index", "nonzero", "masked_select"),
            "How many elements a mask selects is a value that only the device knows, so the host waits for it. Leave "
            "them in: ignore_index=-100 in the loss, `&` and .sum() for the counts.",
        ),
        Hint(
            waits_by("_local_scalar_dense", "tolist", "equal"),
            ".item(), float(...), print(...) and an `if` on a tensor of the device fetch a value. Add up on the "
            "device, choose with torch.where, and fetch after the loop.",
        ),
        Hint(
            blocking_copy(to_device=False),
            ".cpu() and .to('cpu') wait for the value as .item() does: add up on the device, fetch after the loop.",
        ),
        Hint(
            lambda run: from_pageable(run) and from_pinned(own_commands(run.got)),
            "Not all that is copied is pinned: x and y need it both. torch.tensor(...) on the device is such a copy "
            "too; torch.zeros(..., device=device) is none.",
        ),
        Hint(
            from_pageable,
            "The host waits for each copy of a batch. x.pin_memory().to(device, non_blocking=True) returns at once.",
        ),
        Hint(
            lambda run: from_pinned(waits(run)),
            "The batches are pinned, and still the host waits for every copy: give `to` non_blocking=True.",
        ),
        Hint(
            lambda run: bool(waits(run)),
            "Something makes the host wait: before the loop is over, ask for no value and no size that only the device "
            "knows.",
        ),
    ),
)
