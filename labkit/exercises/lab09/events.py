"""Lab 09: what is asked, given and run for the times of jobs on several streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

from labkit.simdevice import Machine, NotReady, SimDevice, Stream, as_plain
from labkit.spec import Answer, Case, Exercise

LAUNCH_S = 5e-6
BYTES_PER_S = 1e7
"""Of memory and of both directions of the link: slow, so that tiny tensors take milliseconds."""
STREAM_OF = {"kernels": 0, "to device": 1, "to host": 2}
"""Each kind of work has a stream and an engine of its own, so that none waits for another's."""


class Job(NamedTuple):
    """n_calls kernels on, or copies of, a tensor of n float32."""

    kind: Literal["kernels", "to device", "to host"]
    n: int
    n_calls: int = 1


@dataclass(frozen=True)
class Jobs(Case):
    """jobs: in the order in which they are to be issued."""

    jobs: tuple[Job, ...]

    def __post_init__(self) -> None:
        # As plain data, which is how a case travels, a job is a tuple without names.
        object.__setattr__(self, "jobs", tuple(Job(*job) for job in self.jobs))


MACHINE = Machine(
    "the device of the check",
    memory_bytes_per_s=BYTES_PER_S,
    to_device_bytes_per_s=BYTES_PER_S,
    to_host_bytes_per_s=BYTES_PER_S,
    launch_s=LAUNCH_S,
    kernel_s=0.0,
    copy_s=0.0,
)


def make_jobs(case: Jobs, sim: SimDevice) -> list[tuple[Callable[[], object], Stream]]:
    """Each job as a function and the stream that it belongs to; their tensors wait on both sides, pinned."""
    streams = {0: sim.default_stream(), 1: sim.Stream(), 2: sim.Stream()}
    return [(_function(job, sim), streams[STREAM_OF[job.kind]]) for job in case.jobs]


def _function(job: Job, sim: SimDevice) -> Callable[[], object]:
    on_host = torch.ones(job.n).pin_memory()
    on_device = torch.ones(job.n).to(sim.device)

    def run() -> None:
        for _ in range(job.n_calls):
            if job.kind == "kernels":
                on_device.neg_()
            elif job.kind == "to device":
                on_device.copy_(on_host, non_blocking=True)
            else:
                on_host.copy_(on_device, non_blocking=True)

    return run


def drive_events(ans, case: Jobs, tree: dict, stage) -> dict[str, object]:
    """ms: what the answer read. commands: what the device was asked for meanwhile. refused: its complaint, if any.

    stream_left: whether the stream that was current before the call is current no longer.
    """
    with SimDevice(MACHINE) as sim:
        jobs = make_jobs(case, sim)
        sim.synchronize()
        n_before = len(sim.commands)
        try:
            ms, refused = ans.time_jobs(jobs, sim), None
        except NotReady as error:
            ms, refused = None, str(error)
        commands = as_plain(sim.commands[n_before:])
        stream_left = sim.current_stream() != sim.default_stream()
        return {"ms": ms, "refused": refused, "commands": commands, "stream_left": stream_left}


EVENTS = Exercise(
    id="09-events",
    title="Time jobs on several streams with events",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("time_jobs"),),
    public=(
        Jobs((Job("kernels", 2000), Job("kernels", 6000), Job("kernels", 1000, 3))),
        Jobs(
            (
                Job("to device", 30_000),
                Job("kernels", 3000, 2),
                Job("to device", 2000, 2),
                Job("kernels", 5000),
                # Last, so that whoever sets its stream and leaves it so shows.
                Job("to host", 8000),
            )
        ),
    ),
    inputs=lambda case, generator: {},
    drive=drive_events,
)
