"""Lab 11: what is asked, given and run for a device that records operations and runs them at a mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

OPERATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "matmul": torch.matmul,
    "transpose": torch.t,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "mul": torch.mul,
    "sub": torch.sub,
}
Shapes = Sequence[Sequence[int]]
Operations = Sequence[tuple[str, Sequence[int]]]


@dataclass(frozen=True)
class LazyLoop(Case):
    """Steps of a training loop. The last batch has `last_rows` rows; in step `other_at` the layer has a relu as well,
    and in step `swapped_at` the weight is subtracted from its update. At the end it looks at the last result, too.

    print_every: after so many steps, the loop looks at a result in the middle of a step; 0: never. looks_back: whether
    it looks at the weight in the middle of each step, which is known since the mark before.
    """

    n_steps: int = 5
    n_rows: int = 4
    width: int = 3
    last_rows: int = 4
    print_every: int = 0
    other_at: int = -1
    swapped_at: int = -1
    looks_back: bool = False

    def rows(self, step: int) -> int:
        """Of the batch of this step."""
        return self.last_rows if step == self.n_steps - 1 else self.n_rows

    def program(self) -> list[list]:
        """Instructions: ["tensor", number of a value], ["apply", operation, *handles], ["mark"] or ["value", handle].

        A handle is the number of the "tensor" or "apply" that made it, from 0.
        """
        made, program = 0, []

        def add(*instruction: object) -> int:
            nonlocal made
            program.append(list(instruction))
            made += instruction[0] in ("tensor", "apply")
            return made - 1

        weight, rate = add("tensor", 0), add("tensor", 1)
        for step in range(self.n_steps):
            x = add("tensor", 2 + step)
            out = add("apply", "tanh", add("apply", "matmul", x, weight))
            if step == self.other_at:
                out = add("apply", "relu", out)
            if self.print_every and (step + 1) % self.print_every == 0:
                add("value", out)
            if self.looks_back:
                add("value", weight)
            gradient = add("apply", "matmul", add("apply", "transpose", x), out)
            update = add("apply", "mul", gradient, rate)
            weight = add("apply", "sub", *((update, weight) if step == self.swapped_at else (weight, update)))
            add("mark")
        add("mark")
        add("value", weight)
        add("value", out)
        return program


@dataclass
class FakeCompiler:
    """compile_graph: counts, and returns a function that runs one operation after the other."""

    compiled: list[tuple[Shapes, Operations]] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)

    def __call__(
        self, shapes: Shapes, operations: Operations
    ) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
        """What runs these operations on inputs of these shapes; an argument is the number of an input or of a result
        before it, counted on behind the inputs.
        """
        shapes = [tuple(shape) for shape in shapes]
        operations = [(name, tuple(arguments)) for name, arguments in operations]
        unread = set(range(len(shapes))).difference(*(arguments for _, arguments in operations))
        self.compiled.append((shapes, operations))

        def run(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            given = [tuple(one.shape) for one in inputs]
            if given != shapes:
                raise ValueError(f"this graph was compiled for inputs of shapes {shapes} and is given {given}")
            if len({id(one) for one in inputs}) < len(inputs):
                raise ValueError("a graph was given the same tensor twice, as two inputs")
            if unread:
                raise ValueError(f"input {min(unread)} of a graph is used by no operation")
            self.runs.append(len(operations))
            values = list(inputs)
            for name, arguments in operations:
                values.append(OPERATIONS[name](*(values[at] for at in arguments)))
            return values[len(inputs) :]

        return run


def play(make_device: Callable[[FakeCompiler], Any], program: Sequence[Sequence], values: Sequence[torch.Tensor]):
    """(what the program looked at, the compiler with its counts) of a program on a lazy device."""
    compiler, handles, looked_at = FakeCompiler(), [], []
    device = make_device(compiler)
    for kind, *rest in program:
        if kind == "tensor":
            handles.append(device.tensor(values[rest[0]]))
        elif kind == "apply":
            handles.append(device.apply(rest[0], *(handles[at] for at in rest[1:])))
        elif kind == "mark":
            device.mark_step()
        else:
            looked_at.append(device.value(handles[rest[0]]).clone())
    return looked_at, compiler


def lazy_inputs(case: LazyLoop, gen: torch.Generator) -> dict[str, object]:
    """values: the weight (width, width), the learning rate (a number), and a batch for each step."""
    batches = [torch.randn(case.rows(step), case.width, generator=gen) for step in range(case.n_steps)]
    weight = torch.randn(case.width, case.width, generator=gen)
    return {"values": [weight, torch.tensor(0.1), *batches]}


def drive_lazy(ans, case: LazyLoop, tree: dict, stage) -> dict[str, object]:
    """looked_at: the values; compiled: operations of each graph that was compiled; runs: of each that was run."""
    looked_at, compiler = play(ans.LazyDevice, case.program(), tree["values"])
    compiled = [len(operations) for _, operations in compiler.compiled]
    return {"looked_at": looked_at, "compiled": compiled, "runs": compiler.runs}


LAZY_TENSOR = Exercise(
    id="11-lazy-tensor",
    title="A device that records first",
    points=0.3,
    minutes=30,
    difficulty=3,
    optional=True,
    answers=(Answer("LazyDevice"),),
    public=(
        LazyLoop(),
        LazyLoop(last_rows=2),
        LazyLoop(6, print_every=1),
        LazyLoop(6, print_every=3, looks_back=True),
        LazyLoop(6, other_at=2, swapped_at=4),
    ),
    inputs=lazy_inputs,
    drive=drive_lazy,
)
