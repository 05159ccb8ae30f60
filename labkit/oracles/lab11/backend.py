"""Lab 11: what the lines of a program give when Python runs them, and how many of them matter."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from itertools import accumulate

from labkit.compare import inputs_untouched
from labkit.exercises.lab11.backend import Program
from labkit.exercises.lab11.programs import BREAK, function_of
from labkit.meters import track_ops
from labkit.oracles.lab11.liveness import Line, graphs_of, live_graphs
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance, Tree
from labkit.tree import same


def by_python(run: CaseRun[Program]) -> Tree:
    found = {"results": [], "x": [], "y": []}
    for x, y in zip(run.tree["x"], run.tree["y"], strict=True):
        x, y = x.clone(), y.clone()
        result = _plain(run.case.lines)(x, y)
        found["results"].append(list(result) if isinstance(result, tuple) else [result])
        found["x"].append(x)
        found["y"].append(y)
    return {**found, "counts": _counts(run, live_graphs(run.case.lines))}


def _plain(lines: Sequence[str]) -> Callable:
    return function_of([line for line in lines if line != BREAK])


def _counts(run: CaseRun[Program], graphs: list[list[Line]], more: Sequence[int] | None = None) -> list[int]:
    """Lines by graph, once for each size. more: what is added to each graph."""
    each = [len(graph) + (more[number] if more else 0) for number, graph in enumerate(graphs)]
    return each * len(run.case.sizes)


def live_dispatches(run: CaseRun[Program]) -> float:
    """Operations of PyTorch that the lines which matter dispatch."""
    live = [line.text for graph in live_graphs(run.case.lines) for line in graph]
    model = function_of([*live, run.case.lines[-1]])
    pairs = [(x.clone(), y.clone()) for x, y in zip(run.tree["x"], run.tree["y"], strict=True)]
    with track_ops() as counted:
        for x, y in pairs:
            model(x, y)
    return counted.dispatches


def _inputs(run: CaseRun[Program]) -> list[int]:
    """How many tensors each graph is given: those that it reads before it makes them."""
    found = []
    for graph in graphs_of(run.case.lines):
        made: set[str] = set()
        given: set[str] = set()
        for line in graph:
            given |= line.reads - made
            made.add(line.makes)
        found.append(len(given))
    return found


def _counted_as(counts: Callable[[CaseRun[Program]], list[int]]) -> Callable[[CaseRun[Program]], object]:
    """Whether these are the counts, where they differ from the right ones."""

    def when(run: CaseRun[Program]) -> object:
        wrong = counts(run)
        if wrong == run.expected["counts"]:
            return CANNOT_TELL if run.got["counts"] == wrong else False
        return run.got["counts"] == wrong

    return when


def _live(run: CaseRun[Program]) -> list[list[Line]]:
    return live_graphs(run.case.lines)


def with_inputs(run: CaseRun[Program]) -> list[int]:
    return _counts(run, _live(run), _inputs(run))


def with_output(run: CaseRun[Program]) -> list[int]:
    return _counts(run, _live(run), [1] * len(_live(run)))


def all_nodes(run: CaseRun[Program]) -> list[int]:
    return _counts(run, _live(run), [1 + n for n in _inputs(run)])


def before_removal(run: CaseRun[Program]) -> list[int]:
    return _counts(run, graphs_of(run.case.lines))


def _is_method(line: Line) -> bool:
    """Whether the line calls a method of a tensor, which is a node of its own kind."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F"))
        for node in ast.walk(ast.parse(line.text))
    )


def without_methods(run: CaseRun[Program]) -> list[int]:
    return _counts(run, _live(run), [-sum(map(_is_method, graph)) for graph in _live(run)])


def methods_kept(run: CaseRun[Program]) -> list[int]:
    """As if only functions were operations that may be dead, and so kept what a dead method reads."""
    found = []
    for graph, live in zip(graphs_of(run.case.lines), _live(run), strict=True):
        needed = {line.makes for line in live}
        kept: list[Line] = []
        for line in reversed(graph):
            if line in live or _is_method(line) or line.makes in needed:
                kept.append(line)
                needed |= line.reads
        found.append(len(kept) - len(live))
    return _counts(run, _live(run), found)


def last_of_chain(run: CaseRun[Program]) -> list[int]:
    return _counts(run, live_graphs(run.case.lines, chains=False))


