"""How a worker is to confine itself and its jobs, as plain data that fits on a command line.

Made by the supervisor, obeyed by the forking process; it holds no secret.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from grading.worker.confine.tier import Tier

MiB = 2**20


@dataclass(frozen=True)
class Place:
    """One step in laying out the root that a worker sees: "bind" and "link" show a path, "cover" empties one.

    source: what is shown at a "bind"'s path, where that is not the machine's own.
    """

    how: Literal["bind", "link", "cover"]
    path: str
    source: str | None = None


@dataclass(frozen=True)
class Limits:
    """Caps on one job. Memory counts for each process and, once more, for all of a job's processes together.

    n_tasks counts processes and threads; disk is the private temporary space, in memory.
    """

    memory_bytes: int = 4096 * MiB
    file_bytes: int = 32 * MiB
    disk_bytes: int = 32 * MiB
    n_files: int = 4096
    n_tasks: int = 64
    n_descriptors: int = 256


PLAIN = Limits()
"""What a job may take unless its exercise was granted more."""

GRANTS = ("loopback", "files", "subprocess", "compiler")
"""What an exercise may declare under `Run.needs`."""
_ROOMY = frozenset({"files", "compiler"})
"""Those that come with more temporary space."""
NO_FILES = "no files"
"""The opposite of a grant: hardly any temporary space, for a job whose memory is watched."""

RANK = "rank"
"""Another opposite: a rank of an exercise that has several, which the others must not reach beside its channel."""
MOST_RANKS = 16


def with_grants(limits: Limits, grants: tuple[str, ...]) -> Limits:
    """The limits of a job whose exercise was granted these."""
    more = asdict(limits)
    if not _ROOMY.isdisjoint(grants):
        more |= {"file_bytes": 512 * MiB, "disk_bytes": 1024 * MiB, "n_files": 65536}
    if NO_FILES in grants:
        more |= {"disk_bytes": MiB, "n_files": 256, "n_descriptors": 64}
    if "subprocess" in grants or "compiler" in grants:
        more |= {"n_tasks": 256, "n_descriptors": 1024}
    return Limits(**more)


@dataclass(frozen=True)
class Plan:
    """preload: modules to have loaded before the first job. places: in the order in which they are laid out.

    As JSON, shortened:

        {"tier": {"name": "layered", "in_bubblewrap": true, "enters_namespaces": false, ...},
         "preload": ["torch", "grading.worker.job"],
         "places": [{"how": "bind", "path": "/usr", "source": null}, ...],
         "limits": {"memory_bytes": 4294967296, "file_bytes": 33554432, "n_tasks": 64, ...}}
    """

    tier: Tier
    preload: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    limits: Limits = PLAIN

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        data = json.loads(text)
        places = tuple(Place(**place) for place in data["places"])
        return cls(Tier(**data["tier"]), tuple(data["preload"]), places, Limits(**data["limits"]))
