"""Lab 15: a torchrun script that survives a killed rank: the job it is given, the kills, and what is read back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab15.left_by_launch import first_error, flat, loaded, numbers, read_checkpoint, steps
from labkit.exercises.lab15.on_rank import CHECKPOINT, PLAN
from labkit.exercises.lab15.torchrun import JOB, LAUNCH_S, N_RANKS, RESULT, SCRIPT, command, run_bounded
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class InterruptedTraining(Case):
    """A linear regression on two ranks, and where it is cut short.

    A rank takes `batch` rows a step; there is a checkpoint after every `every` steps. Rank `kill_rank` dies after the
    `kill_steps`-th step of the first start; rank 0 dies in the `kill_saves`-th save of the second one. With
    `begun_steps` a checkpoint is there already, of a training that has come that far.
    """

    n_rows: int = 32
    n_features: int = 3
    batch: int = 2
    n_epochs: int = 4
    every: int = 5
    kill_rank: int = 1
    kill_steps: int = 13
    kill_saves: int = 2
    begun_steps: int = 0

    @property
    def steps_per_epoch(self) -> int:
        return self.n_rows // (self.batch * N_RANKS)

    @property
    def n_steps(self) -> int:
        return self.n_epochs * self.steps_per_epoch

    @property
    def killed_at(self) -> tuple[int, int]:
        """The steps of the training that were done when each kill came."""
        first = self.begun_steps + self.kill_steps
        return first, self.kept_at[0] + self.kill_saves * self.every

    @property
    def kept_at(self) -> tuple[int, int]:
        """The steps in the checkpoint that each kill leaves behind: the last whole one."""
        first = (self.begun_steps + self.kill_steps) // self.every * self.every
        return first, first + (self.kill_saves - 1) * self.every


def training_inputs(case: InterruptedTraining, gen: torch.Generator) -> dict[str, Any]:
    """The job, and the checkpoint that is there already where the case wants one: drawn, so that nobody can know it."""

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=gen)

    def number() -> int:
        return int(torch.randint(2**31, (), generator=gen))

    x, slope = draw(case.n_rows, case.n_features), draw(case.n_features, 1)
    job = {
        "x": x,
        "y": x @ slope + 0.5 * draw(case.n_rows, 1),
        "model": {"weight": draw(1, case.n_features), "bias": draw(1)},
        "seed": number(),
        "n_epochs": case.n_epochs,
        "batch": case.batch,
        "every": case.every,
        "lr": 0.05,
        "momentum": 0.9,
        "noise": 0.3,
    }
    begun = None
    if case.begun_steps:
        begun = {
            "step": case.begun_steps,
            "model": {"weight": draw(1, case.n_features), "bias": draw(1)},
            "momentum": [draw(1, case.n_features), draw(1)],
            "generators": [torch.Generator().manual_seed(number()).get_state() for _ in range(N_RANKS)],
            "losses": (1 + draw(case.begun_steps).abs()).tolist(),
        }
    return {"job": job, "begun": begun}


def drive_launch(ans, case: InterruptedTraining, tree: dict, stage) -> dict[str, Any]:
    """Launch the script, kill a rank twice, and read what it left: nothing is judged here."""
    return launch(ans.script, tree, stage.tmp, kills_of(case))


def launch(script: str, tree: Mapping[str, Any], tmp: Path, kills: Sequence[Mapping[str, int]] = ()) -> dict[str, Any]:
    """Train with the script's text under torchrun in the empty folder `tmp`, and end ranks as `kills` say, in order.

    kills: {"rank": r, "steps": n} ends rank r after n steps of that start; {"rank": r, "saves": n} in its n-th save.
    Returns "ended" (0, another exit code, or None where it was ended), "error" (the first one of the script, in words),
    "losses" and "model" of the result (None without one), "left" (the checkpoint at each kill that happened), "steps"
    (by start, the optimizer steps of each rank), and "saves" (by rank, the names of the files that it saved to).
    """
    tmp = Path(tmp).resolve()
    folder, notes = tmp / "job", tmp / "notes"
    folder.mkdir()
    notes.mkdir()
    (tmp / SCRIPT).write_text(without_magic(script))
    (notes / PLAN).write_text(json.dumps(list(kills)))
    torch.save(tree["job"], folder / JOB)
    if tree["begun"] is not None:
        torch.save(_checkpoint_of(tree), folder / CHECKPOINT)
    ended = run_bounded(command(tmp, len(kills)), tmp)
    result = loaded(folder / RESULT)
    return {
        "ended": ended,
        "error": first_error(notes),
        "losses": numbers(result.get("losses")),
        "model": flat(result.get("model")),
        "left": [read_checkpoint(notes / f"left-{number}.pt") for number in range(len(list(notes.glob("killed-*"))))],
        "steps": steps(notes),
        "saves": [
            sorted({name for path in notes.glob(f"saves-{rank}-*") for name in path.read_text().split("\n")} - {""})
            for rank in range(N_RANKS)
        ],
    }


def kills_of(case: InterruptedTraining) -> tuple[dict[str, int], ...]:
    """The case's kills as `launch` takes them."""
    return ({"rank": case.kill_rank, "steps": case.kill_steps}, {"rank": 0, "saves": case.kill_saves})


def without_magic(script: str) -> str:
    """A `%%writefile` cell's text without that line, which is left blank: the others keep their numbers."""
    return re.sub(r"\A\s*(# )?%%writefile[^\n]*", "", script)


def _checkpoint_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint in the form that the script is asked to write and to read."""
    job, begun = tree["job"], tree["begun"]
    model = torch.nn.Linear(job["x"].shape[1], 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=job["lr"], momentum=job["momentum"]).state_dict()
    optimizer["state"] = {i: {"momentum_buffer": value} for i, value in enumerate(begun["momentum"])}
    return {**{name: begun[name] for name in ("step", "model", "generators", "losses")}, "optimizer": optimizer}


LAUNCH = Exercise(
    id="15-launch",
    title="A training that survives a killed rank",
    points=4,
    minutes=30,
    difficulty=3,
    answers=(Answer("script", kind="text"),),
    public=(InterruptedTraining(),),
    inputs=training_inputs,
    drive=drive_launch,
    run=Run(wall_s=LAUNCH_S + 30, needs=("loopback", "files", "subprocess")),
)
