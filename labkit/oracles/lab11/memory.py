"""Lab 11: what is true of what a forward graph keeps, and what the usual mistakes count."""

from __future__ import annotations

from collections.abc import Callable

from labkit.compare import inputs_untouched
from labkit.exercises.lab11.memory import Kept
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle

MOST_SHARE = 0.5
LEAST_SAVES, LEAST_NOTHING = 3, 2
"""Tensors of the size of x that would be kept if nothing were recomputed."""


def root(graph: dict, at: int) -> int:
    """The node whose memory this one lies in."""
    while graph["nodes"][at][0] in ("transpose", "rows"):
        at = graph["nodes"][at][1]
    return at


def size(graph: dict, at: int) -> int:
    """Bytes of the node itself; of a number none."""
    _, _, rows, columns = graph["nodes"][at]
    return 4 * rows * columns


def total(graph: dict, nodes: set[int], views: bool = False) -> int:
    """Bytes of the storages of these nodes; views: of each node as it is seen, however many share a storage."""
    if views:
        return sum(size(graph, at) for at in nodes)
    return sum(size(graph, at) for at in {root(graph, at) for at in nodes})


def own(graph: dict, nodes: set[int]) -> set[int]:
    """Those that are no inputs and lie in none."""
    return {at for at in nodes if graph["nodes"][root(graph, at)][0] != "input"}


def saved(graph: dict) -> set[int]:
    return set(graph["results"][graph["n_outputs"] :])


def outputs(graph: dict) -> set[int]:
    return set(graph["results"][: graph["n_outputs"]])


def true_kept(graph: dict) -> int:
    return total(graph, own(graph, saved(graph)))


@once
def kept_of(run: CaseRun[Kept]) -> list[int]:
    return [true_kept(graph) for graph in run.tree["graphs"]]


def right_kept(run: CaseRun[Kept]) -> str | None:
    for got, wanted in zip(run.got["kept"], kept_of(run), strict=True):
        if type(got) is not int or got != wanted:
            shown = f"{got:,}" if type(got) in (int, float) else repr(got)[:60]
            return f"a forward graph keeps {wanted:,} bytes, and kept_bytes returned {shown}"
    return None


def without(run: CaseRun[Kept]) -> float:
    return run.measured["kept_without_recomputing_bytes"]


def in_x(run: CaseRun[Kept], n_bytes: float) -> str:
    return f"{n_bytes:,.0f} bytes ({n_bytes / run.case.x_bytes:.1f} times those of x)"


def has_a_gradient(run: CaseRun[Kept]) -> str | None:
    return None if run.got["has_gradient"] else f"the result of {run.case.which} has no gradient"


def nothing_is_saved(run: CaseRun[Kept]) -> str | None:
    if run.case.which != "saves_nothing" or run.measured["kept_bytes"] >= without(run):
        return None
    return (
        f"saves_nothing would keep {in_x(run, without(run))} without recomputing, and compiled it keeps "
        f"{in_x(run, run.measured['kept_bytes'])}"
    )


def counts(mistake: Callable[[dict], int]) -> Callable[[CaseRun], object]:
    """Whether every graph's bytes are those of this mistake, and some of them wrong."""

    def holds(run: CaseRun[Kept]) -> object:
        if right_kept(run) is None:
            return False
        return [mistake(graph) for graph in run.tree["graphs"]] == run.got["kept"]

    return holds


def of_which(name: str, condition: Callable[[CaseRun], object]) -> Callable[[CaseRun], object]:
    return lambda run: condition(run) if run.case.which == name else CANNOT_TELL


NODES = "The results of a forward graph are first the `n_outputs` of the model, then what is kept. "


def called(run: CaseRun[Kept]) -> str:
    case = run.case
    return f"{case.which}(x, w) with x of shape ({case.rows}, {case.width}); kept_bytes on forward graphs made by hand"


