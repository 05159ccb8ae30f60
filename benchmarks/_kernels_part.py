"""Measure one operation of `benchmarks.kernels`, in a process of its own, writing its file anew after each row.

    python -m benchmarks._kernels_part softmax FILE [--quick] [--dry]

A way that fails is recorded with its error, and the others go on. After an error of the GPU itself nothing works any
more in a process; the parent goes on with the next operation.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch._functorch.config
from torch import Tensor

from benchmarks._kernels_clock import clocks, in_turns
from benchmarks._kernels_ops import OPS, Op, Pass, Shape, Work, normal

TURNS, QUICK_TURNS = 50, 15
PRODUCTS = (8192, 4096)
"""Sizes of square matrix products; the faster one is what arithmetic is compared with."""
RIGHT = 0.02
"""The most that a result in bfloat16 may differ from eager PyTorch's, in norms."""
NO_SLOWER = 1.02
"""Times within 2 % of each other are equal."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="kernels part")
    parser.add_argument("op", choices=OPS)
    parser.add_argument("file", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args(argv)
    if args.dry:
        from labkit import interpreter

        if not interpreter.enable():
            raise SystemExit("a dry run needs the interpreter: set CUDA_VISIBLE_DEVICES= (empty)")
    # A backward pass is timed many times over one graph, which the compiler may otherwise refuse.
    torch._functorch.config.donated_buffer = False
    measure(OPS[args.op], args.file, args.quick, args.dry)


def measure(op: Op, file: Path, quick: bool, dry: bool) -> None:
    """All sizes and passes; each row is in the file as soon as it is there."""
    rows: list[dict[str, Any]] = []
    part = {"clocks_before": None if dry else clocks(), "rows": rows}
    sizes = [op.dry] if dry else op.sizes[:1] if quick else op.sizes
    for shape in sizes:
        for each in op.passes:
            try:
                row = measured(op, each, shape, quick, dry)
            except Exception as error:
                row = {"error": in_words(error)}
            rows.append({"pass": each.name, "shape": list(shape), **row})
            _write(file, part | {"clocks_after": None if dry else clocks(), "configs": chosen(op)})
            gc.collect()


def measured(op: Op, each: Pass, shape: Shape, quick: bool, dry: bool) -> dict[str, Any]:
    """One row: the times of all ways, what they are compared with, which aims are met."""
    device, dtype = ("cpu", torch.float32) if dry else ("cuda", torch.bfloat16)
    ready, errors, wrong = {}, {}, {}
    want = _results(op, each, lambda: op.eager, shape, dtype, device)
    for name, make in op.ways(dry).items():
        try:
            wrong[name] = difference(_results(op, each, make, shape, dtype, device), want)
            ready[name] = _timed(op, each, make, shape, dtype, device)
            ready[name]()
        except Exception as error:
            ready.pop(name, None)
            errors[name] = in_words(error)
    del want
    first = op.inputs(shape, dtype, device)[0]
    work = {} if each.moved is None else {"bytes": int(each.moved * first.nbytes)}
    work |= {} if op.flops is None else {"flops": op.flops(shape)}
    against, amount = _yardstick(each, work, dtype, device, dry)
    del first
    times = in_turns({**ready, "yardstick": against}, 3 if dry else QUICK_TURNS if quick else TURNS, dry)
    rates = {name: (work.get("bytes") or work["flops"]) / one.median_ms for name, one in times.items()}
    ratios = {name: round(rates[name] / (amount / times["yardstick"].median_ms), 4) for name in ready}
    row = {
        "dtype": str(dtype).removeprefix("torch."),
        **work,
        "yardstick": "a copy of as many bytes" if each.moved is not None else "the fastest large matrix product",
        "yardstick_rate": round(amount / times["yardstick"].median_ms / 1e9, 3),
        "yardstick_unit": "TB/s" if each.moved is not None else "TFLOP/s",
        "ms": {name: asdict(one) for name, one in times.items()},
        "ratio": ratios,
        "difference": wrong,
        "errors": errors,
        "aim": each.aim(shape),
    }
    if "ours" in ready:
        row["right"] = wrong["ours"] is not None and wrong["ours"] < RIGHT
    # Dry, no time means anything, so no aim is met or missed.
    if "ours" in ready and not dry:
        row["aim_met"] = ratios["ours"] >= each.aim(shape)
    if {"ours", "compile"} <= set(ready) and not dry:
        row["no_slower_than_compile"] = times["ours"].median_ms <= NO_SLOWER * times["compile"].median_ms
    return row


def _arguments(op: Op, each: Pass, shape: Shape, dtype: torch.dtype, device: str) -> list[Tensor]:
    wants = each.name != "forward"
    return [x.requires_grad_(wants and x.is_floating_point()) for x in op.inputs(shape, dtype, device)]


def _results(op: Op, each: Pass, make: Callable[[], Work], shape: Shape, dtype: torch.dtype, device: str) -> list:
    """What one pass gives, to be compared."""
    arguments = _arguments(op, each, shape, dtype, device)
    with torch.set_grad_enabled(each.name != "forward"):
        out = make()(*arguments)
    if each.name == "forward":
        return [out]
    wanted = [x for x in arguments if x.requires_grad]
    return [out.detach(), *torch.autograd.grad(out, wanted, _outer(out))]


def _outer(out: Tensor) -> Tensor:
    """The gradient that comes from behind: 1 for a loss, as in training."""
    return (
        torch.ones_like(out) if out.ndim == 0 else normal(*out.shape, dtype=out.dtype, device=str(out.device), seed=9)
    )


def _timed(op: Op, each: Pass, make: Callable[[], Work], shape: Shape, dtype: torch.dtype, device: str) -> Callable:
    """One pass as it is timed, on tensors of its own."""
    way, arguments = make(), _arguments(op, each, shape, dtype, device)
    if each.name == "forward":

        def forward() -> Tensor:
            with torch.no_grad():
                return way(*arguments)

        return forward
    wanted = [x for x in arguments if x.requires_grad]
    out = way(*arguments)
    outer = _outer(out)
    if each.name == "backward":
        return lambda: torch.autograd.grad(out, wanted, outer, retain_graph=True)
    return lambda: torch.autograd.grad(way(*arguments), wanted, outer)


def _yardstick(each: Pass, work: dict, dtype: torch.dtype, device: str, dry: bool) -> tuple[Callable, float]:
    """What a row is compared with, and how many bytes it moves or operations it does."""
    if each.moved is not None:
        source = torch.ones(work["bytes"] // 2, dtype=torch.int8, device=device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source), 2 * source.nbytes
    best = None
    for n in (64, 32) if dry else PRODUCTS:
        a, b = (normal(n, n, dtype=dtype, device=device, seed=seed) for seed in range(2))
        c = torch.empty_like(a)

        def product(a: Tensor = a, b: Tensor = b, c: Tensor = c) -> Tensor:
            return torch.matmul(a, b, out=c)

        rate = 2 * n**3 / in_turns({"product": product}, 10, dry)["product"].median_ms
        if best is None or rate > best[0]:
            best = rate, product, 2 * n**3
    return best[1:]


def difference(got: list[Tensor], want: list[Tensor]) -> float | None:
    """The largest of the results' distances, each by the norm of what is wanted; None for what is no number."""
    largest = max(
        ((one.float() - other.float()).norm() / other.float().norm().clamp(min=1e-20)).item()
        for one, other in zip(got, want, strict=True)
    )
    return round(largest, 8) if largest < float("inf") else None


def chosen(op: Op) -> dict[str, str]:
    """The configuration that each autotuned kernel of ours took last."""
    try:
        module = vars(importlib.import_module(f"solutions.kernels.{op.name}"))
    except Exception as error:
        return {"error": in_words(error)}
    return {name: str(one.best_config) for name, one in module.items() if hasattr(one, "best_config")}


def in_words(error: Exception) -> str:
    """Enough of an error to find it."""
    return f"{type(error).__name__}: {error}"[:500]


def _write(file: Path, part: dict[str, Any]) -> None:
    """Whole or not at all: the writer may be killed at any moment."""
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(part, allow_nan=False), encoding="utf-8")
    unfinished.replace(file)


if __name__ == "__main__":
    main()
