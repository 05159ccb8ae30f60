"""Lab 11: what is true of a device that records, and what the usual mistakes compile and run."""

from __future__ import annotations

from collections.abc import Callable

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab11.lazy_tensor import OPERATIONS, LazyLoop
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)


@once
def true_values(run: CaseRun[LazyLoop]) -> list:
    """What the program looks at, computed at once."""
    values, looked_at = [], []
    for kind, *rest in run.case.program():
        if kind == "tensor":
            values.append(run.tree["values"][rest[0]])
        elif kind == "apply":
            values.append(OPERATIONS[rest[0]](*(values[at] for at in rest[1:])))
        elif kind == "value":
            looked_at.append(values[rest[0]])
    return looked_at


@once
def true_graphs(run: CaseRun[LazyLoop]) -> list[tuple]:
    """The graph of each cut, with its inputs' shapes: equal ones are compiled once."""
    shapes, known, pending, cuts = [], set(), [], []

    def cut() -> None:
        if not pending:
            return
        own = [handle for handle, _, _ in pending]
        inputs = list(dict.fromkeys(at for _, _, given in pending for at in given if at not in own))
        number = {handle: at for at, handle in enumerate([*inputs, *own])}
        operations = tuple((name, *(number[at] for at in given)) for _, name, given in pending)
        cuts.append((tuple(shapes[at] for at in inputs), operations))
        known.update(own)
        pending.clear()

    values = []
    for kind, *rest in run.case.program():
        if kind == "tensor":
            known.add(len(values))
            values.append(run.tree["values"][rest[0]])
            shapes.append(tuple(values[-1].shape))
        elif kind == "apply":
            pending.append((len(values), rest[0], rest[1:]))
            values.append(OPERATIONS[rest[0]](*(values[at] for at in rest[1:])))
            shapes.append(tuple(values[-1].shape))
        elif kind == "mark" or rest[0] not in known:
            cut()
    return cuts


def n_runs(run: CaseRun[LazyLoop]) -> int:
    return len(true_graphs(run))


def n_compiled(run: CaseRun[LazyLoop]) -> int:
    return len(set(true_graphs(run)))


def n_by_names(run: CaseRun[LazyLoop]) -> int:
    """Graphs that differ in shapes or in the names of their operations, whatever these are applied to."""
    return len({(shapes, tuple(name for name, *_ in operations)) for shapes, operations in true_graphs(run)})


def n_operations(run: CaseRun[LazyLoop]) -> int:
    return sum(len(operations) for _, operations in true_graphs(run))


def right_values(run: CaseRun[LazyLoop]) -> str | None:
    found = compare(true_values(run), run.got["looked_at"], CLOSE)
    return f"wrong {found.kind} of a result: expected {found.expected}, got {found.got}" if found else None


def right_runs(run: CaseRun[LazyLoop]) -> str | None:
    got, wanted = len(run.got["runs"]), n_runs(run)
    if got != wanted:
        return f"the program cuts {wanted} times, and the number of graphs that ran is {got}"
    if (got := sum(run.got["runs"])) != (wanted := n_operations(run)):
        return f"{got} operations were run, and the program has {wanted}"
    return None


def right_compiled(run: CaseRun[LazyLoop]) -> str | None:
    got, wanted = len(run.got["compiled"]), n_compiled(run)
    if got == wanted:
        return None
    return f"of the {n_runs(run)} graphs that were cut, {wanted} are new, and {got} were compiled"


def n_looks(run: CaseRun[LazyLoop]) -> int:
    """How often the program looks at a value in the middle of a step."""
    return sum(1 for step in range(run.case.n_steps) if run.case.print_every and (step + 1) % run.case.print_every == 0)


def where(applies: Callable[[CaseRun], bool], holds: Callable[[CaseRun], bool]) -> Callable[[CaseRun], object]:
    return lambda run: holds(run) if applies(run) else CANNOT_TELL


