"""Lab 03: the rules of CUDA's autocast, asked of PyTorch itself on fake CUDA tensors, so that no GPU is needed.

A fake tensor has a device, a dtype and a shape, and no memory. `torch.autocast("cuda")` switches itself off where there
is no GPU, so the state that it would set is set here. Without autograd: a fake CUDA backward needs a CUDA build.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab03.autocast_dtypes import GIVEN, AutocastBlock, given_in, ops_in
from labkit.exercises.lab03.autocast_ops import CALLS, SIDE, Op, call
from labkit.spec import CaseRun, Hint, Observation, Oracle

LOW, HIGH, REST = "to the low dtype", "to float32", "as its inputs"


@contextmanager
def autocast_to(low: torch.dtype, device: str) -> Iterator[None]:
    """What `torch.autocast(device, low)` does, whether the device is there or not."""
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, low)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device, before[0])
        torch.set_autocast_dtype(device, before[1])


@functools.lru_cache(4096)
def dtype_of(function: str, inputs: tuple[torch.dtype, ...], low: torch.dtype, device: str = "cuda") -> torch.dtype:
    """The dtype of one op's result under autocast, measured. Raises what PyTorch raises for dtypes that it refuses."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad(), autocast_to(low, device):
        return call(function, [torch.empty(SIDE, SIDE, dtype=dtype, device=device) for dtype in inputs]).dtype


@functools.cache
def rule_of(function: str) -> str:
    """Which list the function is on, told from what becomes of float32 and of float16 inputs."""
    n_inputs = CALLS[function].__code__.co_argcount
    if function == "embedding":
        return REST
    if dtype_of(function, (torch.float32,) * n_inputs, torch.float16) == torch.float16:
        return LOW
    return HIGH if dtype_of(function, (torch.float16,) * n_inputs, torch.float16) == torch.float32 else REST


def true_dtypes(run: CaseRun[AutocastBlock]) -> dict[str, dict[str, str]]:
    dtypes, low = given_in(run.tree), getattr(torch, run.case.low)
    ops = ops_in(run.tree)
    for op in ops:
        dtypes[op.result] = dtype_of(op.function, tuple(dtypes[name] for name in op.inputs), low)
    return {
        "dtypes": {op.result: str(dtypes[op.result]).removeprefix("torch.") for op in ops},
        GIVEN: ", ".join(run.tree["given"]),
    }


class Culprit:
    """The first op whose predicted dtype is wrong although those of its inputs are right."""

    def __init__(self, run: CaseRun[AutocastBlock]) -> None:
        right = run.expected["dtypes"]
        predicted = run.got["dtypes"]
        # In the order of the block, so that everything before it is right.
        self.op: Op = next(op for op in ops_in(run.tree) if predicted.get(op.result) != right[op.result])
        self.low, self.predicted, self.right = run.case.low, predicted.get(self.op.result), right[self.op.result]
        known = dict(run.tree["given"], **right)
        self.inputs = [known[name] for name in self.op.inputs]
        self.rule = rule_of(self.op.function)
        given = run.tree["given"]
        self.if_results_were_float32 = tuple(given.get(name, "float32") for name in self.op.inputs)

    def looks_up_given_alone(self) -> bool:
        """Whether this is the dtype for inputs that are float32 wherever they are results of earlier ops."""
        inputs = tuple(getattr(torch, dtype) for dtype in self.if_results_were_float32)
        wrong = dtype_of(self.op.function, inputs, getattr(torch, self.low))
        return self.predicted == str(wrong).removeprefix("torch.")


def culprit(when: Callable[[Culprit], object]) -> Callable[[CaseRun[AutocastBlock]], object]:
    """A diagnosis of 03-autocast-dtypes."""
    return lambda run: when(run.memo(Culprit))


def first_wrong(run: CaseRun[AutocastBlock], index: object) -> str | None:
    """The op in words, for the student."""
    found = Culprit(run)
    return f"{found.op.result} = {found.op.function}({', '.join(found.op.inputs)}), inputs {', '.join(found.inputs)}"