MEMORY = Oracle(
    id="11-memory",
    call=called,
    judge=(right_kept, has_a_gradient, nothing_is_saved, inputs_untouched),
    budgets=(
        Budget(
            "graphs",
            1,
            "A break cuts the function in two, and what passes between the parts is kept: write it in one graph.",
        ),
        Budget("eager_calls", 0, "Nothing of the function was compiled."),
        Budget(
            "kept_without_recomputing_bytes",
            lambda run: run.case.x_bytes * (LEAST_SAVES if run.case.which == "saves" else LEAST_NOTHING),
            "Without recomputing, this function would keep too little for a comparison. `x` and `w` do not count, as "
            "they are inputs: let it have more steps whose backward pass reads an intermediate result.",
            at_least=True,
        ),
        Budget(
            "kept_bytes",
            lambda run: without(run) * (MOST_SHARE if run.case.which == "saves" else 1.0),
            "`saves` still keeps more than half. Cheap are elementwise operations: the backward kernel repeats them "
            "from their input, which it reads anyway. A matrix product is not repeated, so its inputs stay; nor is the "
            "last operation, so that a tanh, exp or sigmoid at the end keeps its result.",
        ),
    ),
    diagnose=(
        Hint(
            counts(lambda graph: total(graph, set(graph["results"]))),
            NODES + "You counted all of them; take those from `n_outputs` on.",
        ),
        Hint(
            counts(lambda graph: total(graph, own(graph, set(graph["results"])))),
            NODES + "You counted all of them; take those from `n_outputs` on.",
        ),
        Hint(
            counts(lambda graph: total(graph, outputs(graph))),
            NODES + "You counted the model's outputs. They are what the caller gets; kept is what comes after them.",
        ),
        Hint(
            counts(lambda graph: total(graph, own(graph, saved(graph) - outputs(graph)))),
            "One result is an output of the model and is kept as well. The backward pass needs it, so it counts, "
            "whatever else it is for.",
        ),
        Hint(
            counts(lambda graph: total(graph, saved(graph))),
            "Inputs of the graph (`placeholder`: parameters and the batch) are in memory anyway, so handing them to "
            "the backward graph costs nothing: leave their storages out.",
        ),
        Hint(
            counts(lambda graph: total(graph, {at for at in saved(graph) if graph["nodes"][at][0] != "input"})),
            "A view of an input is no placeholder and still lies in the input's memory: compare storages, not nodes.",
        ),
        Hint(
            counts(
                lambda graph: sum(total(graph, {at}) for at in saved(graph) if graph["nodes"][at][0] != "input"),
            ),
            "You compared and added up nodes, and several nodes can lie in one storage. Put the storages of all that "
            "is kept into one dict, then take out those of the placeholders: a view of an input goes with them, and "
            "a tensor beside its own view counts once.",
        ),
        Hint(
            counts(lambda graph: total(graph, own(graph, saved(graph)), views=True)),
            "A tensor and a view of it share one storage, and a view of two rows keeps all of it in memory: add up "
            "`storages_of(node)`, each storage once.",
        ),
        Hint(
            counts(lambda graph: sum(total(graph, {at}) for at in own(graph, saved(graph)))),
            "A tensor and a transposed view of it lie in one storage, and you counted it twice: put the storages of "
            "all nodes into one dict before you add up.",
        ),
        Hint(
            counts(lambda graph: total(graph, own(graph, set(range(len(graph["nodes"])))))),
            "Most intermediate results are freed on the way. What is kept is only what the graph returns after its "
            "outputs: look at the arguments of the node `output`.",
        ),
        Hint(
            lambda run: right_kept(run) is not None,
            NODES + "Of the latter, add up the storages, each once, without those of the graph's own inputs.",
        ),
        Hint(
            lambda run: has_a_gradient(run) is not None,
            "Without a gradient there is no backward pass, and nothing to keep: no `detach`, no `no_grad`.",
        ),
        Hint(
            of_which("saves_nothing", lambda run: nothing_is_saved(run) is not None),
            "The compiler found something cheap to repeat. It does not repeat matrix products: build `saves_nothing` "
            "from these alone.",
        ),
    ),
    axis="other shapes, other forward graphs",
)
