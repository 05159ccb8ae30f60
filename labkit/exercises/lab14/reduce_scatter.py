"""Lab 14: the two halves of a ring as calls of their own, and an all-reduce made from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch

from labkit.exercises.lab14.group import SEVERAL_RANKS, tensors
from labkit.exercises.lab14.send_guard import SendGuard
from labkit.ranks import CommError
from labkit.spec import Answer, Case, Exercise

UNTOUCHED = -7
"""What an output is filled with before the call."""


@dataclass(frozen=True)
class Parts(Case):
    """One of the three calls on n_ranks ranks; n_elements are split into a part for each, sizes differing by one."""

    call: str
    n_ranks: int = 4
    n_elements: int = 24
    dtype: str = "float32"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The elements of each rank's part, as torch.tensor_split cuts them."""
        least, rest = divmod(self.n_elements, self.n_ranks)
        return tuple(least + (rank < rest) for rank in range(self.n_ranks))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of x in an all-reduce: rows of three where that works out, so that a shape that is lost shows."""
        return (self.n_elements,) if self.n_elements % 3 else (self.n_elements // 3, 3)

    @property
    def n_bytes(self) -> int:
        """S: the bytes of all parts of one rank."""
        return self.n_elements * getattr(torch, self.dtype).itemsize


def parts_inputs(case: Parts, gen: torch.Generator) -> dict[str, Any]:
    """For each rank: parts (one for each rank), its part, or x, as the call takes it."""
    whole = tensors(case.n_ranks, (case.n_elements,), getattr(torch, case.dtype), gen)
    if case.call == "reduce_scatter":
        return {"ranks": [{"parts": list(x.split(case.sizes))} for x in whole]}
    if case.call == "all_gather":
        return {"ranks": [{"part": x[:size]} for x, size in zip(whole, case.sizes, strict=True)]}
    return {"ranks": [{"x": x.reshape(case.shape)} for x in whole]}


def drive_parts(ans, case: Parts, tree: dict, stage) -> dict[str, Any]:
    """out: what the call wrote into its output, or returned."""
    comm = SendGuard(stage.comm)
    out = call_parts(ans, case, tree["mine"], comm)
    comm.check()
    return {"out": out}


def call_parts(ans, case: Parts, mine: dict, comm: SendGuard) -> Any:
    """What one rank has after the call; mine: what it is fed."""
    outputs = [torch.full((size,), UNTOUCHED, dtype=getattr(torch, case.dtype)) for size in case.sizes]
    if case.call == "reduce_scatter":
        output = outputs[comm.rank]
        ans.reduce_scatter(comm, output, mine["parts"])
        return output
    if case.call == "all_gather":
        # A list of its own: what counts is what is written into the tensors that the caller has.
        ans.all_gather(comm, list(outputs), mine["part"])
        return outputs
    called: set[str] = set()
    out = noting(ans.all_reduce, HALVES, called)(comm, mine["x"])
    if comm.world_size > 1 and (missing := [name for name in HALVES if name not in called]):
        raise CommError(f"all_reduce never called {' and '.join(missing)}: it is to be made from these two")
    return out


def noting(function: Any, names: Sequence[str], called: set[str]) -> Any:
    """A copy of a plain function in whose module a call of one of `names` is added to `called` first.

    Other functions of the module are copied with it, because they may be what calls. Nothing of the module changes.
    """
    if not isinstance(function, FunctionType):
        called.update(names)
        return function
    namespace = dict(function.__globals__)

    def copied(one: FunctionType) -> FunctionType:
        copy = FunctionType(one.__code__, namespace, one.__name__, one.__defaults__, one.__closure__)
        copy.__kwdefaults__ = one.__kwdefaults__
        return copy

    def noted(name: str, one: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            return one(*args, **kwargs)

        return call

    for name, one in function.__globals__.items():
        if isinstance(one, FunctionType) and one.__globals__ is function.__globals__:
            namespace[name] = noted(name, copied(one)) if name in names else copied(one)
    return copied(function)


HALVES = ("reduce_scatter", "all_gather")
CALLS = (*HALVES, "all_reduce")

REDUCE_SCATTER = Exercise(
    id="14-reduce-scatter",
    title="Reduce-scatter and all-gather",
    points=3,
    minutes=25,
    difficulty=2,
    answers=tuple(Answer(name) for name in CALLS),
    public=(
        *(Parts(call) for call in CALLS),
        *(Parts(call, 3, 20, "int64") for call in CALLS),
        *(Parts(call, 8, 75, "bfloat16") for call in CALLS),
        *(Parts(call, 5, 3) for call in CALLS),
        *(Parts(call, 1, 4) for call in CALLS),
    ),
    inputs=parts_inputs,
    drive=drive_parts,
    run=SEVERAL_RANKS,
)
