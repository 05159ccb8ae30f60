"""Lab 16: what each way of sharding keeps on a rank and sends in a step, and how libraries are told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

METHODS = ("ddp", "zero1", "zero2", "zero3", "hybrid")


@dataclass(frozen=True)
class Volume(Case):
    """n_nodes nodes of ranks_per_node ranks train a model of n_params, n_micro micro-batches of micro_batch a step."""

    method: str
    n_params: int
    n_nodes: int = 1
    ranks_per_node: int = 4
    n_micro: int = 1
    micro_batch: int = 2

    @property
    def n_ranks(self) -> int:
        return self.n_nodes * self.ranks_per_node


def no_inputs(case: Volume, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def number(value: Any) -> Any:
    """A count as a float, whatever kind of number it is; anything else as it is."""
    return float(value) if hasattr(value, "__float__") else value


def drive(ans, case: Volume, tree: dict, stage) -> dict[str, Any]:
    """mesh: what PyTorch would be given; kept: bytes of a rank; sent and crossed: bytes of a step; config: what
    DeepSpeed would be given, which has no hybrid sharding.
    """
    sizes = (case.n_nodes, case.ranks_per_node)
    sent, crossed = ans.bytes_sent(case.method, case.n_params, *sizes, case.n_micro)
    mesh = ans.mesh_shape(case.method, *sizes)
    config = (case.method, *sizes, case.micro_batch, case.n_micro)
    return {
        "mesh": [number(one) for one in mesh] if isinstance(mesh, (tuple, list)) else mesh,
        "kept": number(ans.bytes_kept(case.method, case.n_params, *sizes)),
        "sent": number(sent),
        "crossed": number(crossed),
        "config": None if case.method == "hybrid" else ans.deepspeed_config(*config),
    }


PAPER = 7_500_000_000
"""The parameters of the ZeRO paper's example, on 64 ranks."""

VOLUME = Exercise(
    id="16-volume",
    title="What a rank keeps and sends",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("mesh_shape"), Answer("bytes_kept"), Answer("bytes_sent"), Answer("deepspeed_config")),
    public=(
        *(Volume(method, PAPER, 8, 8) for method in METHODS),
        *(Volume(method, 1_200_000, 2, 3, n_micro=4, micro_batch=5) for method in METHODS),
        *(Volume(method, 24_000, 1, 4, n_micro=2) for method in METHODS),
        Volume("zero3", 4000, 1, 1, n_micro=3),
    ),
    inputs=no_inputs,
    drive=drive,
)
