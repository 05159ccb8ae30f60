"""Lab 17: how groups look that follow another grid, or another idea of a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.exercises.lab17.rank_groups import KINDS, Grid
from labkit.oracles.lab17.mesh_groups import ORDER, grid_groups, right
from labkit.spec import CANNOT_TELL, CaseRun
from labkit.torch_oracles import groups_of_mesh


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
