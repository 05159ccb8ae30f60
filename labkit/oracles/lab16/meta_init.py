"""Lab 16: what is true of shards that were drawn one layer at a time: the bits of the whole model, in little memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab16.meta_init import MOMENT, Drawn, Layers, part_size, seen
from labkit.oracles.hints import Condition, once
from labkit.spec import CANNOT_TELL, EXACT, Budget, CaseRun, Hint, KiB, MiB, Oracle

MODULE_BYTES = 5 * KiB
"""What Python takes for one module; where ranks share a process, all of theirs are counted together."""


def drawn(case: Drawn, seed: int | None, in_order: Callable[[list], list] = list) -> dict[str, Tensor]:
    """The parameters of the whole model, its modules initialized in this order after this seed (None: after 0)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0 if seed is None else seed)
        model = Layers(case)
        if in_order is not list:
            torch.manual_seed(0 if seed is None else seed)
            for module in in_order([one for one in model.modules() if hasattr(one, "reset_parameters")]):
                module.reset_parameters()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def cut(whole: Mapping[str, Tensor], rank: int, n: int, size: Callable[[int, int], int] = part_size) -> dict[str, Any]:
    """A rank's part of each parameter, as it comes back."""
    found = {}
    for name, parameter in whole.items():
        k = size(parameter.numel(), n)
        found[name] = parameter.flatten()[rank * k : (rank + 1) * k]
    return seen(found)


@once
def bits(run: CaseRun[Drawn]) -> dict[str, Tensor]:
    return drawn(run.case, run.case.seed)


def expected(run: CaseRun[Drawn]) -> dict[str, Any]:
    n = run.case.n_ranks
    return {"ranks": [{"shards": cut(bits(run), rank, n)} for rank in range(n)]}


def as_with(shards: Callable[[CaseRun[Drawn], int], dict[str, Any]]) -> Condition:
    """The shards are those of this mistake, on every rank; CANNOT_TELL where they would be the right ones."""

    def when(run: CaseRun[Drawn]) -> object:
        wrong = {"ranks": [{"shards": shards(run, rank)} for rank in range(run.case.n_ranks)]}
        if compare(run.expected, wrong, EXACT) is None:
            return CANNOT_TELL if compare(run.expected, run.got, EXACT) else False
        return compare(wrong, run.got, EXACT) is None

    return when


def names(run: CaseRun[Drawn]) -> set[str]:
    """The parameters of which every rank has returned a part."""
    return set.intersection(*(set(one["shards"]) for one in run.got["ranks"]))


def lacks(*which: str) -> Condition:
    """Parameters are missing, and they are all those that one of these names belongs to: "start", "blocks."."""
    return lambda run: (
        (missing := set(bits(run)) - names(run)) != set()
        and missing == {name for name in bits(run) if name.startswith(which)}
    )


def first_right_then_wrong(run: CaseRun[Drawn]) -> bool:
    """The first parameter is right on every rank, and one behind it is not, though it has the right name."""
    if compare(run.expected, run.got, EXACT) is None or names(run) != set(bits(run)):
        return False
    first = next(iter(bits(run)))
    pairs = zip(run.expected["ranks"], run.got["ranks"], strict=True)
    return all(compare(want["shards"][first], got["shards"][first], EXACT) is None for want, got in pairs)


def shard_bytes(case: Drawn) -> int:
    """What the first rank keeps, which keeps the most."""
    with torch.device("meta"):
        return sum(4 * part_size(one.numel(), case.n_ranks) for one in Layers(case).parameters())


def layer_bytes(case: Drawn) -> int:
    """The largest module."""
    with torch.device("meta"):
        modules = Layers(case).modules()
        return max(sum(one.nbytes for one in module.parameters(recurse=False)) for module in modules)


def modules_bytes(case: Drawn) -> int:
    """What the modules take beside their weights, and what Python loads and keeps where it first meets something."""
    with torch.device("meta"):
        return MiB + case.n_ranks * MODULE_BYTES * len(list(Layers(case).modules()))


def in_words(run: CaseRun[Drawn]) -> str:
    case = run.case
    return (
        f"sharded_init(build, seed={case.seed}, rank, world_size={case.n_ranks}) with {case.n_layers} layers of "
        f"width {case.width} and {case.n_tokens} tokens"
    )


