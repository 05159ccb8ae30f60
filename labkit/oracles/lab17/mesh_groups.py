"""Lab 17: what is true of a cluster's groups: those of PyTorch's `DeviceMesh`, whose last dimension runs fastest."""

from __future__ import annotations

from labkit.exercises.lab17.rank_groups import KINDS, Grid
from labkit.oracles.hints import once
from labkit.spec import CaseRun
from labkit.torch_oracles import groups_of_mesh

Groups = dict[str, list[list[int]]]

ORDER = ("pipeline", "data", "context", "tensor")
"""The dimensions of the grid, the fastest last."""


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
