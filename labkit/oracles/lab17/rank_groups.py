"""Lab 17: what is true of a cluster's groups: those of PyTorch's `DeviceMesh`, whose last dimension runs fastest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

from labkit.exercises.lab17.rank_groups import KINDS, Grid
from labkit.oracles.calls import as_call
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle
from labkit.torch_oracles import groups_of_mesh

Groups = dict[str, list[list[int]]]

ORDER = ("pipeline", "data", "context", "tensor")
"""The dimensions of the grid, the fastest last."""
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


def grid_groups(case: Grid, order: tuple[str, ...] = ORDER) -> Groups:
    """All kinds of groups of the grid whose dimensions run in this order. Only those that tell of experts need it as
    it should be: data and context one after the other."""
    sizes = {name: getattr(case, name) for name in order}
    found = groups_of_mesh([sizes[name] for name in order], order)
    merged = [name for name in order if name != "context"]
    n_shares = case.data * case.context
    if abs(order.index("data") - order.index("context")) == 1:
        shape = [n_shares if name == "data" else sizes[name] for name in merged]
        found["gradients"] = groups_of_mesh(shape, merged)["data"]
        split = [part for name in merged for part in (("others", "expert") if name == "data" else (name,))]
        inner = {**sizes, "others": n_shares // case.expert, "expert": case.expert}
        experts = groups_of_mesh([inner[name] for name in split], split)
        found |= {"expert": experts["expert"], "expert_gradients": experts["others"]}
    return found


@once
def right(run: CaseRun[Grid]) -> Groups:
    return grid_groups(run.case)


def refuses(run: CaseRun[Grid]) -> str | None:
    """A property: sizes that do not fit raise ValueError, and no others do."""
    case, refused = run.case, run.got["refused"]
    if refused == case.is_refused:
        return None
    if refused:
        return "rank_groups raised ValueError for sizes that fit"
    if case.leaves_node:
        return f"no ValueError: tensor groups of {case.tensor} do not fit into nodes of {case.ranks_per_node} ranks"
    if not case.fits:
        per_copy = case.tensor * case.context * case.pipeline
        return f"no ValueError: {case.n_ranks} ranks are no multiple of {per_copy} = tensor * context * pipeline"
    return (
        f"no ValueError: {case.data * case.context} ranks (data * context) cannot be cut into groups of {case.expert}"
    )


def groups_are_right(run: CaseRun[Grid]) -> str | None:
    """A property: of each kind the groups that a DeviceMesh has."""
    if run.case.is_refused:
        return None
    got = run.got["groups"]
    if set(got) != set(KINDS):
        return f"rank_groups returned {', '.join(sorted(got))}; asked for are {', '.join(KINDS)}"
    for kind in KINDS:
        if got[kind] != right(run)[kind]:
            return f"{kind} groups: expected {_shown(right(run)[kind])}, got {_shown(got[kind])}"
    return None


def _shown(groups: list[list[int]]) -> str:
    shown = ", ".join(map(str, groups[:4]))
    return shown + (f", ... ({len(groups)} in all)" if len(groups) > 4 else "")


def wrong_kinds(run: CaseRun[Grid]) -> set[str]:
    return {kind for kind in KINDS if run.got["groups"].get(kind) != right(run)[kind]}


def in_order(order: tuple[str, ...]) -> Callable[[CaseRun[Grid]], Any]:
    """A hint's condition: these are the groups of a grid in another order. CANNOT_TELL where that is the same."""

    def when(run: CaseRun[Grid]) -> Any:
        if run.case.is_refused:
            return False
        others = grid_groups(run.case, order)
        if all(others[name] == right(run)[name] for name in ORDER):
            return CANNOT_TELL if not wrong_kinds(run) & set(ORDER) else False
        return all(run.got["groups"][name] == others[name] for name in ORDER)

    return when


def kind_is(kind: str, wrong: Callable[[CaseRun[Grid]], list[list[int]]]) -> Callable[[CaseRun[Grid]], Any]:
    """A hint's condition: this kind has these groups, and what is in ORDER beside it is right. CANNOT_TELL where these
    are the right ones."""

    def when(run: CaseRun[Grid]) -> Any:
        if run.case.is_refused or run.got["refused"]:
            return False
        if wrong_kinds(run) & set(ORDER) - {kind}:
            return False
        groups = sorted(wrong(run))
        if groups == right(run)[kind]:
            return CANNOT_TELL if run.got["groups"][kind] == groups else False
        return run.got["groups"][kind] == groups

    return when


def lines(shape: dict[str, int], name: str) -> list[list[int]]:
    """The groups of one dimension of a grid."""
    return groups_of_mesh(list(shape.values()), list(shape))[name]


def mixed(kind: str) -> Callable[[CaseRun[Grid]], bool]:
    """A hint's condition: a group of this kind has two ranks that may not be in one."""

    def when(run: CaseRun[Grid]) -> bool:
        if run.case.is_refused:
            return False
        group_of = {rank: number for number, group in enumerate(right(run)[kind]) for rank in group}
        got = run.got["groups"][kind]
        return any(len({group_of[rank] for rank in group}) > 1 for group in got)

    return when


def blocks(run: CaseRun[Grid], size: int) -> list[list[int]]:
    """Ranks one after the other."""
    return [list(range(first, first + size)) for first in range(0, run.case.n_ranks, size)]


def only_cut_up(run: CaseRun[Grid]) -> bool:
    """Every wrong kind has groups of the right size, of ranks one after the other."""
    if run.case.is_refused or run.got["refused"]:
        return False
    wrong = wrong_kinds(run)
    return bool(wrong) and all(run.got["groups"][kind] == blocks(run, len(right(run)[kind][0])) for kind in wrong)


def experts_exchanged(run: CaseRun[Grid]) -> bool:
    kinds = ("expert", "expert_gradients")
    if run.case.is_refused or run.got["refused"] or wrong_kinds(run) != set(kinds):
        return False
    return all(run.got["groups"][a] == right(run)[b] for a, b in (kinds, kinds[::-1]))


def shares(run: CaseRun[Grid]) -> int:
    return run.case.data * run.case.context


def strided_experts(run: CaseRun[Grid]) -> dict[str, int]:
    case = run.case
    others = shares(run) // case.expert
    return {"pipeline": case.pipeline, "expert": case.expert, "others": others, "tensor": case.tensor}


def refusal_missing(condition: Callable[[Grid], bool]) -> Callable[[CaseRun[Grid]], Any]:
    """A hint's condition: of what should have been refused, just such cases were not."""
    return lambda run: run.case.is_refused and not run.got["refused"] and condition(run.case)


def refused_though_it_fits(run: CaseRun[Grid]) -> bool:
    return run.got["refused"] and not run.case.is_refused


def is_right_but_for_the_order(run: CaseRun[Grid]) -> bool:
    if run.case.is_refused or not wrong_kinds(run):
        return False
    return all(sorted(map(sorted, run.got["groups"][kind])) == right(run)[kind] for kind in KINDS)


def leaves_ranks_out(run: CaseRun[Grid]) -> bool:
    """Of a wrong kind, some rank is in no group or in several."""
    if run.case.is_refused:
        return False
    ranks = list(range(run.case.n_ranks))
    groups = (run.got["groups"][kind] for kind in wrong_kinds(run))
    return any(sorted(rank for group in each for rank in group) != ranks for each in groups)


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