def in_words(run: Observation) -> str:
    """ "autocast_dtypes(ops, given, low=torch.float16), 16 ops; in given: x float32, all others float32" """
    given = {name: dtype for name, dtype in run.tree["given"].items() if name != "x"}
    others = ", ".join(sorted(set(given.values())))
    x = f"x {run.tree['given']['x']}, " if "x" in run.tree["given"] else ""
    return (
        f"autocast_dtypes(ops, given, low=torch.{run.case.low}), {len(run.tree['ops'])} ops; in given: {x}"
        f"all others {others}"
    )


AUTOCAST_DTYPES = Oracle(
    id="03-autocast-dtypes",
    places={"dtypes.*": "dtype of {0}"},
    expect=true_dtypes,
    judge=(inputs_untouched,),
    show=first_wrong,
    call=in_words,
    diagnose=(
        Hint(
            lambda run: run.got is not None and not isinstance(run.got, dict),
            "Return a dict, from the name of each result to its dtype.",
        ),
        Hint(
            lambda run: any(name.startswith("no dtype") for name in run.got["dtypes"].values()),
            "The values of the dict are dtypes such as torch.float16, not their names.",
        ),
        Hint(
            lambda run: set(run.tree["given"]) & set(run.got["dtypes"]),
            "Return the dtypes of the results only, without those of the given tensors.",
        ),
        Hint(
            lambda run: set(run.got["dtypes"]) == {op.function for op in ops_in(run.tree)},
            "The keys of the dict are the ops' functions. Use the names of their results, op.result.",
        ),
        Hint(
            lambda run: set(run.got["dtypes"]) - {op.result for op in ops_in(run.tree)},
            "Some names belong to another block: start each call with a new dict.",
        ),
        Hint(
            culprit(lambda c: c.predicted is None),
            "Some results are missing: return one dtype for every op of the block.",
        ),
        Hint(
            culprit(lambda c: c.looks_up_given_alone()),
            "An input that is the result of an earlier op is taken for float32: look its dtype up among the results, "
            "and in `given` only what no op makes.",
        ),
        Hint(
            culprit(lambda c: c.op.function == "float"),
            "`float` is a cast in the model, not autocast's: it always returns float32, whatever goes in.",
        ),
        Hint(
            culprit(lambda c: c.op.function == "add_"),
            "An in-place op writes into its first input, whose dtype stays as it is.",
        ),
        Hint(
            culprit(lambda c: "float64" in c.inputs),
            "float64 takes no part in autocast: such a tensor is never cast down, and the usual promotion applies.",
        ),
        Hint(
            culprit(lambda c: c.rule == HIGH),
            "This op is on CUDA's float32 list: inputs of either 16-bit dtype are cast up, and the result is float32. "
            "(The CPU's list is shorter.)",
        ),
        Hint(
            culprit(lambda c: c.rule == LOW),
            "This op is on the list of the low dtype: linear layers, matrix products, convolutions and attention cast "
            "every input to it, float32 and the other 16-bit dtype as well.",
        ),
        Hint(
            culprit(lambda c: c.op.function == "embedding"),
            "An embedding copies rows of its table: the dtype is the table's, whatever the index's is.",
        ),
        Hint(
            culprit(lambda c: {"float16", "bfloat16"} == set(c.inputs)),
            "Neither float16 nor bfloat16 holds the other's values: the promotion of the two is float32.",
        ),
        Hint(
            culprit(lambda c: c.op.function in ("mean", "amax", "sqrt") and c.predicted == "float32"),
            "This op is on no list, although sum and pow are: the dtype of its input stays.",
        ),
        Hint(
            culprit(lambda c: len(set(c.inputs)) > 1),
            "With inputs of different dtypes the widest one wins: float32 with float16 gives float32.",
        ),
        Hint(
            culprit(lambda c: c.rule == REST),
            "This op is on no list: autocast leaves it alone, and the dtype of its inputs stays. An input may be the "
            "result of an earlier op.",
        ),
        Hint(
            lambda run: run.got[GIVEN] != run.expected[GIVEN],
            "The answer writes its results into `given`, which belongs to the caller: start from dict(given), a copy.",
        ),
    ),
)
