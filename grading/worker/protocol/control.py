"""The datagrams between the sandbox and its forking process, which start, seal and end jobs.

Both ends are ours: no job can reach this socket. A job's own channels go with its Start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from grading.worker.seal import Seal
from grading.worker.wire.typed import Frame

if TYPE_CHECKING:
    from labkit.spec import Tree


@dataclass(frozen=True)
class JobPlace:
    """The folder of a job's process and the user that it becomes: `JobPlace("/tmp/job-3", 165537)`."""

    folder: str
    uid: int | None


@dataclass(frozen=True)
class Start(Frame):
    """Fork a job: `Start((JobPlace("/tmp/job-3", None),), ("files",))`; several places are the ranks of one job.

    grants: beyond the plain profile. trial: targets that the job tries to get at, in place of running anything.
    """

    kind: ClassVar[str] = "start"
    places: tuple[JobPlace, ...]
    grants: tuple[str, ...] = ()
    trial: dict[str, Tree] | None = None

    def to_parts(self) -> dict[str, Tree]:
        return asdict(self)

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        return cls(tuple(JobPlace(**place) for place in parts["places"]), tuple(parts["grants"]), parts["trial"])


@dataclass(frozen=True)
class SealJob(Frame):
    """Seal the job or one of its ranks: `SealJob(Seal(cpu_s=2.0), 0)`."""

    kind: ClassVar[str] = "seal"
    seal: Seal
    rank: int = 0

    def to_parts(self) -> dict[str, Tree]:
        return asdict(self)

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        return cls(Seal(**parts["seal"]), parts["rank"])


@dataclass(frozen=True)
class Kill(Frame):
    """End the job and whatever it started: `Kill()`."""

    kind: ClassVar[str] = "kill"


@dataclass(frozen=True)
class ServerReady(Frame):
    """Everything is loaded, and jobs can be started: `ServerReady()`."""

    kind: ClassVar[str] = "ready"


@dataclass(frozen=True)
class ServerFailed(Frame):
    """There will be no jobs: `ServerFailed("OSError: [Errno 28] No space left on device")`."""

    kind: ClassVar[str] = "failed"
    reason: str


@dataclass(frozen=True)
class JobStarted(Frame):
    """The job's first process, as its own namespace counts it: `JobStarted(4711)`."""

    kind: ClassVar[str] = "started"
    pid: int


@dataclass(frozen=True)
class JobSealed(Frame):
    """What the job is left with holds from here on, or why not: `JobSealed()`, `JobSealed("its limits ...")`."""

    kind: ClassVar[str] = "sealed"
    problem: str | None = None


@dataclass(frozen=True)
class JobEnded(Frame):
    """Nothing of the job is left: `JobEnded("memory", 3.25)`.

    over: the limit for which it was ended, "memory" or, of a sealed job of one process, "cpu". cpu_s: its CPU
    time.
    """

    kind: ClassVar[str] = "ended"
    over: str | None = None
    cpu_s: float = 0.0


COMMANDS = (Start, SealJob, Kill)
EVENTS = (ServerReady, ServerFailed, JobStarted, JobSealed, JobEnded)


def to_datagram(frame: Frame) -> bytes:
    return json.dumps({"kind": frame.kind, "parts": frame.to_parts()}).encode()


def from_datagram(data: bytes, due: tuple[type[Frame], ...]) -> Frame:
    """Raises KeyError or ValueError for what is no such datagram."""
    read = json.loads(data)
    return {frame.kind: frame for frame in due}[read["kind"]].from_parts(read["parts"])
