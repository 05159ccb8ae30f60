"""Lab 20: which arguments of `Trainer` ask for a feature, and what a feature is worth by measured ratios.

What cannot be counted on a CPU (`fp16`, `tf32`, `torch_compile`, workers) is asked for as an argument, and not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from labkit.exercises.lab20.tiny_trainer import Shape, samples_of, train
from labkit.spec import Answer, Case, Exercise, Run

ACCUMULATION, CHECKPOINTING, MIXED = "gradient accumulation", "gradient checkpointing", "mixed precision"
BATCH, CACHE, OPTIMIZER = "batch size", "torch_empty_cache_steps", "optimizer choice"
FP16, TF32, COMPILE, PRELOADING = "fp16", "tf32", "torch.compile", "data preloading"
RUN_HERE = (BATCH, ACCUMULATION, CHECKPOINTING, MIXED, CACHE, OPTIMIZER)
NOT_RUN_HERE = (FP16, TF32, COMPILE, PRELOADING)
SHAPE = Shape(width=16, n_blocks=3, seq_len=6)
DEFAULTS = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False,
    "bf16": False,
    "fp16": False,
    "tf32": False,
    "torch_compile": False,
    "dataloader_num_workers": 0,
    "dataloader_pin_memory": True,
}
"""Of the arguments that are looked at where nothing is run, what `TrainingArguments` has where they are left out."""
SPARE = 4
"""Times the samples that are asked for, so that steps which take more are seen as such."""
ALL, SOME, NONE = "all", "some", "none"
"""At how many of the sizes a feature helps."""


@dataclass(frozen=True)
class Feature(Case):
    """A feature to be asked for, or, where n_sizes is more than 0, its row of the table.

    samples, fits, every: what `arguments` is given. speed, memory: at how many of the sizes the feature helps.
    """

    name: str
    samples: int = 8
    fits: int = 8
    every: int = 1
    n_steps: int = 2
    n_sizes: int = 0
    speed: str = ALL
    memory: str = ALL


def ratios(helps: str, n: int, gen: torch.Generator) -> list[float]:
    """How many times as good each size becomes, 1.05 and its neighbourhood left out."""
    at = torch.randperm(n, generator=gen).tolist()
    n_helped = {ALL: n, NONE: 0, SOME: int(torch.randint(1, max(n, 2), (), generator=gen))}[helps]
    found = [0.0] * n
    for place, where in enumerate(at):
        way = float(torch.rand((), generator=gen))
        low, high = (1.1, 2.0) if place < n_helped else (1.01, 1.035) if place % 2 else (0.5, 0.9)
        found[where] = low + way * (high - low)
    return found


def a_row(case: Feature, gen: torch.Generator) -> list[list[dict[str, float]]]:
    """By size, a run without the feature and one with it."""
    faster, smaller = ratios(case.speed, case.n_sizes, gen), ratios(case.memory, case.n_sizes, gen)
    pairs = []
    for fast, small in zip(faster, smaller, strict=True):
        samples, seconds, peak, times = (
            2 ** int(torch.randint(2, 6, (), generator=gen)),
            0.5 + 3 * float(torch.rand((), generator=gen)),
            2**30 * (2 + 50 * float(torch.rand((), generator=gen))),
            (0.5, 1, 2)[int(torch.randint(3, (), generator=gen))],
        )
        before = {"samples": samples, "seconds": seconds, "peak_bytes": round(peak)}
        after = {
            "samples": round(samples * times),
            "seconds": seconds * times / fast,
            "peak_bytes": round(peak / small),
        }
        pairs.append([before, after])
    return pairs


def draw(case: Feature, gen: torch.Generator) -> dict[str, Any]:
    """sizes: of a row of the table. tokens: what is trained on, a text for each sample."""
    if case.n_sizes:
        return {"sizes": a_row(case, gen)}
    if case.name in NOT_RUN_HERE:
        return {}
    shape = (SPARE * case.samples * case.n_steps, SHAPE.seq_len + 1)
    return {"tokens": torch.randint(SHAPE.vocab, shape, generator=gen)}


def looked_at(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values of DEFAULTS as this answer has them. Raises TypeError for a name that `TrainingArguments` lacks."""
    from dataclasses import fields

    from transformers import TrainingArguments

    if unknown := set(arguments) - {one.name for one in fields(TrainingArguments)}:
        raise TypeError(f"TrainingArguments got an unexpected keyword argument {min(unknown)!r}")
    values = {**DEFAULTS, **{name: value for name, value in arguments.items() if name in DEFAULTS}}
    return {name: type(DEFAULTS[name])(value) for name, value in values.items()}


def drive(ans, case: Feature, tree: dict, stage) -> Any:
    """The two cells of a row; or what came of the arguments: passes of each step, bytes kept, dtypes, calls."""
    if case.n_sizes:
        found = ans.row(case.name, [tuple(pair) for pair in tree["sizes"]])
        return {str(part): cell for part, cell in found.items()} if isinstance(found, Mapping) else found
    arguments = ans.arguments(case.name, case.samples, case.fits, case.every)
    if not isinstance(arguments, Mapping):
        return arguments
    if case.name in NOT_RUN_HERE:
        return {"arguments": looked_at(arguments)}
    done = train(SHAPE, samples_of(tree["tokens"]), arguments, case.n_steps, stage.tmp)
    passes = iter(done.seen.passes)
    in_steps = [list(islice(passes, n)) for n in done.n_passes]
    return {
        "samples": [[one[0] for one in step] for step in in_steps],
        "kept_bytes": max((one[1] for one in done.seen.passes), default=0),
        "product": "/".join(sorted({one[2] for one in done.seen.passes})),
        "cleared": done.cleared,
        "optimizer": done.optimizer,
    }


FLAGS = Exercise(
    id="20-flags",
    title="A flag for each feature, and what it is worth",
    points=2,
    minutes=30,
    difficulty=2,
    answers=(Answer("arguments"), Answer("row")),
    public=(
        Feature(BATCH, samples=6, fits=6),
        Feature(ACCUMULATION, samples=12, fits=4),
        Feature(ACCUMULATION, samples=12, fits=5),
        Feature(CHECKPOINTING, samples=6, fits=6),
        Feature(MIXED, samples=6, fits=6),
        Feature(CACHE, samples=6, fits=6, every=2, n_steps=4),
        Feature(OPTIMIZER, samples=6, fits=6),
        *(Feature(name, samples=6, fits=6) for name in NOT_RUN_HERE),
        Feature(MIXED, n_sizes=2, speed=ALL, memory=SOME),
        Feature(BATCH, n_sizes=3, speed=ALL, memory=NONE),
        Feature(COMPILE, n_sizes=3, speed=SOME, memory=NONE),
        Feature(CHECKPOINTING, n_sizes=3, speed=NONE, memory=ALL),
        Feature(OPTIMIZER, n_sizes=4, speed=SOME, memory=SOME),
    ),
    inputs=draw,
    drive=drive,
    run=Run(wall_s=120.0),
    optional=True,
)