def leaves_out_the_empty(run: CaseRun[Drawn]) -> object:
    """What has come back has no empty part, and lacks those that are."""
    pairs = [(one["shards"], two["shards"]) for one, two in zip(run.expected["ranks"], run.got["ranks"], strict=True)]
    if not all(isinstance(got, dict) for _, got in pairs):
        return False
    lacking = [want[name] for want, got in pairs for name in want if name not in got]
    if not lacking:
        return CANNOT_TELL if compare(run.expected, run.got, EXACT) is None else False
    return all(isinstance(one, Tensor) and not one.numel() for one in lacking)


def drawn_names() -> list[str]:
    """The names of the parameters of a model that is deeper than any that is drawn."""
    with torch.device("meta"):
        return [name for name, _ in Layers(Drawn(n_layers=16)).named_parameters()]


META_INIT = Oracle(
    id="16-meta-init",
    expect=expected,
    call=in_words,
    places={f"shards.{name}": name for name in drawn_names()},
    axis="numbers of ranks that divide nothing, empty shards, and a model that is too large to exist whole",
    errors={
        "tuple index out of range": "Of few elements chunk() makes fewer parts than it is asked for. Slice "
        "flat[rank * size : (rank + 1) * size], which is empty where nothing is left.",
    },
    budgets=(
        Budget(
            "held_bytes",
            lambda run: shard_bytes(run.case) + KiB,
            "More than the shards is held at the end. A slice is a view and keeps its whole layer alive: clone() it, "
            "and send the layer back to the meta device.",
            at=MOMENT,
        ),
        Budget(
            "peak_bytes",
            # One layer, and one that a variable of the loop may still hold.
            lambda run: shard_bytes(run.case) + 2 * layer_bytes(run.case) + modules_bytes(run.case),
            "More than the shards and two layers existed at once. Build the model on the meta device, then take one "
            "module at a time: to_empty(device=..., recurse=False), reset_parameters(), cut, back to meta.",
        ),
    ),
    diagnose=(
        Hint(
            as_with(lambda run, rank: cut(drawn(run.case, run.case.seed + rank), rank, run.case.n_ranks)),
            "Each rank drew numbers of its own. All of them draw those of the whole model, with the same seed, and "
            "keep a part.",
        ),
        Hint(
            as_with(lambda run, rank: cut(drawn(run.case, None), rank, run.case.n_ranks)),
            "The numbers do not depend on the seed: call torch.manual_seed(seed) once, before the first module.",
        ),
        Hint(
            as_with(lambda run, rank: cut(drawn(run.case, run.case.seed, lambda m: m[::-1]), rank, run.case.n_ranks)),
            "The modules drew their numbers from the last to the first. The whole model draws them in the order of "
            "modules().",
        ),
        Hint(
            as_with(lambda run, rank: cut(bits(run), rank, run.case.n_ranks, lambda n, ranks: max(n // ranks, 1))),
            "Where a parameter's size does not divide by the number of ranks, elements are missing. A shard has the "
            "size rounded up; the last ones are shorter or empty.",
        ),
        Hint(
            as_with(lambda run, rank: cut(bits(run), 0, run.case.n_ranks)),
            "Every rank kept the first part: rank r keeps part r.",
        ),
        Hint(
            as_with(lambda run, rank: seen({name: one.flatten() for name, one in bits(run).items()})),
            "These are whole parameters. Each rank returns its part alone.",
        ),
        Hint(
            lambda run: any(name.startswith(".") for name in names(run)),
            "The path of the model itself is empty: the name of its own parameter has no dot in front.",
        ),
        Hint(
            lacks("start"),
            "The model has a parameter of its own, beside those of its modules. named_modules() lists the model itself "
            "first, under the empty path.",
        ),
        Hint(
            lacks("start", "blocks."),
            "Only the modules one level down were drawn. named_modules() goes all the way, and its first entry is the "
            "model itself.",
        ),
        Hint(
            leaves_out_the_empty,
            "Parameters of which this rank's part is empty are missing: the dict has an empty tensor under their "
            "names.",
        ),
        Hint(
            first_right_then_wrong,
            "The first parameter has the right bits and a later one has not. The generator goes on from module to "
            "module: seed it once, and let every module draw all of its numbers, by its own reset_parameters().",
        ),
    ),
)
