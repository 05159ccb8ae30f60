"""Lab 16: what is true of a model of sharded units: one process's masters, calls, bytes, and little that is whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import came_by, compare, inputs_untouched
from labkit.exercises.lab16.fsdp import MOMENTS, N_ROWS, Units, draw_rows, loss_of, make_unit, some
from labkit.exercises.lab16.optimizers import make
from labkit.oracles.hints import once
from labkit.oracles.lab16.zero1 import ROOM_BYTES
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = {"float32": Tolerance(atol=1e-4, rtol=1e-4), "bfloat16": Tolerance(atol=4e-3, rtol=1e-2)}
"""By the dtype of weights and activations: float32 sums in another order, or a rounding to 8 bits here and there."""
ALIKE = {"float32": Tolerance(atol=1e-3, rtol=1e-3), "bfloat16": Tolerance(atol=2e-2, rtol=5e-2)}
"""For what a mistake makes: larger gradients, so larger roundings."""

Rows = list[Tensor]
"""Of one unit: a row for each rank."""
Reduce = Callable[[list[Tensor], Units], Tensor]
"""(the ranks' gradients of a unit, each in n rows, filled up with zeros) -> what each rank's shard gets, in rows."""


def in_rows(tensors: list[Tensor], n: int) -> Tensor:
    row = torch.cat([tensor.detach().flatten() for tensor in tensors])
    return F.pad(row, (0, -len(row) % n)).view(n, -1)


def mean(grads: list[Tensor], case: Units) -> Tensor:
    return torch.stack([grad.to(case.dtypes[1]).float() for grad in grads]).mean(0)


def added(grads: list[Tensor], case: Units) -> Tensor:
    return torch.stack([grad.float() for grad in grads]).sum(0)


def own(grads: list[Tensor], case: Units) -> Tensor:
    return torch.stack([grad[rank].float() for rank, grad in enumerate(grads)])


def averaged_twice(grads: list[Tensor], case: Units) -> Tensor:
    return mean(grads, case) / case.n_ranks


@once
def masters(run: CaseRun[Units]) -> list[Tensor]:
    """Of each unit the float32 weights at the start, in rows by rank."""
    units = (make_unit(run.case, run.tree["seed"], k) for k in range(len(run.case.kinds)))
    return [in_rows(list(unit.parameters()), run.case.n_ranks) for unit in units]


@once
def trained(run: CaseRun[Units], reduce: Reduce, stale: str = "") -> list[Tensor]:
    """The masters after all steps in one process. stale: the weights that are used stay those of the start, in both
    passes ("both") or in the backward pass alone ("backward").
    """
    case = run.case
    rows = [one.clone() for one in masters(run)]
    for one, kind in zip(rows, case.kinds):
        one.requires_grad_(kind != "frozen")
    learning = [one for one in rows if one.requires_grad]
    optimizer = make("momentum", learning) if learning else None
    for step in range(case.n_steps):
        used = masters(run) if stale == "both" else [one.detach() for one in rows]
        used_back = masters(run) if stale == "backward" else None
        grads = [torch.zeros_like(one) for one in rows]
        for micro in range(case.n_micro):
            for total, by_rank in zip(grads, _gradients(run, used, step, micro, used_back), strict=True):
                if by_rank:
                    total += reduce(by_rank, case)
        for one, grad in zip(rows, grads, strict=True):
            one.grad = grad if one.requires_grad else None
        if optimizer:
            optimizer.step()
    return [one.detach() for one in rows]


def _gradients(
    run: CaseRun[Units], used: list[Tensor], step: int, micro: int, used_back: list[Tensor] | None = None
) -> list[list[Tensor]]:
    """Of each unit the ranks' gradients, in rows and in the dtype of the weights; none where it is frozen.

    used_back: other weights that the backward pass uses.
    """
    case = run.case
    found: list[list[Tensor]] = [[] for _ in case.kinds]
    units = [make_unit(case, run.tree["seed"], k) for k in range(len(case.kinds))]
    for unit, row in zip(units, used, strict=True):
        for p, part in zip(unit.parameters(), _parts(unit, row)):
            p.data = part.to(case.dtypes[0])
    replaced = {}
    for unit, row in zip(units, used_back or (), strict=False):
        for p, part in zip(unit.parameters(), _parts(unit, row)):
            replaced[p.data_ptr()] = part.to(case.dtypes[0])
    for one in run.tree["ranks"]:
        x, factor = draw_rows(case, one["seed"], step, micro)
        for unit in units:
            unit.zero_grad()
        with _in_backward(replaced):
            for unit in units:
                x = unit(x)
        if x.requires_grad:
            loss_of(x, factor, case).backward()
        for k, unit in enumerate(units):
            if case.kinds[k] != "frozen":
                found[k].append(in_rows([p.grad for p in unit.parameters()], case.n_ranks))
    return found


def _in_backward(replaced: dict[int, Tensor]) -> contextlib.AbstractContextManager:
    """The backward pass finds these tensors in place of those that begin at these addresses."""
    if not replaced:
        return contextlib.nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(
        lambda kept: (replaced.get(kept.data_ptr(), kept.detach()), kept.shape, kept.stride()),
        lambda packed: packed[0].as_strided(*packed[1:]),
    )


def _parts(unit: torch.nn.Module, row: Tensor) -> list[Tensor]:
    """The row of a unit as its parameters."""
    params = list(unit.parameters())
    sizes = [p.numel() for p in params]
    return [part.view_as(p) for p, part in zip(params, row.flatten()[: sum(sizes)].split(sizes))]


def by_rank(run: CaseRun[Units], rows: list[Tensor]) -> list[list[Tensor]]:
    """Of each rank its shards, as much of them as comes back."""
    return [[some(one[rank], run.case) for one in rows] for rank in range(run.case.n_ranks)]


def close(run: CaseRun[Units], wanted: list[list[Tensor]]) -> bool:
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
    for rank, (wanted, one) in enumerate(zip(by_rank(run, masters(run)), run.got["ranks"], strict=True)):
        if found := compare(wanted, one["start"]):
            return f"the shard of unit {found.path} on rank {rank} begins with {found.got}, not with {found.expected}"
    return None


def as_in_one_process(run: CaseRun[Units]) -> str | None:
    """A property: after the steps the shards are parts of one process's masters."""
    wanted = by_rank(run, trained(run, mean))
    for rank, (mine, one) in enumerate(zip(wanted, run.got["ranks"], strict=True)):
        if found := compare(mine, one["shards"], CLOSE[run.case.param_dtype]):
            return (
                f"after {run.case.n_steps} step{'s' * (run.case.n_steps > 1)} the shard of unit {found.path} on rank "
                f"{rank} has {found.got}, and one process {found.expected}"
            )
    return None


def passes_bytes(case: Units, reduce_bytes: int, least: bool = False) -> int:
    """Over a whole step of one micro-batch: two all-gathers of each unit, and a reduce-scatter of each that is trained.

    least: the first unit's second gather is left out, and those of frozen units before all that is trained.
    """
    total, needs_second = 0, not least
    for kind, size in zip(case.kinds, case.shard_sizes):
        total += size * case.dtypes[0].itemsize * (1 + needs_second)
        total += size * reduce_bytes * (kind != "frozen")
        needs_second = needs_second or kind != "frozen"
    return total


def most_bytes(run: CaseRun[Units]) -> int:
    case = run.case
    a_pass = (case.n_ranks - 1) * passes_bytes(case, case.dtypes[1].itemsize)
    return max(case.n_steps * case.n_micro * a_pass, 1)


def gathered_again(run: CaseRun[Units]) -> str | None:
    """A property: each unit was gathered in the backward pass as well, where that needs its weights."""
    case = run.case
    first = next((k for k, kind in enumerate(case.kinds) if kind != "frozen"), len(case.kinds))
    trained_units = sum(kind != "frozen" for kind in case.kinds)
    a_pass = len(case.kinds) + max(len(case.kinds) - first - 1, 0) + trained_units
    least, called = case.n_steps * case.n_micro * a_pass, run.measured.get("collectives", 0)
    if called >= least or case.n_ranks == 1:
        return None
    return f"a rank called {called:g} collectives, and with gathers in the backward pass it is {least} at least"


gathered_again.hint = (
    "Units were not gathered again for the backward pass, so somebody kept their weights: autograd keeps what backward "
    "needs unless pack replaces it, and an attribute keeps what it refers to."
)


def reduced_as_asked(run: CaseRun[Units]) -> str | None:
    """A property: the ranks sent what gathers and reductions in the asked dtypes cannot do without."""
    case = run.case
    a_pass = case.n_ranks * (case.n_ranks - 1) * passes_bytes(case, case.dtypes[1].itemsize, least=True)
    least, sent = case.n_steps * case.n_micro * a_pass, run.measured.get("bytes_total", 0)
    if sent >= least:
        return None
    return f"the ranks sent {sent:g} bytes, and with gradients in {case.reduce_dtype} it takes {least} at least"


reduced_as_asked.hint = (
    "Too few bytes were sent. Gradients are converted to reduce_dtype before the reduce-scatter and not after it: with "
    "param_dtype = bfloat16 and reduce_dtype = float32 they travel in float32."
)


def most_calls(run: CaseRun[Units]) -> int:
    case = run.case
    trained_units = sum(kind != "frozen" for kind in case.kinds)
    return case.n_steps * case.n_micro * (2 * len(case.kinds) + trained_units)


def activations(case: Units) -> int:
    return 40 * N_ROWS * case.width * len(case.kinds)


def held_forward(run: CaseRun[Units]) -> int:
    """The masters' shards, and activations."""
    return 4 * sum(run.case.shard_sizes) + activations(run.case) + ROOM_BYTES


def held_backward(run: CaseRun[Units]) -> int:
    """The shards with their gradients, and one unit that is about to be freed: its weights and gradient."""
    case = run.case
    own_bytes = 8 * sum(case.shard_sizes) + activations(case)
    return own_bytes + 2 * case.dtypes[0].itemsize * max(case.sizes) + ROOM_BYTES


def most_at_once(run: CaseRun[Units]) -> int:
    """Shards, gradients and states; of one unit the module as it is made, and copies of it; or weights and gradients of
    two units on their way."""
    case = run.case
    return 12 * sum(case.shard_sizes) + activations(case) + 28 * max(case.sizes) + 2 * ROOM_BYTES


def ended_as(reduce: Reduce, stale: str = "") -> Callable[[CaseRun[Units]], Any]:
    """A hint's condition: the shards ended as with this mistake. CANNOT_TELL where it changes nothing."""

    def when(run: CaseRun[Units]) -> Any:
        wrong = by_rank(run, trained(run, reduce, stale))
        right = by_rank(run, trained(run, mean))
        if compare(right, wrong, ALIKE[run.case.param_dtype]) is None:
            return CANNOT_TELL
        return close(run, wrong)

    return when


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

FSDP = Oracle(
    id="16-fsdp",
    call=in_words,
    judge=(
        inputs_untouched,
        one_shard_each,
        starts_exactly,
        as_in_one_process,
        gathered_again,
        reduced_as_asked,
        came_by(lambda run: [(moment, None) for moment in moments_of(run.case)]),
    ),
    axis="numbers of ranks, tied and frozen units, dtypes, and units of a MB",
    errors={
        "got multiple values for keys": TIED_TWICE,
        "modified by an inplace operation": "Autograd counts writes into tensors that it has kept. Gather into a new "
        "tensor, or into tensor.data, which it does not watch.",
        "reduce_scatter_single": "Both collectives need n parts of equal length: fill up with zeros to n times the "
        "length of the shard.",
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
        Budget(
            "held_bytes",
            held_forward,
            "Between two units whole weights are still there, and shards alone should be. Look for who keeps them: "
            "autograd keeps what backward needs, an attribute keeps what it refers to, the module keeps its own, and a "
            "shard that is a view keeps the row that it was cut from.",
            at=MOMENTS[0],
        ),
        Budget(
            "held_bytes",
            held_backward,
            "In the backward pass the weights of several units are there at once. Free a unit's weights when its "
            "backward pass is done.",
            at=MOMENTS[1],
        ),
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
    ),
)


def moments_of(case: Units) -> list[str]:
    """Between any two units, forward; and on the way back where an output has a gradient."""
    first = next((k for k, kind in enumerate(case.kinds) if kind != "frozen"), len(case.kinds))
    return [MOMENTS[0]] * len(case.kinds) + [MOMENTS[1]] * (len(case.kinds) - first)
