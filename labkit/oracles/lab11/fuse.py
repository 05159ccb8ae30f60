"""Lab 11: what is true of a chain that becomes one kernel, and what the usual reasons for more kernels look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab11.fuse import Chain
from labkit.oracles.calls import as_call
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
LARGEST = 4.0
SLOPE = 0.1
DEFAULT_SLOPE = 0.01
"""Of `F.leaky_relu`."""


def chain(
    x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor, largest: float = LARGEST, slope: float = SLOPE
) -> torch.Tensor:
    """The values that are asked for, in float64 and rounded once."""
    f = torch.nn.functional.silu(x.double())
    g = torch.nn.functional.leaky_relu(y.double(), slope)
    return (torch.hypot(f, g).clamp(max=largest) * scale.double()).float()


def expect(run: CaseRun[Chain]) -> torch.Tensor:
    return chain(*_inputs(run))


def _inputs(run: Observation) -> tuple[torch.Tensor, ...]:
    return run.tree["x"], run.tree["y"], run.tree["scale"]


def right_values(run: CaseRun[Chain]) -> str | None:
    found = compare(expect(run), run.got["out"], CLOSE)
    if found is None:
        return None
    where = f"wrong {found.kind}" + (f" at {list(found.index)}" if found.index else "")
    return f"{where}: expected {found.expected}, got {found.got}"


def _is(run: CaseRun[Chain], wrong: torch.Tensor) -> bool:
    return compare(wrong, run.got["out"], CLOSE) is None


def broken(*parts: str) -> Callable[[CaseRun], bool]:
    """Whether the graph was broken, and the reason or the line holds one of these; without parts: for any reason."""
    return lambda run: any(part in text for text in run.held["graph_breaks"] for part in parts or ("",))


def calls(*operations: str) -> Callable[[CaseRun], bool]:
    """Whether a kernel begins with one of these operations."""
    return lambda run: any(text.partition(":")[0].split(" + ")[0] in operations for text in run.held["kernel_bytes"])


def mentions(*operations: str) -> Callable[[CaseRun], bool]:
    """Whether one of several kernels computes one of these operations."""
    return lambda run: (
        len(run.held["kernel_bytes"]) > 1
        and any(set(text.partition(":")[0].split(" + ")) & set(operations) for text in run.held["kernel_bytes"])
    )


def fact(run: CaseRun[Chain]) -> str | None:
    if right_values(run) is not None:
        return None
    kernels = "; ".join(run.held["kernel_bytes"][:4])
    return f"the kernels are: {kernels}. The ideal is one that moves {run.case.ideal_bytes:,} bytes"


FUSE = Oracle(
    id="11-fuse",
    judge=(right_values, inputs_untouched),
    budgets=(
        Budget("eager_calls", 0, "Nothing of the function was compiled, so its operations ran one by one."),
        Budget("graph_breaks", 0, "A kernel never goes over a graph break: the function has to be one graph."),
        Budget("graphs", 1, "Each graph has kernels of its own: the function has to be one graph."),
        Budget("library_calls", 0, "A call into a library is a kernel of its own, with nothing fused into it."),
        Budget("generated_kernels", 1, "There is more than one kernel: something in between is stored and read again."),
        Budget(
            "kernel_bytes",
            lambda run: run.case.ideal_bytes,
            "The kernel moves more than x, y and scale in and the result out.",
        ),
    ),
    errors={
        "at non-singleton dimension": "Two shapes do not fit together. `scale` has a number for each column, so it "
        "belongs to the last dimension as it is: `* scale`, for any number of dimensions before it.",
    },
    diagnose=(
        Hint(
            lambda run: _is(run, chain(*_inputs(run), largest=torch.inf)),
            "The sizes are not cut off: none is larger than 4 before it is multiplied by its scale.",
        ),
        Hint(
            lambda run: _is(run, chain(*_inputs(run), largest=torch.inf).clamp(max=LARGEST)),
            "The limit of 4 comes before the scale, not after it.",
        ),
        Hint(
            lambda run: _is(run, chain(*_inputs(run), slope=DEFAULT_SLOPE)),
            "Negative values of y are multiplied by 0.1. That of F.leaky_relu is 0.01 unless you say otherwise.",
        ),
        Hint(
            lambda run: right_values(run) is not None,
            "Keep to the values of `chain`: f is x · sigmoid(x), g multiplies negative numbers by 0.1, and h is "
            "√(f² + g²), at most 4, times the scale of its column.",
        ),
        Hint(
            broken("Dynamic shape operator"),
            "How many elements a mask selects is known only from the data, so `y[y < 0]` ends the graph. Compute both "
            "values everywhere and choose: torch.where(y < 0, 0.1 * y, y).",
        ),
        Hint(
            broken("disable"),
            "A function that the compiler may not touch ends the graph before it and begins a new one after it. Write "
            "it so that it can be compiled, and take the decorator away.",
        ),
        Hint(
            broken("branch on the values"),
            "A Python `if` needs a value that only the data tell, so the graph ends there: choose with torch.where.",
        ),
        Hint(
            broken(),
            "The graph ends at the line that the message names (a print, a value for Python, ...), and a kernel never "
            "goes over the end of a graph.",
        ),
        Hint(
            calls("complex", "view_as_complex"),
            "Inductor generates no code for complex numbers and calls PyTorch's own kernels for them. The absolute "
            "value of a + bi is torch.hypot(a, b), or a square root.",
        ),
        Hint(
            calls("sort", "topk", "kthvalue"),
            "A sort is a library's call, and of two numbers you need only the smaller: clamp(max=4.0).",
        ),
        Hint(
            calls("mm", "addmm", "bmm", "mul_mm"),
            "A matrix product is a library's call. A product with a diagonal matrix multiplies each column by a "
            "number: `* scale` does that, and the diagonal matrix is never built.",
        ),
        Hint(
            mentions("index_put_", "index_put", "select_scatter", "slice_scatter", "copy_"),
            "Values are changed in place in the middle of the chain: compute new ones instead, with torch.where or "
            "clamp.",
        ),
        Hint(
            mentions("cat", "stack", "amin", "amax", "min", "max", "sum"),
            "`stack` and `cat` store their parts side by side in memory before anything reads them. To choose or add "
            "up among a few tensors, take an operation with two arguments (clamp, torch.minimum, hypot).",
        ),
        Hint(
            lambda run: run.measured["library_calls"] > 0,
            "An operator that the compiler cannot look into, such as a custom one, stays a call of its own: what goes "
            "in is stored, and what comes out is read again. Write it in operations of PyTorch.",
        ),
    ),
    fact=fact,
    axis="other shapes, with more dimensions, and y by columns in memory",
    call=lambda run: as_call("fused", *_inputs(run)),
)
