"""Lab 17: what is asked, given and run for the groups of a cluster's ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

KINDS = ("tensor", "context", "data", "pipeline", "expert", "gradients", "expert_gradients")


@dataclass(frozen=True)
class Grid(Case):
    """n_nodes nodes of ranks_per_node ranks, and how many ranks a group of each kind has; data groups get the rest."""

    n_nodes: int = 2
    ranks_per_node: int = 8
    tensor: int = 2
    context: int = 1
    pipeline: int = 1
    expert: int = 1

    @property
    def n_ranks(self) -> int:
        return self.n_nodes * self.ranks_per_node

    @property
    def tensor_and_context(self) -> int:
        """The ranks that work on one sequence."""
        return self.tensor * self.context

    @property
    def leaves_node(self) -> bool:
        """Whether some tensor group would have ranks on two nodes."""
        return self.ranks_per_node % self.tensor != 0

    @property
    def fits(self) -> bool:
        """Whether there are such groups, of whole numbers of ranks."""
        return self.n_ranks % (self.tensor * self.context * self.pipeline) == 0

    @property
    def data(self) -> int:
        return self.n_ranks // (self.tensor * self.context * self.pipeline)

    @property
    def shares_experts(self) -> bool:
        """Whether experts can be dealt to so many ranks."""
        return self.fits and (self.data * self.context) % self.expert == 0

    @property
    def is_refused(self) -> bool:
        return self.leaves_node or not self.fits or not self.shares_experts


def no_inputs(case: Grid, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def drive_rank_groups(ans, case: Grid, tree: dict, stage) -> dict[str, Any]:
    """groups: by kind, each a list of ranks, in order of their first ranks; refused: whether ValueError was raised."""
    try:
        found = ans.rank_groups(
            case.n_nodes, case.ranks_per_node, case.tensor, case.context, case.pipeline, case.expert
        )
    except ValueError:
        return {"groups": None, "refused": True}
    groups = {str(kind): sorted([int(rank) for rank in group] for group in groups) for kind, groups in found.items()}
    return {"groups": groups, "refused": False}


RANK_GROUPS = Exercise(
    id="17-rank-groups",
    title="Who talks to whom",
    points=1.5,
    optional=True,
    minutes=25,
    difficulty=2,
    answers=(Answer("rank_groups"),),
    public=(
        Grid(pipeline=4),
        Grid(4, 4, 2, context=2, pipeline=2),
        Grid(2, 8, 2, context=2, expert=4),
        Grid(3, 8, 4, context=1, pipeline=3, expert=2),
        Grid(2, 4, 1, context=4, pipeline=1, expert=2),
        Grid(1, 4, 4),
        Grid(2, 4, 2, context=4),
        Grid(2, 4, 2, context=2, expert=4),
        Grid(2, 4, 8),
        Grid(2, 6, 4, pipeline=3),
        Grid(2, 8, 2, pipeline=3),
        Grid(2, 4, 2, pipeline=2, expert=4),
    ),
    inputs=no_inputs,
    drive=drive_rank_groups,
)
