"""Lab 20: what a run with a feature's arguments comes to, by PyTorch itself, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab20.flags import (
    ACCUMULATION,
    BATCH,
    CACHE,
    CHECKPOINTING,
    COMPILE,
    DEFAULTS,
    FP16,
    MIXED,
    NOT_RUN_HERE,
    NOT_WRITTEN,
    OPTIMIZER,
    PRELOADING,
    RUN_HERE,
    SHAPE,
    TF32,
    Feature,
)
from labkit.exercises.lab20.tiny_trainer import Tiny
from labkit.oracles.hints import Condition, not_written_yet, once
from labkit.oracles.lab20.cells import MISTAKES, cells_of, in_ratios
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Rivals

ASKED: Mapping[str, Mapping[str, Any]] = {
    FP16: {"fp16": True},
    TF32: {"tf32": True},
    COMPILE: {"torch_compile": True},
    PRELOADING: {"dataloader_num_workers": 2},
}


@once
def kept_bytes(run: CaseRun[Feature], samples: int, recomputes: bool, casts: bool) -> int:
    """What a forward pass of so many samples keeps, without a `Trainer`."""
    model = Tiny(SHAPE)
    model.recomputes = recomputes
    tokens = run.tree["tokens"][:samples]
    with torch.autocast("cpu", torch.bfloat16, enabled=casts):
        model(tokens[:, :-1].clone(), tokens[:, 1:].clone())
    return model.seen.passes[0][1]


def at_a_time(case: Feature) -> int:
    """The most samples that fit and divide the batch."""
    if case.name != ACCUMULATION:
        return case.samples
    return max(n for n in range(1, min(case.fits, case.samples) + 1) if case.samples % n == 0)


def expect(run: CaseRun[Feature]) -> dict[str, Any]:
    case = run.case
    if case.is_row:
        return cells_of(run.tree["sizes"])
    if case.name in NOT_RUN_HERE:
        batch = {"per_device_train_batch_size": case.samples}
        return {"arguments": {**DEFAULTS, **batch, **ASKED[case.name]}}
    n = at_a_time(case)
    return {
        "samples": [[n] * (case.samples // n)] * case.n_steps,
        "kept_bytes": kept_bytes(run, n, case.name == CHECKPOINTING, case.name == MIXED),
        "product": "bfloat16" if case.name == MIXED else "float32",
        "cleared": case.n_steps // case.every if case.name == CACHE else 0,
        "optimizer": "Adafactor" if case.name == OPTIMIZER else "AdamW",
    }


# Mistakes -------------------------------------------------------------------------------------------------------------


def of(name: str, mistake: Callable[[CaseRun[Feature]], Any]) -> Condition:
    """The mistake, in a run of this feature; of other features and of rows it tells nothing, and its text says so."""
    return lambda run: CANNOT_TELL if run.case.is_row or run.case.name != name else mistake(run)


def differs_in(*parts: str) -> Callable[[CaseRun[Feature]], bool]:
    """In these parts and in no others."""
    return lambda run: {part for part, right in run.expected.items() if run.got[part] != right} == set(parts)


def steps_are(made: Callable[[Feature], list[int]]) -> Callable[[CaseRun[Feature]], Any]:
    """Every step's passes are those of a mistake; CANNOT_TELL where they are right."""

    def when(run: CaseRun[Feature]) -> Any:
        wrong = [made(run.case)] * run.case.n_steps
        return run.got["samples"] == wrong and (CANNOT_TELL if wrong == run.expected["samples"] else True)

    return when


def whole_batches(run: CaseRun[Feature]) -> bool:
    """A step has several forward passes, each of all samples; the texts may run out in the last step."""
    steps = run.got["samples"]
    return len(steps[0]) > 1 and all(set(step) == {run.case.samples} for step in steps)


def as_without(run: CaseRun[Feature]) -> bool:
    """A run of as many samples, and nothing else: the feature was not asked for."""
    return (
        run.got["samples"] == run.expected["samples"]
        and (run.got["product"], run.got["cleared"], run.got["optimizer"]) == ("float32", 0, "AdamW")
        and run.got["kept_bytes"] == kept_bytes(run, run.case.samples, False, False)
    )


def values_of(name: str) -> Callable[[CaseRun[Feature]], bool]:
    """The wrong values are those of this feature's arguments alone."""

    def when(run: CaseRun[Feature]) -> bool:
        got, right = run.got["arguments"], run.expected["arguments"]
        return {one for one in right if got[one] != right[one]} <= set(ASKED[name])

    return when


def default_batch(run: CaseRun[Feature]) -> bool:
    """Nothing was said of the batch, which is 8 by default."""
    if run.case.name in NOT_RUN_HERE:
        got, right = run.got["arguments"], run.expected["arguments"]
        return all(got[one] == (8 if one == "per_device_train_batch_size" else value) for one, value in right.items())
    default = DEFAULTS["per_device_train_batch_size"]
    return run.case.samples != default and run.got["samples"] == [[default]] * run.case.n_steps


def of_arguments(mistake: Callable[[CaseRun[Feature]], Any]) -> Condition:
    return lambda run: CANNOT_TELL if run.case.is_row else mistake(run)


def of_rows(mistake: Callable[[CaseRun[Feature]], Any]) -> Condition:
    return lambda run: run.got == mistake(run) if run.case.is_row else CANNOT_TELL


