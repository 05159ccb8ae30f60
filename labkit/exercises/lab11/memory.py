"""Lab 11: what is asked, given and run for what a compiled function keeps for its backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Kept(Case):
    """which: the function that is compiled, with x of rows × width and w of width × width.

    n_kept: intermediate results of each hand-made forward graph that its backward graph reads.
    """

    which: Literal["saves", "saves_nothing"] = "saves"
    rows: int = 24
    width: int = 16
    n_kept: int = 3

    @property
    def x_bytes(self) -> int:
        return 4 * self.rows * self.width


def forward_graph(gen: torch.Generator, n_kept: int) -> dict[str, object]:
    """A forward graph as plain data. Each node: [kind, the node that it is made from, rows, columns], float32.

    results: nodes by number, first the `n_outputs` of the model. Kept are always among others an input, a view of an
    input, a whole intermediate result beside a transposed view of it, a few rows of a larger one, one that is an
    output as well, and a number.
    """

    def size() -> list[int]:
        return torch.randint(3, 40, (2,), generator=gen).tolist()

    nodes: list[list] = [["input", -1, *size()], ["input", -1, *size()]]

    def add(kind: str, source: int, *shape: int) -> int:
        nodes.append([kind, source, *shape])
        return len(nodes) - 1

    ops = [add("op", at % 2, *size()) for at in range(n_kept + 4)]  # the last one is freed
    whole, large, output = ops[0], ops[1], ops[2]
    transposed = add("transpose", whole, *reversed(nodes[whole][2:]))
    few_rows = add("rows", large, 2, nodes[large][3])
    of_an_input = add("transpose", 0, *reversed(nodes[0][2:]))
    number = add("number", 1, 0, 0)
    other_output = add("op", output, *size())
    kept = [1, whole, transposed, few_rows, of_an_input, output, *ops[3 : 3 + n_kept], number]
    order = torch.randperm(len(kept), generator=gen).tolist()
    return {"nodes": nodes, "results": [output, other_output, *(kept[at] for at in order)], "n_outputs": 2}


def as_module(data: dict) -> torch.fx.GraphModule:
    """The graph as AOTAutograd hands it to a backend: each node has its value, without data, in `meta["val"]`."""
    graph, made = torch.fx.Graph(), []
    aten = torch.ops.aten
    for at, (kind, source, rows, columns) in enumerate(data["nodes"]):
        if kind == "input":
            node = graph.placeholder(f"primals_{at + 1}")
            node.meta["val"] = torch.empty(rows, columns, device="meta")
        elif kind == "transpose":
            node = graph.call_function(aten.permute.default, (made[source], [1, 0]))
            node.meta["val"] = made[source].meta["val"].t()
        elif kind == "rows":
            node = graph.call_function(aten.slice.Tensor, (made[source], 0, 0, rows))
            node.meta["val"] = made[source].meta["val"][:rows]
        elif kind == "number":
            node = graph.call_function(aten.sym_size.int, (made[source], 0))
            node.meta["val"] = 7
        else:
            node = graph.call_function(aten.sin.default, (made[source],))
            node.meta["val"] = torch.empty(rows, columns, device="meta")
        made.append(node)
    graph.output(tuple(made[at] for at in data["results"]))
    return torch.fx.GraphModule(nn.Module(), graph)


def memory_inputs(case: Kept, gen: torch.Generator) -> dict[str, object]:
    """x, w; graphs: two forward graphs."""
    return {
        "x": torch.randn(case.rows, case.width, generator=gen),
        "w": torch.randn(case.width, case.width, generator=gen) / case.width**0.5,
        "graphs": [forward_graph(gen, case.n_kept) for _ in range(2)],
    }


def drive_memory(ans, case: Kept, tree: dict, stage) -> dict[str, object]:
    """kept: by graph. What the compiled function keeps is measured."""
    kept = [ans.kept_bytes(as_module(graph), graph["n_outputs"]) for graph in tree["graphs"]]
    torch.compiler.reset()
    x, w = (tree[name].to(stage.device).requires_grad_() for name in ("x", "w"))
    with stage.meter("compile"), stage.meter("kept"):
        out = torch.compile(getattr(ans, case.which), dynamic=False)(x, w)
    return {"kept": kept, "has_gradient": bool(out.requires_grad)}


MEMORY = Exercise(
    id="11-memory",
    title="What a compiled function keeps",
    points=4,
    minutes=30,
    difficulty=3,
    answers=(Answer("kept_bytes"), Answer("saves"), Answer("saves_nothing")),
    public=(Kept(), Kept("saves_nothing"), Kept("saves", 10, 40, n_kept=5), Kept("saves_nothing", 33, 9, n_kept=2)),
    inputs=memory_inputs,
    drive=drive_memory,
    meters=("compile", "kept"),
    forbids=("labkit.meters.compile.saved.kept_bytes", "torch.utils.checkpoint.checkpoint"),
    # Inductor is loaded at the first graph, seconds on a busy machine.
    run=Run(wall_s=60.0),
)
