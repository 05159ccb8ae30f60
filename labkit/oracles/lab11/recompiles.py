"""Lab 11: what the model gives without a compiler, and how often it may be compiled."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab11.recompiles import WIDTH, Serving
from labkit.exercises.lab11.served import ServedModel
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance, Tree

PER_LAYER = 3
"""Operations that a layer takes at least: a product, a tanh, and an addition that scales."""


def eagerly(run: CaseRun[Serving]) -> Tree:
    case = run.case
    if case.runaway:
        return {"raised": True}
    model = ServedModel(WIDTH, case.n_layers)
    model.load_state_dict(run.tree["weights"])
    with torch.no_grad():
        results = [
            model(batch, temperature) for batch, (_, temperature) in zip(run.tree["batches"], case.calls(), strict=True)
        ]
    return {"results": results, "n_calls": len(case.sizes), "rows": list(case.sizes)}


def frames(run: CaseRun[Serving]) -> float:
    """One for all sizes from 2 on; 0 and 1 are compiled for themselves."""
    sizes = set(run.case.sizes)
    return len(sizes & {0, 1}) + bool(sizes - {0, 1})


def _guards(run: CaseRun[Serving]) -> list[str]:
    """The guards that failed, without the names of their functions."""
    return [text.partition(": ")[2] for text in run.held["frames"]]


def _failed(part: str) -> Callable[[CaseRun[Serving]], object]:
    """Whether a guard with this text failed, where it came to too many frames or to eager calls.

    Of the guards that fail in a call only the first is named: where sizes of 0 or 1 come, that may be one of the size.
    """

    def when(run: CaseRun[Serving]) -> object:
        if run.case.runaway:
            return CANNOT_TELL
        if _too_many(run) and any(part in guard for guard in _guards(run)):
            return True
        return CANNOT_TELL if _too_many(run) and {0, 1} & set(run.case.sizes) else False

    return when


def _too_many(run: CaseRun[Serving]) -> bool:
    return _is_whole(run) and (run.measured["frames"] > frames(run) or run.measured["eager_calls"] > 0)


def _is_whole(run: CaseRun[Serving]) -> bool:
    return run.measured["captured_operations"] >= PER_LAYER * run.case.n_layers


def sizes_are_guarded(run: CaseRun[Serving]) -> object:
    """A guard on a size of 2 or more failed, in every case with several sizes, and in no other."""
    n_sizes = len(set(run.case.sizes) - {0, 1})
    if run.case.runaway:
        return CANNOT_TELL
    if n_sizes < 2 or not _is_whole(run):
        return False
    return any("size mismatch" in guard for guard in _guards(run))


def silent(run: CaseRun[Serving]) -> object:
    return run.case.runaway and run.got["raised"] is False


def padded(run: CaseRun[Serving]) -> object:
    """The graph was given more rows than the batch has."""
    if run.case.runaway or len(set(run.case.sizes)) < 2:
        return CANNOT_TELL
    return sum(run.got["rows"]) > sum(run.case.sizes)


def backend_unused(run: CaseRun[Serving]) -> object:
    """The backend that make_step is given was never given a graph that runs."""
    return CANNOT_TELL if run.case.runaway else not run.got["rows"]


def count_stands_still(run: CaseRun[Serving]) -> object:
    return CANNOT_TELL if run.case.runaway else run.got["n_calls"] == 0


def count_before(run: CaseRun[Serving]) -> object:
    """As if the call were counted after it was used, or only once."""
    return CANNOT_TELL if run.case.runaway else run.got["n_calls"] < len(run.case.sizes)


def full_share(run: CaseRun[Serving]) -> object:
    return CANNOT_TELL if run.case.runaway else _plays(run, lambda n: 1.0)


def no_end(run: CaseRun[Serving]) -> object:
    """The share goes on growing past 1."""
    if run.case.runaway or len(run.case.sizes) <= 10:
        return CANNOT_TELL
    return _plays(run, lambda n: n / 10)


def late_count(run: CaseRun[Serving]) -> object:
    return CANNOT_TELL if run.case.runaway else _plays(run, lambda n: min(1.0, (n - 1) / 10))


def _plays(run: CaseRun[Serving], share_of: Callable[[int], float]) -> bool:
    results = []
    layers = [
        (run.tree["weights"][f"layers.{n}.weight"], run.tree["weights"][f"layers.{n}.bias"])
        for n in range(run.case.n_layers)
    ]
    for number, (x, (_, temperature)) in enumerate(zip(run.tree["batches"], run.case.calls(), strict=True), 1):
        for place, (weight, bias) in enumerate(layers, 1):
            x = x + share_of(number) * torch.tanh(x @ weight.T + bias) / place
        results.append(x / temperature)
    return all(
        got.shape == other.shape and torch.allclose(got, other, atol=1e-4, rtol=1e-4)
        for got, other in zip(run.got["results"], results, strict=True)
    )


def called(run: Observation) -> str:
    case = run.case
    if case.runaway:
        return "make_step(a model with a Python number that changes in every call, backend), called 12 times"
    temperatures = ", ".join(map(str, case.temperatures))
    return (
        f"step = make_step(SteadyModel({WIDTH}, {case.n_layers}), backend); batches of "
        f"{', '.join(map(str, case.sizes))} rows, temperature {temperatures}{' in turn' if ',' in temperatures else ''}"
    )


RECOMPILES = Oracle(
    id="11-recompiles",
    expect=eagerly,
    tolerance=Tolerance(atol=1e-4, rtol=1e-4),
    judge=(inputs_untouched,),
    call=called,
    places={
        "results": "result of a call",
        "raised": "answer to whether step raised at the limit",
        "n_calls": "model.n_calls after all calls",
        "rows": "rows given to the graph",
    },
    axis="numbers of layers, sizes of batches (also 0 and 1), temperatures and numbers of calls",
    errors={
        "Attempt to trace forbidden callable": "mark_dynamic says something about a tensor before it is given to a "
        "compiled function: call it in step, and not in forward.",
        "attribute 'n_calls' already exists": "ServedModel has made n_calls an int, and a name is one thing: "
        "`del self.n_calls` before the buffer is registered.",
        "Constraints violated": "A size was marked as dynamic that the model fixes: only axis 0, the number of rows, "
        "changes.",
    },
    budgets=(
        Budget(
            "graph_breaks",
            0,
            "The model breaks into several graphs. Nothing in it may need the value of a tensor in Python: use "
            "torch.clamp or torch.where in place of an `if`, and tensors in place of .item().",
        ),
        Budget(
            "frames",
            frames,
            "More versions were compiled than one for all sizes from 2 on and one for 1. The guards that failed are "
            "named above: each is something that the compiler took for fixed and that has changed.",
        ),
        Budget(
            "eager_calls",
            0,
            "Some calls ran eagerly, without a compiled graph. Past 8 versions, Dynamo gives up on a function.",
        ),
        Budget(
            "captured_operations",
            lambda run: 0 if run.case.runaway else PER_LAYER * run.case.n_layers,
            "Only a part of the model is in the graph. Compile the whole model, layers included.",
            at_least=True,
        ),
    ),
    diagnose=(
        Hint(
            silent,
            "When the limit on versions is reached, step goes on eagerly and says nothing. torch.compile(..., "
            "fullgraph=True) raises there, and so does torch._dynamo.config.fail_on_recompile_limit_hit = True.",
        ),
        Hint(
            backend_unused,
            "No graph ran that the given backend has compiled: make_step has to compile the model with it, "
            "torch.compile(model, backend=backend).",
        ),
        Hint(
            _failed("n_calls"),
            "The model's count of calls is a Python number. An int is compiled for each of its values, until the limit "
            "of 8; a float for its first value, and once more when that changes. Make it a buffer: "
            'self.register_buffer("n_calls", torch.tensor(0)).',
        ),
        Hint(
            _failed("temperature =="),
            "A temperature that comes as a Python float is compiled for its first value, and once more when it "
            "changes. Hand a tensor to the compiled model.",
        ),
        Hint(
            sizes_are_guarded,
            "The first size is compiled for itself, because nothing says that it will change. Mark axis 0 of the batch "
            "as dynamic before the compiled model sees it: torch._dynamo.mark_dynamic(x, 0).",
        ),
        Hint(
            padded,
            "The batches were padded to one size: one graph, but it works on rows that nobody needs. Give the graph "
            "the rows that there are, with their number marked as dynamic.",
        ),
        Hint(
            count_stands_still,
            "n_calls stays 0: the call is not counted in the model that runs. Count in forward, in place: "
            "self.n_calls += 1 on a buffer.",
        ),
        Hint(
            no_end,
            "The share goes on growing behind the warm-up. min(1.0, ...) of a tensor is torch.clamp(..., max=1.0).",
        ),
        Hint(full_share, "The share of the warm-up is left out: the layers count in full from the first call on."),
        Hint(late_count, "The call is counted after its share was worked out: the first call is number 1."),
        Hint(count_before, "Not every call was counted: n_calls is the number of calls of the model."),
    ),
)
