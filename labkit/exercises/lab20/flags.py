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
NOT_WRITTEN = "not written yet"
"""In the place of a row's cells while `row` is a blank."""
GAINS = {"P": (1.7, 2.0), "p": (1.1, 1.2), "n": (1.01, 1.035), "N": (0.5, 0.65)}
"""By sign, between which numbers a size's ratio lies: a large gain, a small one, one that does not count, a loss."""
TIMES = (2, 0.5, 1)
"""Times the samples of a step that a feature comes with, from size to size."""


@dataclass(frozen=True)
class Feature(Case):
    """A feature to be asked for, or, where there are signs of GAINS, one for each size, its row of the table.

    samples, fits, every: what `arguments` is given.
    """

    name: str
    samples: int = 8
    fits: int = 8
    every: int = 1
    n_steps: int = 2
    speed: str = ""
    memory: str = ""

    @property
    def is_row(self) -> bool:
        return bool(self.speed)


def between(low: float, high: float, gen: torch.Generator) -> float:
    return low + (high - low) * float(torch.rand((), generator=gen))


def a_row(case: Feature, gen: torch.Generator) -> list[list[dict[str, float]]]:
    """By size, a run without the feature and one with it."""
    pairs = []
    for place, (speed, memory) in enumerate(zip(case.speed, case.memory, strict=True)):
        times, samples = TIMES[place % len(TIMES)], 2 ** int(torch.randint(2, 6, (), generator=gen))
        seconds, peak = between(0.5, 3.5, gen), 2**30 * between(2.0, 50.0, gen)
        before = {"samples": samples, "seconds": seconds, "peak_bytes": round(peak)}
        after = {
            "samples": round(samples * times),
            "seconds": seconds * times / between(*GAINS[speed], gen),
            "peak_bytes": round(peak / between(*GAINS[memory], gen)),
        }
        pairs.append([before, after])
    return pairs


def draw(case: Feature, gen: torch.Generator) -> dict[str, Any]:
    """sizes: of a row of the table. tokens: what is trained on, a text for each sample."""
    if case.is_row:
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
    if case.is_row:
        try:
            found = ans.row(case.name, [tuple(pair) for pair in tree["sizes"]])
        except NotImplementedError:
            return {"speed": NOT_WRITTEN, "memory": NOT_WRITTEN}
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
        Feature(MIXED, speed="pP", memory="Np"),
        Feature(BATCH, speed="PPp", memory="NnN"),
        Feature(COMPILE, speed="pnP", memory="nnn"),
        Feature(CHECKPOINTING, speed="NNn", memory="pPp"),
        Feature(OPTIMIZER, speed="NPPN", memory="PNNN"),
    ),
    inputs=draw,
    drive=drive,
    run=Run(wall_s=120.0),
    optional=True,
)
