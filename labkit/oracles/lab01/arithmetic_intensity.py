"""Lab 01: what is true of rates, FLOPs, bytes and times, and what the usual mistakes look like.

Matrix products are counted by PyTorch's FLOP counter and bytes by the size of tensors without storage. The operations
per element of the other operators, like the product behind a peak rate, are those that the lab's text states.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from labkit.exercises.lab01.arithmetic_intensity import INTENSITY_FUNCTIONS
from labkit.exercises.lab01.function_calls import Call
from labkit.oracles.hints import not_written_yet
from labkit.oracles.lab01.function_calls import call_of, is_blank
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

PER_ELEMENT = {"add": 1, "softmax": 5, "layernorm": 7}
DTYPES = {2: torch.float16, 4: torch.float32, 8: torch.float64}
ROUNDING = 1e-6


def operands(operator: str, rows: int, cols: int, n_out: int, itemsize: int) -> tuple[torch.Tensor, ...]:
    """What the operator reads, on the meta device."""
    shapes = {
        "add": ((rows, cols), (rows, cols)),
        "softmax": ((rows, cols),),
        "layernorm": ((rows, cols), (cols,), (cols,)),
        "linear": ((rows, cols), (n_out, cols)),
    }
    return tuple(torch.empty(shape, dtype=DTYPES[itemsize], device="meta") for shape in shapes[operator])


def cost_of(operator: str, rows: int, cols: int, n_out: int, itemsize: int) -> tuple[int, int]:
    """FLOPs, and the bytes of everything that goes in and comes out."""
    run = {
        "add": torch.add,
        "softmax": lambda x: F.softmax(x, -1),
        "layernorm": lambda x, weight, bias: F.layer_norm(x, (cols,), weight, bias),
        "linear": F.linear,
    }[operator]
    read = operands(operator, rows, cols, n_out, itemsize)
    with FlopCounterMode(display=False) as counter:
        written = run(*read)
    flops = counter.get_total_flops() if operator == "linear" else PER_ELEMENT[operator] * written.numel()
    return flops, sum(tensor.nbytes for tensor in (*read, written))


def true_result(run: CaseRun[Call]) -> dict[str, object]:
    case = run.case
    if case.function == "peak_flops":
        return {"out": 2.0 * math.prod(case.arguments)}
    if case.function == "operator_cost":
        return {"out": list(cost_of(*case.arguments))}
    flops, n_bytes, peak, bandwidth = case.arguments
    times = {"compute": flops / peak, "memory": n_bytes / bandwidth}
    bound = max(times, key=times.__getitem__)
    return {"out": [times[bound], bound]}


def peak(when: Callable[[float, float], object]) -> Callable:
    """A diagnosis of peak_flops: `when` gets (right, got)."""
    return lambda run: run.case.function == "peak_flops" and when(run.expected["out"], float(run.got["out"]))


def cost(when: Callable[..., object], *operators: str) -> Callable:
    """A diagnosis of operator_cost: `when` gets (arguments, (flops, bytes) right, (flops, bytes) got)."""

    def diagnose(run: CaseRun[Call]) -> object:
        case = run.case
        if case.function != "operator_cost" or (operators and case.arguments[0] not in operators):
            return False
        flops, n_bytes = run.got["out"]
        return when(case.arguments, cost_of(*case.arguments), (float(flops), float(n_bytes)))

    return diagnose


def least(when: Callable[..., object]) -> Callable:
    """A diagnosis of least_time: `when` gets (seconds for the FLOPs, seconds for the bytes, out)."""

    def diagnose(run: CaseRun[Call]) -> object:
        if run.case.function != "least_time":
            return False
        flops, n_bytes, rate, bandwidth = run.case.arguments
        return when(flops / rate, n_bytes / bandwidth, run.got["out"])

    return diagnose


def near(found: float, wanted: float) -> bool:
    return math.isclose(found, wanted, rel_tol=ROUNDING)


def written(arguments: tuple) -> int:
    """The bytes that the operator writes."""
    operator, rows, cols, n_out, itemsize = arguments
    return rows * (n_out if operator == "linear" else cols) * itemsize


def fixed_itemsizes(arguments: tuple, n_bytes: int) -> list[float]:
    """The bytes where a number always takes so many, other than it does."""
    itemsize = arguments[4]
    return [n_bytes / itemsize * fixed for fixed in (2, 4, 8) if fixed != itemsize]


def moved_otherwise(arguments: tuple) -> list[int]:
    """Bytes of a linear layer with a bias, without its input, or with a tensor of another shape."""
    _, rows, cols, n_out, itemsize = arguments
    read, weight, result = rows * cols, cols * n_out, rows * n_out
    sums = (
        *(read + weight + result + n_out, weight + result, read + weight + rows * cols, read + cols * cols + result),
        *(read + n_out * n_out + result, weight + 2 * result),
    )
    return [itemsize * n for n in sums]


ARITHMETIC_INTENSITY = Oracle(
    id="01-arithmetic-intensity",
    places={"out.0": "first value", "out.1": "second value"},
    expect=true_result,
    tolerance=Tolerance(rtol=ROUNDING),
    call=call_of,
    diagnose=(
        *not_written_yet(INTENSITY_FUNCTIONS, is_blank),
        Hint(
            lambda run: run.case.function != "peak_flops" and not isinstance(run.got["out"], list),
            "Return two values: operator_cost gives (FLOPs, bytes), least_time gives (seconds, bound).",
        ),
        Hint(
            peak(lambda right, got: near(2 * got, right)),
            "The rate is half of what it should be: a fused multiply-add (FMA) counts as two operations.",
        ),
        Hint(
            peak(lambda right, got: abs((math.log10(right / got) + 1.5) % 3 - 1.5) < ROUNDING),
            "The rate is off by a power of a thousand. Everything is in plain units here: hertz in, FLOP/s out.",
        ),
        Hint(
            lambda run: (
                run.case.function == "peak_flops"
                and any(near(run.got["out"] * n, run.expected["out"]) for n in run.case.arguments)
            ),
            "A factor is missing: the SMs of the chip, the FMAs per clock of one of them, 2, and the clock.",
        ),
        Hint(
            cost(lambda args, right, got: got == right[::-1]),
            "FLOPs and bytes have changed places: operator_cost gives (FLOPs, bytes).",
        ),
        Hint(
            cost(lambda args, right, got: near(2 * got[0], right[0]), "linear"),
            "A multiply-add was counted as one operation. Each of the rows x n_out results takes cols multiplications "
            "and as many additions: 2 FLOPs each.",
        ),
        Hint(
            cost(lambda args, right, got: got[0] == right[0] + args[1] * args[3], "linear"),
            "One operation for each result too many: this linear layer has no bias to add.",
        ),
        Hint(
            cost(lambda args, right, got: got[0] == right[0] - args[1] * args[3], "linear"),
            "Count cols additions for each result as well, not cols - 1: the first goes into an accumulator at zero.",
        ),
        Hint(
            lambda run: run.case.function == "least_time" and isinstance(run.got["out"][0], str),
            "Seconds and bound have changed places: least_time gives (seconds, bound).",
        ),
        Hint(
            cost(lambda args, right, got: near(got[0], right[0]) and near(got[1] * args[4], right[1])),
            "Those are elements, not bytes: multiply by itemsize.",
        ),
        Hint(
            cost(
                lambda args, right, got: (
                    near(got[0], right[0])
                    and got[1] in fixed_itemsizes(args, right[1])
                    # Of other operators a half or a quarter of the bytes is a tensor that is missing, as well.
                    and (args[0] == "add" or CANNOT_TELL)
                )
            ),
            "The bytes of a number are fixed in your answer: `itemsize` says how many there are.",
        ),
        Hint(
            cost(lambda args, right, got: near(got[0], args[4] * right[0])),
            "FLOPs do not depend on itemsize: it belongs to the bytes alone.",
        ),
        Hint(
            cost(lambda args, right, got: near(got[0], right[0]) and near(got[1], 8 * right[1])),
            "Those are bits: itemsize is in bytes already.",
        ),
        Hint(
            cost(lambda args, right, got: not near(got[0], right[0]), "add"),
            "An addition is one operation for each element of the sum.",
        ),
        Hint(
            cost(lambda args, right, got: near(got[1], right[1] - written(args)), "add"),
            "Two tensors out of three. An addition reads both of its operands and writes the sum.",
        ),
        Hint(
            cost(lambda args, right, got: near(got[1], right[1] - written(args))),
            "The write was forgotten: the result goes back to memory too, and its bytes count like those read.",
        ),
        Hint(
            cost(lambda args, right, got: near(got[1], right[1] - args[2] * args[3] * args[4]), "linear"),
            "The weight was forgotten: cols x n_out numbers are read as well. For a single row they are nearly all "
            "of the bytes.",
        ),
        Hint(
            cost(lambda args, right, got: got[1] in (2 * written(args), right[1] - args[2] * args[4]), "layernorm"),
            "Layer norm also reads its weight and its bias, cols numbers each.",
        ),
        Hint(
            cost(
                lambda args, right, got: math.isclose(
                    got[1], right[1] + 2 * (args[1] - args[2]) * args[4], rel_tol=1e-9
                ),
                "layernorm",
            ),
            "Layer norm's weight and bias have cols numbers each, one for every column; not one for every row.",
        ),
        Hint(
            cost(lambda args, right, got: near(got[0], right[0]) and got[1] in moved_otherwise(args), "linear"),
            "A linear layer without bias moves three tensors: it reads (rows, cols) and (cols, n_out), and it writes "
            "(rows, n_out).",
        ),
        Hint(
            cost(lambda args, right, got: got[1] > 1.4 * right[1]),
            "More bytes than the operator has to move: intermediate results stay in registers here. Count each input "
            "once and the result once.",
        ),
        Hint(
            cost(lambda args, right, got: not near(got[0], right[0]), "softmax"),
            "Softmax takes 5 operations per element: maximum, subtraction, exponential, sum, division.",
        ),
        Hint(
            cost(lambda args, right, got: not near(got[0], right[0]), "layernorm"),
            "Layer norm takes 7 operations per element: mean, subtraction, square, sum of squares, and times 1/σ, "
            "times weight, plus bias.",
        ),
        Hint(
            least(lambda compute_s, memory_s, out: near(out[0], compute_s + memory_s)),
            "The two times were added. Chips compute and move data at the same time: the longer of the two counts.",
        ),
        Hint(
            least(lambda compute_s, memory_s, out: near(out[0], min(compute_s, memory_s))),
            "That is the shorter of the two times: both have to be over before the operator is done. An intensity "
            "tells which is longer where it is compared with peak / bandwidth, not with 1.",
        ),
        Hint(
            least(lambda compute_s, memory_s, out: near(out[0], max(compute_s, memory_s))),
            'The time is right, the bound is not: it is "memory" where moving the bytes takes longer, and "compute" '
            "where the FLOPs do.",
        ),
        Hint(
            least(
                lambda compute_s, memory_s, out: (
                    any(near(out[0] * time_s, 1) for time_s in (compute_s, memory_s))
                    or out[0] > 999 * max(compute_s, memory_s)
                )
            ),
            "Upside down, or in other units: times are amounts divided by rates, FLOPs / (FLOP/s) and bytes / "
            "(bytes/s), in seconds.",
        ),
    ),
)
