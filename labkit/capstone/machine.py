"""The machines of the capstone: what a card holds, computes and moves, by its published figures.

A machine is data. What a step takes on one is worked out in `bill`. The fourth lies in a file of its own, with its
ghosts: students get it in the last week of a course.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from labkit.spec import GiB

TERA, GIGA = 1e12, 1e9


@dataclass(frozen=True)
class Machine:
    """One machine, each of whose cards has `memory_bytes`.

    flops_per_s: of products, by the dtype that is multiplied; a card cannot run a product of a dtype that is missing.
    bytes_per_s: of the card's memory. host_bytes_per_s: between card and host, each way. link_bytes_per_s: what a card
    sends to its neighbour in a ring of all cards, and latency_s what each message takes beside its bytes.

        Machine("pocket", "a pocket card", 2 * GiB, {"float32": 1e12}, 1e11, 4e9)
    """

    name: str
    title: str
    memory_bytes: int
    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    host_bytes_per_s: float
    n_cards: int = 1
    link_bytes_per_s: float = 0.0
    latency_s: float = 0.0
    source: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Machine:
        return cls(**data)


_ALL = (
    Machine(
        "basement",
        "one 8 GB card in an older motherboard, four lanes of PCIe 3.0",
        8 * GiB,
        {"float32": 20.3 * TERA, "bfloat16": 40.6 * TERA, "float16": 40.6 * TERA},
        448 * GIGA,
        3.94 * GIGA,
        source="NVIDIA GA102 whitepaper, appendix on the GeForce RTX 3070 (dense, sums in float32)",
    ),
    Machine(
        "v100",
        "one V100 of 16 GB: tensor cores for float16, no bfloat16",
        16 * GiB,
        {"float32": 15.7 * TERA, "float16": 125 * TERA},
        900 * GIGA,
        15.75 * GIGA,
        source="NVIDIA Tesla V100 data sheet (SXM2)",
    ),
    Machine(
        "quad",
        "four 8 GB cards in one node, sixteen lanes of PCIe 4.0 each",
        8 * GiB,
        {"float32": 20.3 * TERA, "bfloat16": 40.6 * TERA, "float16": 40.6 * TERA},
        448 * GIGA,
        31.5 * GIGA,
        n_cards=4,
        link_bytes_per_s=31.5 * GIGA,
        latency_s=10e-6,
        source="four of the basement's cards; PCI-SIG for the lanes",
    ),
)

FOURTH = Path(__file__).with_name("fourth.json")
"""{"machine": a machine as JSON, "ghosts": by level}; not there before it is handed out."""


def read_fourth(path: Path = FOURTH) -> Mapping[str, Any]:
    """What the file holds; nothing where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def machines_with(fourth: Mapping[str, Any]) -> Mapping[str, Machine]:
    """All machines by name, that of the file among them if there is one."""
    more = (Machine.from_json(fourth["machine"]),) if fourth else ()
    return {machine.name: machine for machine in (*_ALL, *more)}


MACHINES: Mapping[str, Machine] = machines_with(read_fourth())
