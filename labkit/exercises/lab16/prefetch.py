"""Lab 16: what is asked, given and run for the order of gathers, passes and reductions of a sharded model's step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.clock import Span, Task, makespan, play
from labkit.spec import Answer, Case, Exercise
from labkit.tree import told

MOST_WHOLE = 2
"""So many layers may be whole at once."""
KINDS = ("gather", "forward", "backward", "free", "reduce")
NETWORK, GPU = "network", "GPU"

Command = tuple[str, int]


@dataclass(frozen=True)
class Blocks(Case):
    """A model of n_layers equal layers, and what each step of a layer takes."""

    n_layers: int = 4
    gather_ms: float = 3.0
    forward_ms: float = 4.0
    backward_ms: float = 8.0
    reduce_ms: float = 4.0

    def ms_of(self, kind: str) -> float:
        """What a command of this kind takes."""
        return getattr(self, f"{kind}_ms")

    @property
    def passes(self) -> list[Command]:
        """The passes in the only order that there is."""
        layers = range(self.n_layers)
        return [("forward", layer) for layer in layers] + [("backward", layer) for layer in reversed(layers)]


class BadOrder(ValueError):
    """Commands that are no training step. kind: "form", "layer", "crowded", "not gathered", "freed early", "not whole",
    "passes", "free", "reduce" or "unfinished".
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def commands_of(order: object, case: Blocks) -> list[Command]:
    """The order as pairs. Raises BadOrder."""
    if not isinstance(order, list | tuple):
        raise BadOrder("form", f"fsdp_order returned {told(order)}: it has to be a list of pairs")
    for place, entry in enumerate(order):
        is_pair = isinstance(entry, list | tuple) and len(entry) == 2
        if not is_pair or entry[0] not in KINDS or type(entry[1]) is not int:
            raise BadOrder("form", f"entry {place} is {told(entry)}: it has to be a pair such as ('gather', 0)")
        if not 0 <= entry[1] < case.n_layers:
            raise BadOrder("layer", f"entry {place} is {told(entry)}: the layers are 0 to {case.n_layers - 1}")
    return [(kind, layer) for kind, layer in order]


def tasks_of(commands: Sequence[Command], case: Blocks) -> Iterator[Task]:
    """The commands as work on the network and on the GPU; a free takes no time. Raises BadOrder where they do not fit.

    A pass waits for its layer's gather, a reduction for its layer's backward pass. A gather waits for the passes of all
    layers that were freed before it, since it writes into their memory.
    """
    whole: dict[int, Hashable] = {}
    last_pass: dict[int, Hashable] = {}
    freed: list[Hashable] = []
    passes, n_passes = case.passes, 0
    reduced: set[int] = set()
    for place, (kind, layer) in enumerate(commands):
        name, where = (kind, layer, place), f"entry {place}, {(kind, layer)}"
        seconds = 0.0 if kind == "free" else case.ms_of(kind) / 1e3
        if kind == "gather":
            if layer in whole:
                raise BadOrder("crowded", f"{where}: layer {layer} is whole already")
            if len(whole) == MOST_WHOLE:
                held = " and ".join(map(str, sorted(whole)))
                raise BadOrder("crowded", f"{where}: layers {held} are still whole, and {MOST_WHOLE} is the most")
            whole[layer] = name
            yield Task(name, NETWORK, seconds, tuple(freed))
        elif kind in ("forward", "backward"):
            if n_passes == len(passes) or (kind, layer) != passes[n_passes]:
                due = f"{passes[n_passes]} is next" if n_passes < len(passes) else "all passes are done"
                raise BadOrder("passes", f"{where}: {due}")
            if layer not in whole and kind == "forward":
                if ("free", layer) in commands[:place]:
                    raise BadOrder("freed early", f"{where}: layer {layer} was freed before")
                raise BadOrder("not gathered", f"{where}: layer {layer} was never gathered")
            if layer not in whole:
                raise BadOrder("not whole", f"{where}: layer {layer} is not whole")
            n_passes, last_pass[layer] = n_passes + 1, name
            yield Task(name, GPU, seconds, (whole[layer],))
        elif kind == "free":
            if layer not in whole:
                raise BadOrder("free", f"{where}: layer {layer} is not whole")
            # What was gathered and not used is there once it has arrived.
            freed += [whole.pop(layer), *([last_pass[layer]] if layer in last_pass else [])]
        else:
            if layer in reduced or last_pass.get(layer, ("",))[0] != "backward":
                raise BadOrder("reduce", f"{where}: it comes once, after the backward pass of layer {layer}")
            reduced.add(layer)
            yield Task(name, NETWORK, seconds, (last_pass[layer],))
    missing = [("reduce", layer) for layer in range(case.n_layers) if layer not in reduced]
    if missing := [*passes[n_passes:], *missing]:
        raise BadOrder("unfinished", f"the list ends without {missing[0]}")
    if whole:
        raise BadOrder("unfinished", f"the list ends without ('free', {min(whole)}): layer {min(whole)} is still whole")


def timeline(order: object, case: Blocks) -> dict[Hashable, Span]:
    """When each command runs, by (kind, layer, place in the list). Raises BadOrder."""
    return play(tasks_of(commands_of(order, case), case))


def step_ms(fsdp_order: Callable[[int], object], n_layers: int = 4) -> float:
    """How long a step takes in this order, with the times of the first case."""
    return 1e3 * makespan(timeline(fsdp_order(n_layers), Blocks(n_layers)))


def gathers_when_needed(n_layers: int) -> list[Command]:
    """The order that hides nothing: gather a layer, use it, free it."""
    order: list[Command] = []
    for kind, layer in Blocks(n_layers).passes:
        order += [("gather", layer), (kind, layer), ("free", layer)]
        if kind == "backward":
            order.append(("reduce", layer))
    return order


def drive_prefetch(ans, case: Blocks, tree: dict, stage) -> dict[str, Any]:
    """order: what was returned for so many layers."""
    return {"order": ans.fsdp_order(case.n_layers)}


PREFETCH = Exercise(
    id="16-prefetch",
    title="Hide the gathers",
    points=0.4,
    optional=True,
    minutes=25,
    difficulty=2,
    answers=(Answer("fsdp_order"),),
    public=(
        Blocks(),
        Blocks(3, gather_ms=5.2, reduce_ms=5.2),
        Blocks(6, gather_ms=2.8, reduce_ms=5.6),
        Blocks(2, gather_ms=6.0, reduce_ms=6.0),
        Blocks(1),
    ),
    inputs=lambda case, gen: {},
    drive=drive_prefetch,
)
