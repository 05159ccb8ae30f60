"""Lab 16: what is asked, given and run for checkpoints of shards: saved by some ranks, killed, loaded by others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.exercises.lab16.meta_init import part_size
from labkit.spec import Answer, Case, Exercise, Run
from labkit.store import Kill

MARKER = "driver/finished-"


@dataclass(frozen=True)
class Jobs(Case):
    """Jobs that go on with one training run, each on so many ranks; all but the last are killed at a write, where kills
    says. Of every parameter there are n_elements, and n_few of another one.
    """

    n_ranks: tuple[int, ...] = (2, 3)
    kills: tuple[int, ...] = (12,)
    n_elements: int = 10
    n_few: int = 3
    n_steps: int = 4
    n_end: int = 2

    @property
    def sizes(self) -> dict[str, int]:
        """By name, the elements of a whole tensor: two parameters, and two moments of the first."""
        return {
            "weight": self.n_elements,
            "bias": self.n_few,
            "exp_avg": self.n_elements,
            "exp_avg_sq": self.n_elements,
        }


def state_at(case: Jobs, step: int, seed: int) -> dict[str, Tensor]:
    """The whole state after a step: every element tells its tensor, its place and its step, and has a drawn part below
    1/8, so that what was not saved cannot be worked out again."""
    gen = torch.Generator().manual_seed(seed + step)
    return {
        name: torch.arange(n) / 8 + torch.randint(8, (n,), generator=gen) / 64 + 1000 * (number + 1) + 10_000 * step
        for number, (name, n) in enumerate(case.sizes.items())
    }


def kills_and_seed(case: Jobs, gen: torch.Generator) -> dict[str, Any]:
    """seed: of the state after each step."""
    seed = int(torch.randint(2**40, (), generator=gen))
    return {"kills": [Kill(at, "write").to_tree() for at in case.kills], "seed": seed}


def shard_of(state: Mapping[str, Tensor], rank: int, n: int) -> dict[str, Tensor]:
    """A rank's part of each tensor."""
    found = {}
    for name, tensor in state.items():
        k = part_size(len(tensor), n)
        found[name] = tensor[rank * k : (rank + 1) * k].clone()
    return found


def to_bytes(tensor: Tensor) -> bytes:
    """The numbers of a float32 tensor, four bytes each."""
    return tensor.detach().numpy().tobytes()


def from_bytes(data: bytes) -> Tensor:
    """The flat float32 tensor of these bytes."""
    return torch.from_numpy(np.frombuffer(data, dtype=np.float32).copy())


def drive_checkpoint(ans, case: Jobs, tree: dict, stage) -> dict[str, Any]:
    """loaded: what each rank of this job began with, [step, state] or None; end: what ranks of another number load
    after the last step. After every step the driver leaves a marker, which says how far jobs that were killed had come.
    """
    store, n = stage.store, case.n_ranks[stage.job]
    loaded = [ans.load(store, rank, n, dict(case.sizes)) for rank in range(n)]
    first = loaded[0]
    done = first[0] if isinstance(first, list | tuple) and first and type(first[0]) is int else 0
    for step in range(done + 1, case.n_steps + 1):
        state = state_at(case, step, tree["seed"])
        # Ranks are not equally fast: in each step of a job another one begins.
        for rank in [(step - done - 1 + one) % n for one in range(n)]:
            ans.save(store, step, rank, n, shard_of(state, rank, n))
        ans.finish(store, step, n)
        store.write(f"{MARKER}{step:04d}", b"")
    end = [ans.load(store, rank, case.n_end, dict(case.sizes)) for rank in range(case.n_end)]
    return {"loaded": loaded, "end": end}


CHECKPOINT = Exercise(
    id="16-checkpoint",
    title="Save on n ranks, load on m",
    points=0.4,
    optional=True,
    minutes=35,
    difficulty=3,
    answers=(Answer("save"), Answer("finish"), Answer("load")),
    public=(
        Jobs((2,), ()),
        Jobs((4, 3), (20,), n_elements=11, n_end=5),
        Jobs((2,) * 13, (*range(2, 11), 13, 16, 18), n_steps=9),
        Jobs((3, 5, 2), (9, 14), n_elements=4, n_few=1, n_steps=5, n_end=3),
        Jobs((4, 2), (1,), n_elements=3000, n_steps=2, n_end=5),
    ),
    inputs=kills_and_seed,
    drive=drive_checkpoint,
    run=Run(store=True),
)
