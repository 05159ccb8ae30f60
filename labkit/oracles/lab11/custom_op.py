"""Lab 11: what is true of the two operators, and what the usual mistakes in declaring them look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab11 import native
from labkit.exercises.lab11.custom_op import Operators
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle

NAMES = ("quantize", "note_peak")
TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def true_quantized(run: CaseRun[Operators]) -> tuple[torch.Tensor, torch.Tensor]:
    return native.quantize_blocks(run.tree["x"], run.case.block)


def true_peak(run: CaseRun[Operators]) -> torch.Tensor:
    peak = run.tree["peak"].clone()
    native.note_peak(peak, run.tree["x"])
    return peak


def right_values(run: CaseRun[Operators]) -> str | None:
    values, scale = true_quantized(run)
    for name, wanted in {"values": values, "scale": scale, "peak": true_peak(run)}.items():
        if found := compare(wanted, run.got[name]):
            return (
                f"called by themselves, the operators give a wrong {name}: expected {found.expected}, got {found.got}"
            )
    return None


def are_operators(run: CaseRun[Operators]) -> str | None:
    missing = [name for name, is_one in zip(NAMES, run.got["is_operator"], strict=True) if not is_one]
    return f"{' and '.join(missing)} is no operator of torch.library" if missing else None


def described(tensor: torch.Tensor) -> list:
    return [list(tensor.shape), list(tensor.stride()), str(tensor.dtype).removeprefix("torch.")]


def right_fake(run: CaseRun[Operators]) -> str | None:
    got = run.got["fake"]
    wanted = [described(one) for one in true_quantized(run)]
    if got == wanted:
        return None
    if isinstance(got, str):
        return f"on a fake tensor, quantize raises {got}"
    for name, right, wrong in zip(("values", "scale"), wanted, got, strict=True):
        for what, one, other in zip(("shape", "strides", "dtype"), right, wrong, strict=True):
            if one != other:
                return f"the fake result `{name}` has {what} {other}, and the real one {one}"
    return "the fake results are not two tensors"


def opcheck_passes(run: CaseRun[Operators]) -> str | None:
    for name, checked in zip(NAMES, run.got["checked"], strict=True):
        for test in TESTS:
            if checked.get(test) != "SUCCESS":
                return f"opcheck of {name}, {test}: {checked.get(test, 'it was not tried')}"
    return None


def right_in_a_graph(run: CaseRun[Operators]) -> str | None:
    if isinstance(run.got["compiled"], str):
        return f"compiled, a function that calls them raises {run.got['compiled']}"
    values, scale = native.quantize_blocks(2 * run.tree["x"], run.case.block)
    wanted = [values, 2 * scale, 3 * true_peak(run)]
    found = compare(wanted, run.got["compiled"])
    return f"compiled, the results are others: expected {found.expected}, got {found.got}" if found else None


def says(text: str, at: int | None = None) -> Callable[[CaseRun], bool]:
    """Whether opcheck has this to say of one of them, or of the one with this number."""

    def holds(run: CaseRun[Operators]) -> bool:
        checked = run.got["checked"] if at is None else [run.got["checked"][at]]
        return any(text in message for one in checked for message in one.values())

    return holds


def fake_differs(which: int, part: int, so: Callable[[CaseRun, object], bool] = lambda run, got: True):
    """Whether this part (shape, strides, dtype) of a fake result is wrong; CANNOT_TELL where it happens to be right."""

    def holds(run: CaseRun[Operators]) -> object:
        got, wanted = run.got["fake"], described(true_quantized(run)[which])
        if isinstance(got, str):
            return False
        return so(run, got[which][part]) if got[which][part] != wanted[part] else CANNOT_TELL

    return holds


CUSTOM_OP = Oracle(
    id="11-custom-op",
    judge=(inputs_untouched, right_values, are_operators, right_fake, opcheck_passes, right_in_a_graph),
    budgets=(
        Budget("eager_calls", 0, "Nothing of the function that calls them was compiled."),
        Budget("graph_breaks", 0, "An operator is one node of the graph: no break around it."),
        Budget("graphs", 1, "An operator is one node of the graph: no break around it."),
    ),
    errors={
        "must not also be an input": "An operator may not return one of its arguments: the graph would not know that "
        "both are the same memory. Declare in `mutates_args` what is written, and return nothing.",
        "may not alias any inputs": "An operator may not return one of its arguments or a view of it: declare in "
        "`mutates_args` what is written, and return nothing.",
    },
    diagnose=(
        Hint(
            lambda run: are_operators(run) is not None,
            "A plain function is not an operator: Dynamo tries to look into it, and breaks the graph. Put "
            '`@torch.library.custom_op("lab11::name", mutates_args=...)` above it.',
        ),
        Hint(
            says("There was no fake impl registered", at=0),  # of quantize: the other needs none
            "The compiler calls the operator on fake tensors, which have a shape and a dtype and no data. Tell it what "
            "comes out there, with `@quantize.register_fake`.",
        ),
        Hint(
            lambda run: isinstance(run.got["fake"], str),
            "The fake implementation does something that needs data, or calls `native`, which does. It gets fake "
            "tensors and makes empty results from their shapes: x.new_empty(...).",
        ),
        Hint(
            fake_differs(1, 0, lambda run, got: got[-1:] == [run.tree["x"].shape[-1] // run.case.block]),
            "The last block of a row may be shorter and has a scale too: there are ⌈columns / block⌉ of them, in "
            "Python -(-columns // block).",
        ),
        Hint(
            fake_differs(1, 0, lambda run, got: got[-1:] == [run.tree["x"].shape[-1] // run.case.block + 1]),
            "Where the block divides a row there is no shorter block at its end: there are ⌈columns / block⌉ of them, "
            "in Python -(-columns // block).",
        ),
        Hint(
            fake_differs(1, 2),
            "The scales are float32, whatever x is: x.new_empty(shape, dtype=torch.float32).",
        ),
        Hint(fake_differs(0, 2), "The values are int8, in the fake implementation too."),
        Hint(
            fake_differs(0, 1),
            "The real values are contiguous, and your fake ones lie in memory as x does, by columns: "
            "torch.empty_like keeps x's strides, x.new_empty(x.shape, ...) does not.",
        ),
        Hint(
            lambda run: right_fake(run) is not None,
            "The fake implementation has to return what the real one does, in number, shape, strides and dtype.",
        ),
        Hint(
            says("not defined as mutable but was mutated"),
            "An argument is changed, and the schema does not say so. The compiler then takes the call for one without "
            'effect, and drops or moves it: mutates_args=("peak",).',
        ),
        Hint(
            lambda run: right_values(run) is not None,
            "Inside the operator, call the function of `native` and return its result.",
        ),
    ),
    axis="other shapes, blocks and dtypes, and x by columns in memory",
)
