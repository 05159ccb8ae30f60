"""Lab 16: what is true of a model of sharded units: one process's masters, calls, bytes, and little that is whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labkit.compare import came_by, compare, inputs_untouched, sent_around
from labkit.exercises.lab16.fsdp import LATER, MOMENTS, Units
from labkit.oracles.lab16.fsdp_costs import (
    gathered_again,
    held_backward,
    held_forward,
    moments_of,
    most_at_once,
    most_bytes,
    most_calls,
    reduced_as_asked,
    sent_by_moments,
)
from labkit.oracles.lab16.fsdp_roundings import bound
from labkit.oracles.lab16.fsdp_training import Reduce, Shards, added, at_the_start, averaged_twice, mean, own, trained
from labkit.oracles.lab16.sharded_steps import N_EQUAL_PARTS, WRONG_LENGTHS
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

ALIKE = {"float32": Tolerance(atol=1e-3, rtol=1e-3), "bfloat16": Tolerance(atol=2e-2, rtol=5e-2)}
"""By the dtype of weights and activations, whether an answer ended as with a mistake: further off than any rounding."""


def close(run: CaseRun[Units], wanted: Shards) -> bool:
    got = [one["shards"] for one in run.got["ranks"]]
    return compare(wanted, got, ALIKE[run.case.param_dtype]) is None


def one_shard_each(run: CaseRun[Units]) -> str | None:
    """A property: a unit has one parameter, its float32 shard, which is trained unless the unit is frozen."""
    for rank, one in enumerate(run.got["ranks"]):
        for k, (params, kind, size) in enumerate(zip(one["params"], run.case.kinds, run.case.shard_sizes, strict=True)):
            wanted = [[size, "torch.float32", kind != "frozen"]]
            if params != wanted:
                return (
                    f"unit {k} ({kind}) of rank {rank} has the parameters {_in_words(params)}, and should have "
                    f"{_in_words(wanted)}"
                )
    return None


def _in_words(params: list[list[Any]]) -> str:
    each = [f"{n} {dtype.removeprefix('torch.')}{'' if trained_ else ', frozen'}" for n, dtype, trained_ in params[:3]]
    return f"[{'; '.join(each)}{'; ...' if len(params) > 3 else ''}]"


def starts_exactly(run: CaseRun[Units]) -> str | None:
    """A property: the shards begin with the bits of the module's weights."""
    for rank, (wanted, one) in enumerate(zip(at_the_start(run), run.got["ranks"], strict=True)):
        if found := compare(wanted, one["start"]):
            return f"the shard of unit {found.path} on rank {rank} begins with {found.got}, not with {found.expected}"
    return None


def used_as_asked(run: CaseRun[Units]) -> str | None:
    """A property: weights are used in param_dtype, so what a unit returns is in it as well."""
    for rank, one in enumerate(run.got["ranks"]):
        if one["out"] != [f"torch.{run.case.param_dtype}"]:
            return (
                f"the last unit of rank {rank} returned {', '.join(one['out'])}, and x is torch.{run.case.param_dtype}"
            )
    return None


used_as_asked.hint = (
    "Weights are gathered and used in param_dtype: what a unit returns has the dtype of its x. Only the shard and the "
    "reduction may be in float32."
)


def as_in_one_process(run: CaseRun[Units]) -> str | None:
    """A property: after the steps the shards are parts of one process's masters."""
    wanted = trained(run, mean)
    for rank, (mine, one) in enumerate(zip(wanted, run.got["ranks"], strict=True)):
        if found := compare(mine, one["shards"], bound(run)):
            return (
                f"after {run.case.n_steps} step{'s' * (run.case.n_steps > 1)} the shard of unit {found.path} on rank "
                f"{rank} has {found.got}, and one process {found.expected}"
            )
    return None


def ended_as(reduce: Reduce, stale: str = "") -> Callable[[CaseRun[Units]], Any]:
    """A hint's condition: the shards ended as with this mistake. CANNOT_TELL where it changes nothing."""

    def when(run: CaseRun[Units]) -> Any:
        wrong = trained(run, reduce, stale)
        right = trained(run, mean)
        if compare(right, wrong, ALIKE[run.case.param_dtype]) is None:
            return CANNOT_TELL
        return close(run, wrong)

    return when


def nearly_right(run: CaseRun[Units]) -> bool:
    """Not right, but as close as if gradients had had fewer bits on the way."""
    return as_in_one_process(run) is not None and close(run, trained(run, mean))


def kinds_with_other_params(run: CaseRun[Units]) -> set[str]:
    """The kinds of the units whose parameters are not as they should be."""
    found = set()
    for one in run.got["ranks"]:
        for params, kind, size in zip(one["params"], run.case.kinds, run.case.shard_sizes, strict=True):
            if params != [[size, "torch.float32", kind != "frozen"]]:
                found.add(kind)
    return found


def some_params(condition: Callable[[list, int], bool]) -> Callable[[CaseRun[Units]], bool]:
    """Some unit's parameters, and the length that its shard should have, are such."""
    return lambda run: any(
        condition(params, size)
        for one in run.got["ranks"]
        for params, size in zip(one["params"], run.case.shard_sizes, strict=True)
    )


def only_the_last_learns(run: CaseRun[Units]) -> Any:
    """Of several units that are trained, all but the last are as at the start; that one too before a frozen unit."""
    learning = [k for k, kind in enumerate(run.case.kinds) if kind != "frozen"]
    if len(learning) < 2:
        return CANNOT_TELL
    moved = {k for one in run.got["ranks"] for k in learning if not torch.equal(one["start"][k], one["shards"][k])}
    return moved == {learning[-1]} or (not moved and run.case.kinds[-1] == "frozen")