def called(run: CaseRun[LazyLoop]) -> str:
    case = run.case
    parts = [f"a loop of {case.n_steps} steps with batches of {case.n_rows} rows"]
    if case.last_rows != case.n_rows:
        parts.append(f"the last batch has {case.last_rows}")
    if case.print_every:
        parts.append(
            f"in every {case.print_every}. step it looks at a result"
            if case.print_every > 1
            else "in every step it looks at a result"
        )
    if case.looks_back:
        parts.append("in every step it looks at the weight")
    if case.other_at >= 0:
        parts.append(f"step {case.other_at} has a relu as well")
    if case.swapped_at >= 0:
        parts.append(f"in step {case.swapped_at} the arguments of sub change places")
    return "; ".join(parts)


LAZY_TENSOR = Oracle(
    id="11-lazy-tensor",
    call=called,
    judge=(inputs_untouched, right_values, right_runs, right_compiled),
    errors={
        "was compiled for inputs of shapes": "A graph is compiled for the shapes of its inputs. Another batch size is "
        "another graph: the shapes belong into the key of the cache.",
        "the same tensor twice": "A tensor that several operations use is one input: list each handle once, as "
        "dict.fromkeys does.",
        "is used by no operation": "The inputs of a graph are the known tensors that its operations use. Others do not "
        "belong to it: with each step more are known, and no two graphs would be alike.",
        "KeyError": "A handle was looked up that is not there. `value` cuts first if the handle is still on the "
        "record, and a cut keeps the result of every operation, not only of the last.",
        "list index out of range": "An argument of a graph has to be the number of one of the graph's inputs or of an "
        "operation before it, counted on behind the inputs.",
    },
    diagnose=(
        Hint(
            where(
                lambda run: n_by_names(run) < n_compiled(run),
                lambda run: right_runs(run) is None and len(run.got["compiled"]) == n_by_names(run),
            ),
            "Two graphs with the same operations on other arguments, as in w - u and u - w, were taken for one. The "
            "numbers of the arguments belong into the key of the cache.",
        ),
        Hint(
            lambda run: right_values(run) is not None,
            "The results are wrong. Number the inputs of a graph from 0, its operations after them, and keep the "
            "result of each operation under the handle that `apply` gave out.",
        ),
        Hint(
            lambda run: sum(run.got["runs"]) > n_operations(run),
            "Operations run a second time: what has been cut off and run has to leave the record.",
        ),
        Hint(
            lambda run: len(run.got["runs"]) == n_operations(run),
            "Every operation runs by itself, as in eager mode. `apply` only writes it down; a mark or a look at a "
            "value runs all that was written down, as one graph.",
        ),
        Hint(
            where(
                lambda run: run.case.n_steps > 1 + n_looks(run),
                lambda run: (
                    len(run.got["runs"]) < n_runs(run)
                    and max(run.got["runs"]) > max(len(operations) for _, operations in true_graphs(run))
                ),
            ),
            "The record is not cut at a mark, so it grows over several steps into a graph that nobody has seen before. "
            "`mark_step` runs what was written down.",
        ),
        Hint(
            lambda run: 0 in run.got["runs"],
            "A graph without operations was run: where nothing is written down, a mark does nothing.",
        ),
        Hint(
            where(
                lambda run: n_runs(run) > n_compiled(run),
                lambda run: right_runs(run) is None and len(run.got["compiled"]) == n_runs(run),
            ),
            "Every cut is compiled anew. Keep compiled graphs in a dict, by the operations and the shapes of the "
            "inputs. Handles do not belong into this key, as they are new in each step: number inputs and operations "
            "from 0 within the graph.",
        ),
        Hint(
            lambda run: len(run.got["runs"]) > n_runs(run),
            "There are more cuts than needed: a value that is known needs none.",
        ),
        Hint(
            lambda run: right_values(run) is None and len(run.got["runs"]) < n_runs(run),
            "The results are right, and some of them come from elsewhere than the graphs that this `compile_graph` "
            "made. Keep the cache in the object, as another device compiles for itself, and compute nothing yourself.",
        ),
    ),
    axis="other loops: short last batches, steps that differ, looks at values",
)
