"""Lab 15: hidden environments of each launcher."""

from __future__ import annotations

import random
from dataclasses import replace

from grading.hidden import Hidden
from labkit.exercises.lab15.env import PLACE, Launched


def env_cases(rng: random.Random) -> tuple[Launched, ...]:
    """Each launcher alone and inside Slurm, node lists of every form, one or two variables missing, and all of
    them; and the first rank."""

    def launched(launcher: str, **more) -> Launched:
        """A process whose rank, local rank and number of the node are three different numbers."""
        per_node, n_nodes = rng.choice((4, 6, 8)), rng.randint(3, 5)
        node = rng.randint(1, n_nodes - 1)
        local_rank = rng.choice([place for place in range(1, per_node) if place != node])
        nodelist, first = _nodelist(rng)
        return Launched(
            launcher,
            node * per_node + local_rank,
            per_node,
            n_nodes,
            nodelist,
            first,
            rng.randint(1_000, 9_999_999),
            **more,
        )

    slurm, torchrun = launched("slurm"), launched("torchrun")
    kind = rng.choice(sorted(PLACE))
    return (
        torchrun,
        *(replace(launched("slurm"), nodelist=nodelist, first_host=first) for nodelist, first in _each_form(rng)),
        launched("slurm", exported=True),
        launched("slurm", exported=True, unset=("MASTER_ADDR",)),
        launched("slurm", exported=True, unset=("MASTER_PORT",)),
        launched("slurm", pmi=True),
        launched("openmpi", exported=True),
        launched("hydra", exported=True),
        launched("torchrun", around="slurm"),
        launched("openmpi", around="slurm"),
        launched("hydra", around="slurm", exported=True),
        launched("openmpi", around="hydra", exported=True),
        launched("slurm", unset=(rng.choice(PLACE["slurm"]),)),
        replace(torchrun, unset=(rng.choice(PLACE["torchrun"]), rng.choice(("MASTER_ADDR", "MASTER_PORT")))),
        launched(kind, exported=True, unset=(rng.choice(PLACE[kind]),)),
        launched(rng.choice(("openmpi", "hydra"))),
        replace(slurm, unset=("SLURM_JOB_NODELIST",)),
        replace(torchrun, unset=(*PLACE["torchrun"], "MASTER_ADDR", "MASTER_PORT")),
        # To whom a 0 counts as nothing, the first rank lacks a variable.
        replace(slurm, rank=0),
        replace(torchrun, rank=0, unset=("WORLD_SIZE",)),
    )


def _each_form(rng: random.Random) -> list[tuple[str, str]]:
    """Lists of nodes in the forms in which Slurm writes them, with their first host."""
    stem, number = rng.choice(("node", "gpu", "c", "compute-")), rng.randint(1, 8)
    low = f"{number:0{rng.randint(2, 4)}d}"
    high, other = f"{number + 3:0{len(low)}d}", rng.randint(20, 99)
    return [
        (f"{stem}[{low}-{high},{other}]", stem + low),
        (f"{stem}[{low},{other}]-ib,login{number}", f"{stem}{low}-ib"),
        (f"{stem}{other},{stem}[{low}-{high}]", f"{stem}{other}"),
        (f"rack{number}-{stem}[{low}-{high}],rack{number + 1}-{stem}{low}", f"rack{number}-{stem}{low}"),
        (f"{stem}{low}", stem + low),
    ]


def _nodelist(rng: random.Random) -> tuple[str, str]:
    return rng.choice(_each_form(rng))


ENV = Hidden("15-env", env_cases)