def in_words(run: Observation) -> str:
    case = run.case
    micro = f" of {case.n_micro} micro-batches" * (case.n_micro > 1)
    return (
        f"{case.n_steps} step{'s' * (case.n_steps > 1)}{micro}, units {', '.join(case.kinds)} of width {case.width} on "
        f"{case.n_ranks} rank{'s' * (case.n_ranks > 1)}, param_dtype {case.param_dtype}, reduce_dtype "
        f"{case.reduce_dtype}"
    )


TIED_TWICE = (
    "Tied layers share one weight. module.parameters() lists the shared weight once, and so it is kept and gathered "
    "once; one of its names is enough for functional_call."
)

KEPT_FORWARD = (
    "Between two units whole weights are still there, and shards alone should be. Look for who keeps them: autograd "
    "keeps what backward needs, an attribute keeps what it refers to, the module keeps its own, and a shard that is a "
    "view keeps the row that it was cut from."
)
KEPT_BACKWARD = (
    "In the backward pass the weights of several units are there at once. Free a unit's weights when its backward pass "
    "is done."
)

FSDP = Oracle(
    id="16-fsdp",
    call=in_words,
    judge=(
        inputs_untouched,
        one_shard_each,
        starts_exactly,
        used_as_asked,
        as_in_one_process,
        gathered_again,
        reduced_as_asked,
        came_by(lambda run: [(moment, None) for moment in moments_of(run.case)]),
        sent_around(
            sent_by_moments,
            "Units are not gathered when they are used: each one in its own forward pass, and once more in its own "
            "backward pass, in which its gradient is reduced, too.",
        ),
    ),
    axis="numbers of ranks, tied and frozen units, dtypes, and units of a MB",
    errors={
        "got multiple values for keys": TIED_TWICE,
        "incorrect number of gradients": "backward returns one value for each argument of forward after ctx, in their "
        "order: a gradient, or None for what has none.",
        "modified by an inplace operation": "Autograd counts writes into tensors that it has kept. Gather into a new "
        "tensor, or into tensor.data, which it does not watch.",
        WRONG_LENGTHS: N_EQUAL_PARTS.format(what="the row"),
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. Convert to param_dtype before the all-gather, and reduce in reduce_dtype. A unit is "
            "gathered twice and reduced once (an all-reduce is two passes); a frozen one is not reduced.",
        ),
        Budget(
            "collectives",
            most_calls,
            "Too many calls: of each unit one all-gather in the forward pass, one in the backward pass for all its "
            "tensors together, and one reduce-scatter unless it is frozen.",
        ),
        Budget("held_bytes", held_forward, KEPT_FORWARD, at=MOMENTS[0]),
        Budget("held_bytes", held_backward, KEPT_BACKWARD, at=MOMENTS[1]),
        Budget("held_bytes", lambda run: held_forward(run, later=True), KEPT_FORWARD, at=LATER[0]),
        Budget("held_bytes", lambda run: held_backward(run, later=True), KEPT_BACKWARD, at=LATER[1]),
        Budget("peak_bytes", most_at_once, "More than two units are whole at once."),
    ),
    diagnose=(
        Hint(
            some_params(lambda params, size: any(dtype != "torch.float32" for _, dtype, _ in params)),
            "The shard is the master copy: it stays in float32, and only what is gathered from it is converted.",
        ),
        Hint(
            some_params(lambda params, size: len(params) > 1),
            "A unit has other parameters beside its shard: nn.Module registers a module that is assigned to an "
            "attribute. Keep it in a list.",
        ),
        Hint(
            lambda run: (
                (CANNOT_TELL if "tied" not in run.case.kinds else kinds_with_other_params(run) == {"tied"})
                if kinds_with_other_params(run)
                else False
            ),
            TIED_TWICE,
        ),
        Hint(
            lambda run: kinds_with_other_params(run) == {"frozen"},
            "A frozen unit's shard is not trained either: requires_grad=False.",
        ),
        Hint(
            lambda run: starts_exactly(run) is not None and not kinds_with_other_params(run),
            "The shard does not begin with the module's weights: this rank's row of all parameters in one row, in "
            "float32, not rounded.",
        ),
        Hint(ended_as(added), "The gradients are sums over the ranks. Data parallel training uses their mean."),
        Hint(ended_as(averaged_twice), "The gradient was divided by the number of ranks twice."),
        Hint(
            ended_as(own),
            "Each shard has the gradient of its own rank's rows alone. The reduce-scatter averages over all ranks.",
        ),
        Hint(
            ended_as(mean, "both"),
            "The weights that are used are those of the start: what was gathered before the optimizer's step is out of "
            "date after it.",
        ),
        Hint(
            ended_as(mean, "backward"),
            "The backward passes use the weights that the first one has gathered: they are out of date after the "
            "optimizer's step. Forget them when the unit's backward pass is done, and gather anew in the next one.",
        ),
        Hint(
            only_the_last_learns,
            "At most the last unit has learned: a unit returns the gradient of its x as well, or none reaches the "
            "units before it.",
        ),
        Hint(
            lambda run: all(
                torch.equal(a, b) for one in run.got["ranks"] for a, b in zip(one["start"], one["shards"], strict=True)
            ),
            "No shard has moved: backward has to return its gradient.",
        ),
        Hint(
            nearly_right,
            "The shards are nearly right, and further off than sums in another order can be. Was something rounded on "
            "the way? Weights are gathered in param_dtype, gradients are reduced in reduce_dtype, and the shard and "
            "its gradient are in float32.",
        ),
    ),
)