def writes_removed(run: CaseRun[Program]) -> object:
    """Fewer operations than matter, and other values, where a line writes into a tensor and nobody reads its result."""
    counts, wanted = run.got["counts"], run.expected["counts"]
    if not any(line.writes for graph in graphs_of(run.case.lines) for line in graph):
        return CANNOT_TELL if counts == wanted else False
    if len(counts) != len(wanted) or sum(counts) >= sum(wanted):
        return False
    return any(not same(run.got[name], run.expected[name]) for name in ("results", "x", "y"))


def running_total(run: CaseRun[Program]) -> list[int]:
    """As if each number were that of all graphs so far."""
    return list(accumulate(run.expected["counts"]))


def added_up(run: CaseRun[Program]) -> object:
    if len(run.expected["counts"]) == 1:
        return CANNOT_TELL if run.got["counts"] == run.expected["counts"] else False
    return run.got["counts"] in ([sum(run.expected["counts"])], run.expected["counts"][-1:])


def outputs_differ(run: CaseRun[Program]) -> object:
    if run.got["counts"] != run.expected["counts"]:
        return False
    return not same(run.got["results"], run.expected["results"])


def called(run: Observation) -> str:
    body = "; ".join(run.case.lines)
    sizes = f", at sizes {', '.join(map(str, run.case.sizes))}" if len(run.case.sizes) > 1 else ""
    return f"torch.compile(model, backend=CountingBackend()) with model(x, y): {body}{sizes}"


def fact(run: CaseRun[Program]) -> str | None:
    if run.got["counts"] == run.expected["counts"]:
        return None
    return f"counts is {run.got['counts']}, and the operations that matter are {run.expected['counts']}"


BACKEND = Oracle(
    id="11-backend",
    expect=by_python,
    tolerance=Tolerance(atol=1e-6, rtol=1e-6),
    judge=(inputs_untouched,),
    call=called,
    places={"results": "result", "counts": "counts", "x": "x after the call", "y": "y after the call"},
    axis="chains of dead operations, operations that write, graph breaks and numbers of graphs",
    fact=fact,
    errors={
        "Tried to erase Node": "A node can be erased only when nothing uses it any more: go through the nodes from the "
        "last to the first, so that users come before what they use.",
        "'NoneType' object is not callable": "The backend returned nothing: it has to return a function, gm.forward.",
    },
    budgets=(
        Budget(
            "dispatches",
            live_dispatches,
            "Dead operations still run: what is returned does not come from the graph without them. Erase the nodes in "
            "gm.graph itself, call gm.recompile() after the last change, and return gm.forward.",
        ),
    ),
    diagnose=(
        Hint(
            writes_removed,
            "An operation that writes into a tensor was removed: x.add_(1), x[0] = 0, x += 1 and out= have an effect "
            "although nobody uses their result. FX's own eliminate_dead_code() takes most of them for dead. "
            "lab11.writes(node) finds them.",
        ),
        Hint(
            _counted_as(last_of_chain),
            "Of a chain of dead operations only the last was removed. Without it, the one before has no users left "
            "either: go through the nodes from the last to the first.",
        ),
        # Before the next one: a lone dead method, in the only case that fails, looks like nothing removed.
        *(
            Hint(
                _counted_as(counts),
                "A method, as in a.exp(), is an operation as well: its node has the op call_method, that of a function "
                "call_function. Both begin with call_.",
            )
            for counts in (without_methods, methods_kept)
        ),
        Hint(
            _counted_as(before_removal),
            "The operations were counted before the dead ones were removed, or nothing was removed.",
        ),
        Hint(
            _counted_as(all_nodes),
            "Placeholders and the output node were counted as operations. Operations are the nodes whose op begins "
            "with call_.",
        ),
        Hint(
            _counted_as(with_inputs),
            "Placeholders were counted as operations: they are the graph's inputs. Operations are the nodes whose op "
            "begins with call_.",
        ),
        Hint(
            _counted_as(with_output),
            "The output node was counted as an operation: it is the graph's return. Operations are the nodes whose op "
            "begins with call_.",
        ),
        Hint(
            outputs_differ,
            "The counts are right, and a result is not. The function has to return the same tuple as the graph, with "
            "every output in its place.",
        ),
        Hint(
            _counted_as(running_total),
            "Each number contains those before it: counts has one number for each graph, of this graph alone.",
        ),
        Hint(
            added_up,
            "counts has one number for each graph, in the order in which they come: append to it at each call of the "
            "backend.",
        ),
    ),
)
