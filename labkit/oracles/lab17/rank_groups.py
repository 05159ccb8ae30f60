"""Lab 17: the oracle of a cluster's groups: those of a grid of ranks, and a refusal of sizes that do not fit.

The groups stand in `mesh_groups`, and what mistakes make of them in `group_mistakes`.
"""

from __future__ import annotations

from itertools import permutations

from labkit.exercises.lab17.rank_groups import KINDS
from labkit.oracles.calls import as_call
from labkit.oracles.lab17.group_mistakes import (
    blocks,
    experts_exchanged,
    in_order,
    is_right_but_for_the_order,
    kind_is,
    leaves_ranks_out,
    lines,
    mixed,
    only_cut_up,
    refusal_missing,
    refused_though_it_fits,
    strided_experts,
    wrong_kinds,
)
from labkit.oracles.lab17.mesh_groups import ORDER, groups_are_right, refuses, right
from labkit.spec import Hint, Observation, Oracle

WHAT = {
    "tensor": "have different samples, parts of a sequence or layers",
    "context": "have different samples, layers, or parts of a layer",
    "data": "have different parts of a sequence, layers, or parts of a layer",
    "pipeline": "have different samples, parts of a sequence, or parts of a layer",
    "expert": "have different layers, or parts of a layer",
    "gradients": "hold different weights",
    "expert_gradients": "hold different experts, or different parts of them",
}
"""Of the ranks that may not be in one group of a kind, what makes them so."""


def in_words(run: Observation) -> str:
    case = run.case
    sizes = {name: getattr(case, name) for name in ("context", "pipeline", "expert") if getattr(case, name) > 1}
    return as_call("rank_groups", case.n_nodes, case.ranks_per_node, tensor=case.tensor, **sizes)


RANK_GROUPS = Oracle(
    id="17-rank-groups",
    call=in_words,
    judge=(refuses, groups_are_right),
    axis="numbers of nodes and ranks, sizes of groups, and sizes that do not fit",
    errors={
        "invalid for input of size": "The sizes do not divide the number of ranks. Look at that before you reshape, "
        "and raise a ValueError of your own.",
    },
    diagnose=(
        Hint(
            lambda run: not run.got["refused"] and not run.case.is_refused and set(run.got["groups"]) != set(KINDS),
            "A kind is missing or has another name. Return all seven, under the names of the list.",
        ),
        Hint(
            lambda run: refused_though_it_fits(run) and run.case.data % run.case.expert != 0,
            "These sizes fit. `expert` has to divide data * context, and need not divide the size of the data groups.",
        ),
        Hint(
            lambda run: refused_though_it_fits(run) and bool(run.case.ranks_per_node % run.case.tensor_and_context),
            "These sizes fit. Only tensor groups have to stay inside a node: context groups may go from node to node.",
        ),
        Hint(
            refused_though_it_fits,
            "These sizes fit. A tensor group stays inside a node if `tensor` divides `ranks_per_node`; it need not be "
            "as large as a node.",
        ),
        Hint(
            refusal_missing(lambda case: case.leaves_node),
            "Tensor groups of these sizes have ranks on two nodes. That they are not larger than a node is not enough: "
            "`tensor` has to divide `ranks_per_node`.",
        ),
        Hint(
            refusal_missing(lambda case: not case.fits),
            "tensor * context * pipeline has to divide the number of ranks; what is left is the size of data groups.",
        ),
        Hint(
            refusal_missing(lambda case: not case.shares_experts),
            "`expert` has to divide data * context, the number of ranks that hold the same dense weights.",
        ),
        *(
            Hint(
                in_order(order),
                f"These are the groups of a grid whose ranks are numbered along {order[3]} first, then along "
                f"{order[2]}, {order[1]} and {order[0]}. Asked for is tensor first, then context, data and pipeline.",
            )
            for order in permutations(ORDER)
            if order != ORDER
        ),
        Hint(
            kind_is("data", lambda run: right(run)["gradients"]),
            "Ranks of a data group have different samples, and are alike in everything else. Those with different "
            "parts of the same sequence belong to a context group.",
        ),
        Hint(
            kind_is("data", lambda run: blocks(run, run.case.data)),
            "The data groups go across tensor groups: their ranks hold different parts of the layers, so an average of "
            "their gradients mixes unrelated weights. Ranks of a data group are alike in all but their samples.",
        ),
        Hint(
            kind_is("gradients", lambda run: right(run)["data"]),
            "Ranks that have different parts of a sequence hold the same weights, too. Gradients are averaged over "
            "data and context together.",
        ),
        Hint(
            kind_is("gradients", lambda run: blocks(run, run.case.n_ranks)),
            "Gradients are averaged over ranks that hold the same weights: those with the same place in the pipeline "
            "and in the tensor group.",
        ),
        Hint(
            kind_is(
                "expert_gradients",
                lambda run: right(run)["gradients"],
            ),
            "Ranks of an expert group hold different experts. The gradients of experts are averaged over the ranks "
            "with the same place in their expert groups.",
        ),
        Hint(
            kind_is("expert_gradients", lambda run: lines(strided_experts(run), "expert")),
            "Expert groups should be neighbours among the ranks that hold the same dense weights, and the ranks with "
            "the same experts lie further apart. Yours are the other way round.",
        ),
        Hint(
            kind_is("expert", lambda run: lines(strided_experts(run), "expert")),
            "Expert groups are neighbours among the ranks that hold the same dense weights: the first `expert` of "
            "them, the next `expert`, and so on. Yours take ranks that lie further apart.",
        ),
        Hint(
            kind_is("expert", lambda run: blocks(run, run.case.expert)),
            "Expert groups go across tensor groups. All ranks of an expert group have the same place in their tensor "
            "group and in the pipeline.",
        ),
        Hint(
            only_cut_up,
            "Where a kind is wrong, its groups are consecutive ranks. A reshape cuts ranks up in the order in which "
            "they stand. So move the kind's dimension to the end of the grid first: grid.movedim(dim, -1).",
        ),
        Hint(
            experts_exchanged,
            "`expert` and `expert_gradients` are exchanged: an expert group has `expert` ranks, which hold different "
            "experts. The ranks of the other kind hold the same ones.",
        ),
        *(
            Hint(
                lambda run, kind=kind: not wrong_kinds(run) & set(KINDS[: KINDS.index(kind)]) and mixed(kind)(run),
                f"Some {kind} group has ranks that {what}.",
            )
            for kind, what in WHAT.items()
        ),
        Hint(
            is_right_but_for_the_order,
            "The groups are right, but the ranks of each have to be in ascending order.",
        ),
        Hint(
            leaves_ranks_out,
            "Each rank is in exactly one group of each kind; where a kind has groups of 1, every rank has one of its "
            "own.",
        ),
    ),
)
