"""Lab 11: what is asked, given and run for operators of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Run

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
MOST_LETTERS = 300
OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch.library.CustomOpDef)


@dataclass(frozen=True)
class Operators(Case):
    """x of `shape`, quantized in blocks of `block`. transposed: whether x lies in memory by columns."""

    shape: tuple[int, ...] = (6, 10)
    block: int = 4
    dtype: str = "float32"
    transposed: bool = False


def operator_inputs(case: Operators, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x: `shape`, with a block of zeros; peak: (columns,)."""
    x = torch.randn(case.shape, generator=gen)
    x[..., 0, : case.block] = 0
    return {"x": x.to(DTYPES[case.dtype]), "peak": torch.rand(case.shape[-1], generator=gen)}


def drive_custom_op(ans, case: Operators, tree: dict, stage) -> dict[str, object]:
    """What the operators compute and claim, alone, on fake tensors, by opcheck, and in a compiled function."""
    torch.compiler.reset()
    quantize, note_peak = ans.make_ops()
    x, peak = tree["x"].clone(), tree["peak"].clone()
    if case.transposed:
        x = x.mT.contiguous().mT
    values, scale = quantize(x, case.block)
    note_peak(peak, x)

    def model(x: torch.Tensor, peak: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, scale = quantize(2 * x, case.block)
        note_peak(peak, x)
        return values + 0, 2 * scale, 3 * peak

    in_graph = peak.clone()
    with stage.meter("compile"):
        compiled = _or_text(lambda: list(torch.compile(model, backend="aot_eager", dynamic=False)(x, in_graph)))
    return {
        "is_operator": [isinstance(one, OPERATORS) for one in (quantize, note_peak)],
        "values": values,
        "scale": scale,
        "peak": peak,
        "fake": _or_text(lambda: _on_fake(quantize, x, case.block)),
        "checked": [_checked(quantize, (x, case.block)), _checked(note_peak, (tree["peak"].clone(), x))],
        "compiled": compiled,
    }


def _or_text(work: Callable[[], object]) -> object:
    """What it returns, or in words what it raised."""
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:MOST_LETTERS]


def _on_fake(quantize: Callable, x: torch.Tensor, block: int) -> list[list]:
    """[shape, strides, dtype] of each result where only these are known of x."""
    with torch._subclasses.FakeTensorMode() as mode:
        results = quantize(mode.from_tensor(x), block)
    return [[list(one.shape), list(one.stride()), str(one.dtype).removeprefix("torch.")] for one in results]


def _checked(operator: object, inputs: tuple) -> dict[str, str]:
    """What `torch.library.opcheck` says, by test; empty for what is no operator."""
    if not isinstance(operator, OPERATORS):
        return {}
    found = torch.library.opcheck(operator, inputs, raise_exception=False)
    return {name: str(result)[:MOST_LETTERS] for name, result in found.items()}


CUSTOM_OP = Exercise(
    id="11-custom-op",
    title="Operators of your own in one graph",
    points=0.3,
    minutes=25,
    difficulty=2,
    optional=True,
    answers=(Answer("make_ops"),),
    public=(
        Operators(),
        Operators((4, 9), 3, transposed=True),
        Operators((2, 3, 11), 4, dtype="bfloat16"),
    ),
    inputs=operator_inputs,
    drive=drive_custom_op,
    meters=("compile",),
    # Dynamo and what opcheck tries are loaded first, seconds on a busy machine.
    run=Run(wall_s=60.0),
)
