"""Lab 15: a torchrun script that survives a killed rank: the job it is given, how it is launched, what is read back.

The launch is real: torchrun's agent, two processes that meet over gloo on the loopback interface, SIGKILL. The agent
forks its ranks (`--run-path --start-method fork`), because a start from nothing loads PyTorch again for each rank of
each restart.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab15.on_rank import CHECKPOINT, PLAN
from labkit.ranks.pool import environment
from labkit.spec import Answer, Case, Exercise, Run

N_RANKS = 2
SPARE_RESTARTS = 2
"""Beyond those that the kills ask for: a meeting that fails by itself costs no points."""
LAUNCH_S = 150.0
"""A launch takes some 4 s of CPU time, and a minute or more beside twenty other programs on two cores."""
QUIET_S = 60.0
"""Ranks that wait for each other for ever are ended when none has begun, stepped or saved for so long."""
LOOK_S = 0.5
SCRIPT, JOB, RESULT = "train.py", "job.pt", "result.pt"
_AGENT = "import torch._dynamo, torch.nn.parallel; from torch.distributed.run import main; main()"
"""torchrun, with what optimizers and DDP would load loaded once, before it forks."""


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
    ended = _run(command(tmp, len(kills)), tmp)
    result = _loaded(folder / RESULT)
    return {
        "ended": ended,
        "error": _first_error(notes),
        "losses": _numbers(result.get("losses")),
        "model": _flat(result.get("model")),
        "left": [_read_checkpoint(notes / f"left-{number}.pt") for number in range(len(list(notes.glob("killed-*"))))],
        "steps": _steps(notes),
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


def command(tmp: Path, n_kills: int = 0) -> list[str]:
    """The command that launches the script in `tmp`.

    The meeting point is the agent's own, on 127.0.0.1 at a free port: no name has to be looked up.
    """
    return [
        *(sys.executable, "-c", _AGENT),
        f"--nproc-per-node={N_RANKS}",
        f"--max-restarts={n_kills + SPARE_RESTARTS}",
        *("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"),
        *("--run-path", "--start-method=fork" if sys.platform == "linux" else "--start-method=spawn"),
        str(Path(__file__).with_name("on_rank.py")),
        *(str(tmp / "notes"), str(tmp / SCRIPT), str(tmp / "job")),
    ]


def _run(argv: list[str], tmp: Path) -> int | None:
    """The exit code, or None where it had to be ended. What it printed is in `tmp`/log; nothing of it goes on."""
    # The agent keeps one store over all restarts, in which gloo's ranks would find the addresses of dead ones.
    env = {**environment(), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "TMPDIR": str(tmp)}
    with open(tmp / "log", "wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=tmp, env=env, start_new_session=True
        )
        try:
            return _ended(process, tmp / "notes")
        finally:
            # The ranks are in the agent's group, also those that it left behind.
            if process.poll() is None or _group_lives(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _ended(process: subprocess.Popen, notes: Path) -> int | None:
    """The exit code, or None once LAUNCH_S are over, or QUIET_S since a rank noted anything. Loading may be longer."""
    seen, changed_s = set(), time.monotonic()
    until_s = changed_s + LAUNCH_S
    while (now_s := time.monotonic()) < until_s:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_S)
        found = {(path.name, path.stat().st_size) for path in notes.glob("*-*")}
        if found != seen or not found:
            seen, changed_s = found, now_s
        elif now_s - changed_s > QUIET_S:
            break
    return None


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _checkpoint_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint in the form that the script is asked to write and to read."""
    job, begun = tree["job"], tree["begun"]
    model = torch.nn.Linear(job["x"].shape[1], 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=job["lr"], momentum=job["momentum"]).state_dict()
    optimizer["state"] = {i: {"momentum_buffer": value} for i, value in enumerate(begun["momentum"])}
    return {**{name: begun[name] for name in ("step", "model", "generators", "losses")}, "optimizer": optimizer}


def _loaded(path: Path) -> dict[str, Any]:
    """What torch.save wrote there; empty where nothing can be read."""
    try:
        found = torch.load(path, weights_only=True)
    except Exception:
        # Half a file fails in as many ways as there are places to cut it.
        return {}
    return found if isinstance(found, dict) else {}


def _read_checkpoint(path: Path) -> dict[str, Any]:
    """Its parts as plain tensors, None for what is missing; "state" says whether there was one that could be read."""
    found = _loaded(path)
    optimizer = found.get("optimizer")
    moments = optimizer.get("state") if isinstance(optimizer, dict) else None
    buffers = [one.get("momentum_buffer") for one in moments.values()] if isinstance(moments, dict) else []
    generators = found.get("generators")
    return {
        "state": "whole" if found else "torn" if path.exists() else "none",
        "step": found["step"] if isinstance(found.get("step"), int) else None,
        "model": _flat(found.get("model")),
        "names": sorted(map(str, found["model"])) if isinstance(found.get("model"), dict) else [],
        "momentum": _flat(dict(enumerate(buffers))),
        "generators": [one for one in generators if isinstance(one, Tensor)]
        if isinstance(generators, list | tuple)
        else [],
        "losses": _numbers(found.get("losses")),
    }


def _flat(values: object) -> Tensor | None:
    """The tensors of a state dict behind one another, in float32."""
    tensors = [value for value in values.values() if isinstance(value, Tensor)] if isinstance(values, dict) else []
    return torch.cat([value.detach().float().reshape(-1) for value in tensors]) if tensors else None


def _numbers(values: object) -> Tensor | None:
    """A list of numbers or of tensors with one element, or a tensor, as one float64 tensor."""
    try:
        return torch.tensor([float(value) for value in values], dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        return None


def _steps(notes: Path) -> list[list[int]]:
    """By start, the number of optimizer steps of each rank."""
    n_starts = 1 + max((int(path.name.split("-")[2]) for path in notes.glob("began-*")), default=-1)
    found = []
    for start in range(n_starts):
        paths = [notes / f"steps-{rank}-{start}" for rank in range(N_RANKS)]
        found.append([path.stat().st_size if path.exists() else 0 for path in paths])
    return found


def _first_error(notes: Path) -> str | None:
    """The first error of a start in which no rank was killed: those beside a killed rank are the kill's."""
    killed = {path.read_text() for path in notes.glob("killed-*")}
    errors = sorted(notes.glob("error-*"), key=lambda path: (int(path.name.split("-")[2]), path.stat().st_mtime_ns))
    return next((path.read_text() for path in errors if path.name.split("-")[2] not in killed), None)


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
