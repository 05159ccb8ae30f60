"""Lab 07: how fast a training loop can be that does not wait for its data, and what keeps one waiting."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from labkit.exercises.lab07.sim_loader import PREFETCH_FACTOR
from labkit.exercises.lab07.slow_loop import MS, PIXELS, WIDTH, Images, trained
from labkit.oracles.hints import once
from labkit.oracles.lab09.logs import host_waits
from labkit.simdevice import Command, from_plain
from labkit.spec import CaseRun, Hint, Oracle

MOST_TIME = 1.1
"""Times the best."""
CLOSE = 1e-4


def total_of(run: CaseRun[Images], n_epochs: int | None = None, scale: float = 255.0) -> float:
    """The sum of all losses, without any device."""
    case, weight, total = run.case, run.tree["weight"].clone(), 0.0
    for _ in range(case.n_epochs if n_epochs is None else n_epochs):
        for batch in run.tree["images"].split(case.batch_size):
            total += trained(weight, batch / scale).item()
    return total


@once
def best_s(case_of: CaseRun[Images]) -> float:
    """Workers on all cores that start once; while the host is in Python, the batch is copied as bytes.

    When worker w = i mod W has loaded batch i: ready_i = max(take_{i - W * ahead}, ready_{i - W}) + load.
    """
    case = case_of.case
    copy_s, python_s, step_s = case.copy_ms * MS / 4, case.python_ms * MS, case.step_ms * MS
    n_workers, n_batches = case.n_cores, math.ceil(case.n / case.batch_size)
    host_s = case.copy_ms * MS * PIXELS * WIDTH * 4 / case.float_bytes + case.start_ms * MS
    device_s = host_s
    for _ in range(case.n_epochs):
        begun_s, taken_s, ready_s = host_s, [], []
        for i in range(n_batches):
            part = min(case.batch_size, case.n - i * case.batch_size) / case.batch_size
            told = i - n_workers * PREFETCH_FACTOR
            free_s = ready_s[i - n_workers] if i >= n_workers else begun_s
            told_s = taken_s[told] if told >= 0 else begun_s
            ready_s.append(max(free_s, told_s) + part * case.batch_size * case.load_ms * MS)
            host_s = max(host_s, ready_s[i])
            taken_s.append(host_s)
            copied_s = max(host_s, device_s) + part * copy_s
            host_s += python_s
            device_s = max(host_s, copied_s) + part * step_s
    return max(host_s, device_s)


def right_total(run: CaseRun[Images]) -> str | None:
    """The losses are those of the slow loop."""
    got, wanted = run.got["total"], total_of(run)
    if isinstance(got, torch.Tensor):
        return f"train returns a tensor of {got.numel()} numbers, and should return a float"
    if isinstance(got, int | float) and math.isclose(got, wanted, rel_tol=CLOSE):
        return None
    shown = f"{got:.6g}" if isinstance(got, int | float) else repr(got)[:60]
    return f"the losses of the slow loop add up to {wanted:.6g}, and {shown} was returned"


def in_time(run: CaseRun[Images]) -> str | None:
    got, best = run.got["seconds"], best_s(run)
    if got <= MOST_TIME * best:
        return None
    return (
        f"training takes {got * 1e3:.0f} ms; a loop that makes none of the four mistakes takes {best * 1e3:.0f} ms, "
        "and 10 % more is allowed"
    )


@once
def commands(run: CaseRun[Images]) -> tuple[Command, ...]:
    return from_plain(run.got["commands"])


def n_batches(case: Images) -> int:
    return case.n_epochs * math.ceil(case.n / case.batch_size)


def to_device(run: CaseRun[Images]) -> list[Command]:
    """The copies of batches: whatever is no weight."""
    weight_bytes = 4 * PIXELS * WIDTH
    return [one for one in commands(run) if one.kind == "copy" and one.place == "device" and one.nbytes != weight_bytes]


def settled(run: CaseRun[Images], wrong: Callable[[CaseRun[Images]], bool]) -> bool:
    """The losses are right, and this is what takes time."""
    return right_total(run) is None and wrong(run)


def slow(wrong: Callable[[CaseRun[Images]], bool]) -> Callable[[CaseRun[Images]], object]:
    return lambda run: settled(run, wrong)


def iterated(run: CaseRun[Images]) -> list[dict]:
    return [loader for loader in run.got["loaders"] if loader["n_epochs"]]


def no_workers(run: CaseRun[Images]) -> bool:
    return any(loader["num_workers"] == 0 for loader in iterated(run))


def other_number(run: CaseRun[Images], is_it: Callable[[int, int], bool]) -> bool:
    return any(is_it(loader["num_workers"], run.case.n_cores) for loader in iterated(run))


def blocking(run: CaseRun[Images]) -> bool:
    """Most batches are copied while the host waits."""
    copies = to_device(run)
    return 2 * sum(one.blocking for one in copies) > len(copies) > 0


def pinned(run: CaseRun[Images]) -> bool:
    return all(loader["pin_memory"] for loader in iterated(run))


def copied_bytes(run: CaseRun[Images]) -> int:
    return sum(one.nbytes for one in to_device(run))


def waits_each_step(run: CaseRun[Images]) -> bool:
    n_waits = len([one for one in host_waits(commands(run)) if one.kind == "sync" or one.place != "device"])
    return n_waits > n_batches(run.case) / 2


SLOW_LOOP = Oracle(
    id="07-slow-loop",
    judge=(right_total, in_time),
    errors={
        "takes float32": "What is copied should be bytes, and what the model gets are numbers from 0 to 1: convert on "
        "the device, after the copy.",
    },
    diagnose=(
        Hint(
            lambda run: isinstance(run.got["total"], torch.Tensor),
            "The sum is still on the device. slow_train returns a float: ask for it by total.item(), once, after the "
            "loop, where the host has nothing left to launch.",
        ),
        Hint(
            lambda run: math.isclose(run.got["total"], total_of(run, scale=1.0), rel_tol=1e-3),
            "The pixels are bytes from 0 to 255, and the model was given them as they are. Divide by 255 on the "
            "device.",
        ),
        Hint(
            lambda run: math.isclose(run.got["total"], total_of(run, n_epochs=1), rel_tol=CLOSE),
            "This is the sum of one epoch. The loop over the epochs has to stay, around the loop over the batches.",
        ),
        Hint(
            slow(waits_each_step),
            "The host asks for a value in every step, by item(), float() or print, and waits until the device has it. "
            "Add up on the device, and ask once at the end.",
        ),
        Hint(
            slow(no_workers),
            "The main process loads the images itself, and while it does, it gives the GPU nothing to do. Let workers "
            "load: num_workers.",
        ),
        Hint(
            slow(lambda run: other_number(run, lambda found, cores: found > cores)),
            "There are more workers than cores, so each of them is slower, and the first batch comes later.",
        ),
        Hint(
            slow(lambda run: other_number(run, lambda found, cores: found < cores)),
            "There are fewer workers than cores, and the GPU waits for them.",
        ),
        Hint(
            slow(lambda run: len(iterated(run)) > 1),
            "Every epoch makes a new DataLoader, which starts new workers. Make it once, before the loop over the "
            "epochs, and let it keep its workers.",
        ),
        Hint(
            slow(lambda run: any(loader["n_starts"] > 1 for loader in iterated(run))),
            "The loader is made once, but it ends its workers after each epoch and starts new ones. "
            "persistent_workers=True keeps them.",
        ),
        Hint(
            slow(lambda run: copied_bytes(run) > 2 * n_batches(run.case) * run.case.float_bytes / 4),
            "Float32 is copied where bytes would do: four times as many of them. Copy the images as they are, and "
            "divide on the device.",
        ),
        Hint(
            slow(lambda run: blocking(run) and pinned(run)),
            "The host waits for every copy of a batch. The model is copied once, the batches in every step: it is "
            "these that need non_blocking=True.",
        ),
        Hint(
            slow(lambda run: blocking(run) and not pinned(run)),
            "The host waits for every copy of a batch. non_blocking=True alone does not change that: the device can "
            "fetch only from pinned memory by itself: pin_memory=True of the loader.",
        ),
    ),
    call=lambda run: (
        f"train(DataLoader, <{run.case.n} images>, model, device, n_epochs={run.case.n_epochs}, "
        f"batch_size={run.case.batch_size}, n_cores={run.case.n_cores}). A batch takes "
        f"{run.case.load_ms * run.case.batch_size:g} ms to load on one core, {run.case.copy_ms:g} ms to copy as "
        f"float32, {run.case.python_ms:g} ms of Python and {run.case.step_ms:g} ms of kernels; starting workers takes "
        f"{run.case.start_ms:g} ms"
    ),
    axis="other times to load, to copy, to compute and to start workers",
)
