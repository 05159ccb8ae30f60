"""The labs of the course: what each is called, which track it is on, which labs it needs, how long it takes.

One place for all of it; openings of notebooks, the README's table and the map are made from it. A lab that is not part
of this course says it in a file of its own (`lab.toml`). What an exercise asks stands in `labkit.exercises`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Track = Literal["start", "memory", "kernels", "scale", "bridge", "end"]

STEP_MINUTES = 5
"""What minutes are rounded to: nobody's pace is known better."""
FOLDERS = [Path(__file__).parent / "exercises"]
"""Where labs that LABS does not list are looked for: each says what it is in `lab21/lab.toml`."""


@dataclass(frozen=True)
class Lab:
    """One lab.

    minutes: for its core, reading and exercises together; 0 as long as the lab does not stand.
    optional_minutes: the same for what is optional.
    needs: labs whose ideas it uses and does not explain again. instead: by such a lab, what stands in for what it had
    students write, for those who skipped it.

        Lab("03", "Mixed precision", "memory", minutes=120, needs=("02",), instead={"02": "`torch.finfo`"})
    """

    id: str
    title: str
    track: Track
    minutes: int = 0
    optional_minutes: int = 0
    needs: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()

    @property
    def stands(self) -> bool:
        return self.minutes > 0


# 01, 03, 04, 05, 06 and 15 as newcomers measured them (3 3/4, 2, 4, 6, 5 and 6 hours), split by the minutes of their
# exercises or, in 04 and 06, as measured; 01, 03, 05 and 15 took 1.7 minutes for each minute that their exercises
# declare, and the others are reckoned by that.
LABS = (
    Lab("00", "Start here", "start", 30),
    Lab("01", "Napkin math", "memory", 165, 60),
    Lab("02", "Float formats and summation error", "memory", 115, 40),
    Lab(
        "03",
        "Mixed precision",
        "memory",
        120,
        needs=("02",),
        instead=(("02", "`torch.finfo` for the limits of a format, `labkit.formats` for its bits"),),
    ),
    Lab(
        "04",
        "Batch size and gradient accumulation",
        "bridge",
        185,
        55,
        needs=("01",),
        instead=(("01", "`labkit.measure_step` to see what a step keeps and its peak memory"),),
    ),
    Lab(
        "05",
        "Recomputation and offloading",
        "memory",
        185,
        175,
        needs=("01",),
        instead=(("01", "`labkit.measure_step` to see what a step keeps and its peak memory"),),
    ),
    Lab(
        "06",
        "Optimizers",
        "memory",
        210,
        80,
        needs=("02",),
        instead=(("02", "`labkit.material.lab06.stochastic_round`"),),
    ),
    Lab("07", "Data loading", "bridge", 205, 195),
    Lab("08", "Parameter-efficient fine-tuning", "memory", 195, 75),
    Lab("09", "Timing an asynchronous device", "kernels", 280, 85),
    Lab("10", "Grids, memory, and a kernel's life", "kernels", 265, 170),
    Lab("11", "torch.compile", "kernels", 255, 230),
    Lab("12", "Triton, and when to fuse", "kernels", 250),
    Lab(
        "13",
        "Tiles, and algorithms that need one pass",
        "kernels",
        240,
        110,
        needs=("12",),
        instead=(("12", "`labkit.track_traffic` for a kernel's bytes and `labkit.compile_report` for its registers"),),
    ),
    Lab("14", "Collectives", "scale", 155, 130),
    Lab(
        "15",
        "Data parallel",
        "scale",
        250,
        180,
        needs=("14",),
        instead=(("14", "`comm.all_reduce`, `comm.reduce_scatter` and `comm.all_gather` of `labkit.run_ranks`"),),
    ),
    Lab(
        "16",
        "ZeRO and FSDP",
        "scale",
        265,
        needs=("14", "15"),
        instead=(
            ("14", "`comm.reduce_scatter_single` and `comm.all_gather_single` of `labkit.run_ranks`"),
            ("15", "`torch.nn.parallel.DistributedDataParallel`"),
        ),
        optional_minutes=145,
    ),
    Lab(
        "17",
        "Tensor parallelism",
        "scale",
        270,
        70,
        needs=("14",),
        instead=(("14", "`comm.all_reduce` and `comm.all_gather_single` of `labkit.run_ranks`"),),
    ),
    Lab(
        "18",
        "Pipelines",
        "scale",
        255,
        100,
        needs=("14",),
        instead=(("14", "`comm.send`, `comm.recv`, `comm.isend` and `comm.irecv` of `labkit.run_ranks`"),),
    ),
    Lab(
        "19",
        "Long context and experts",
        "scale",
        310,
        60,
        needs=("13", "14"),
        instead=(
            (
                "13",
                "`torch.logaddexp`: it adds two sums of exponentials that are given by their logarithms",
            ),
            ("14", "`comm.isend`, `comm.irecv` and `comm.all_to_all_single` of `labkit.run_ranks`"),
        ),
    ),
    Lab("20", "All of it together", "end", 290, 50),
)


def find_lab(lab: str) -> Lab:
    """The lab with this number, "05". Raises KeyError."""
    return {one.id: one for one in every_lab()}[lab]


def every_lab() -> tuple[Lab, ...]:
    """The course's labs, then those that say themselves what they are. Raises ValueError, which names the file."""
    known = {one.id for one in LABS}
    files = [path for folder in FOLDERS for path in sorted(folder.glob("lab[0-9][0-9]/lab.toml"))]
    return (*LABS, *(read_lab(path) for path in files if path.parent.name.removeprefix("lab") not in known))


def read_lab(path: Path) -> Lab:
    """What `lab21/lab.toml` says of lab 21: title and minutes, and what else a `Lab` may have. Raises ValueError."""
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        needs, instead = tuple(fields.pop("needs", ())), tuple(fields.pop("instead", {}).items())
        lab = Lab(path.parent.name.removeprefix("lab"), track="end", needs=needs, instead=instead, **fields)
        if not (isinstance(lab.title, str) and isinstance(lab.minutes, int) and lab.stands):
            raise ValueError("it needs a title, and minutes of more than 0")
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} does not say what the lab is: {error}") from error
    return lab


def rounded(minutes: float) -> int:
    """Minutes as they are told: to the next 5, and at least 5."""
    return max(STEP_MINUTES, STEP_MINUTES * round(minutes / STEP_MINUTES))


def in_hours(minutes: int) -> str:
    """ "45 min", "2 h", "2 h 45 min" """
    hours, rest = divmod(minutes, 60)
    return " ".join([f"{hours} h"] * (hours > 0) + [f"{rest} min"] * (rest > 0 or not hours))