def fact(run: CaseRun[Feature]) -> str | None:
    """The ratios of a row; else what the run was, where it should have been another."""
    if run.case.is_row:
        return in_ratios(run.tree["sizes"])
    if run.case.name in NOT_RUN_HERE:
        got, right = run.got["arguments"], run.expected["arguments"]
        return "; ".join(f"{name} is {got[name]}, not {right[name]}" for name in right if got[name] != right[name])
    words = {
        "samples": "samples of each forward pass in the first step",
        "kept_bytes": "bytes kept for the backward pass",
        "product": "dtype of the products",
        "cleared": "calls of clear_device_cache",
        "optimizer": "optimizer",
    }
    got, right = ({**one, "samples": one["samples"][0]} for one in (run.got, run.expected))
    return "; ".join(f"{words[part]}: {got[part]}, not {right[part]}" for part in right if got[part] != right[part])


def in_words(run: Observation) -> str:
    case = run.case
    if case.is_row:
        return f"row({case.name!r}, sizes) with {len(case.speed)} sizes"
    return f"arguments({case.name!r}, samples={case.samples}, fits={case.fits}, every={case.every})"


ACCUMULATING = (
    Hint(
        of(ACCUMULATION, whole_batches),
        "gradient accumulation: the micro-batch was not made smaller. Each forward pass still has all samples, so no "
        "memory is saved, and an optimizer step now sees several times as many samples as were asked for.",
    ),
    Hint(
        of(ACCUMULATION, steps_are(lambda c: [at_a_time(c)])),
        "gradient accumulation: the micro-batch is smaller, and nothing is accumulated. An optimizer step sees only "
        "one micro-batch, which is another training than the one that was asked for.",
    ),
    Hint(
        of(ACCUMULATION, steps_are(lambda c: [1] * c.samples)),
        "gradient accumulation: one sample at a time is right in sum, but more of them fit. Take the largest "
        "micro-batch that fits and divides `samples`.",
    ),
    Hint(
        of(ACCUMULATION, lambda run: all(sum(step) != run.case.samples for step in run.got["samples"])),
        "gradient accumulation: the micro-batches of a step do not add up to `samples`. Trainer's micro-batches are "
        "all of one size, so that size has to divide `samples`.",
    ),
)

FLAGS = Oracle(
    id="20-flags",
    expect=expect,
    judge=(inputs_untouched,),
    call=in_words,
    fact=fact,
    axis="other numbers of samples, also such that have no divisor that fits, and features that are worth something "
    "else than a slide says",
    places={
        "samples": "samples of the forward passes, by step",
        "kept_bytes": "bytes kept for the backward pass",
        "product": "dtype of the products",
        "cleared": "calls of clear_device_cache",
        "optimizer": "optimizer",
        "speed": "cell of speed",
        "memory": "cell of memory",
    },
    errors={
        "unexpected keyword argument": "TrainingArguments has no argument of that name. help(TrainingArguments) "
        "lists all of them.",
        "bitsandbytes": "This optimizer needs a package that is not installed. Adafactor comes with transformers: "
        'optim="adafactor".',
    },
    diagnose=(
        Hint(
            of_arguments(default_batch),
            "TrainingArguments takes 8 samples at a time where nothing is said. Every feature here is asked for beside "
            "a batch of `samples`: give per_device_train_batch_size as well.",
        ),
        *ACCUMULATING,
        Hint(
            of(MIXED, as_without),
            "mixed precision: the products came out in float32. fp16 does nothing on a CPU, and bf16_full_eval is for "
            "evaluation alone; bf16=True trains under autocast.",
        ),
        Hint(
            of(CHECKPOINTING, as_without),
            "gradient checkpointing: the forward pass kept as many bytes as without it, so nothing is recomputed.",
        ),
        Hint(
            of(CACHE, lambda run: differs_in("cleared")(run) and run.got["cleared"] == run.case.n_steps),
            "torch_empty_cache_steps: the cache was emptied at every step. The argument is the number of steps "
            "between two times, which is `every`.",
        ),
        Hint(
            of(CACHE, as_without),
            "torch_empty_cache_steps: clear_device_cache was never called in the run.",
        ),
        Hint(
            of(OPTIMIZER, differs_in("optimizer")),
            "optimizer choice: Adafactor was asked for, and another optimizer ran. `optim` takes its name.",
        ),
        *(
            Hint(of(name, values_of(name)), f"{name}: {text}")
            for name, text in (
                (FP16, "the argument has the same name. bf16 is another format."),
                (TF32, "the argument has the same name, and is True."),
                (COMPILE, "the argument is torch_compile, and is True."),
                (PRELOADING, "two processes load data: dataloader_num_workers is their number."),
            )
        ),
        *(
            Hint(of(name, differs_in("samples", "kept_bytes")), f"{name}: a step is one forward pass of `samples`.")
            for name in RUN_HERE
            if name not in (BATCH, ACCUMULATION)
        ),
        *not_written_yet(("row",), lambda run, name: run.got == dict.fromkeys(("speed", "memory"), NOT_WRITTEN)),
        Rivals(tuple(Hint(of_rows(mistake), text) for mistake, text in MISTAKES)),
    ),
)
