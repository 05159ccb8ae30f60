"""Lab 06's optimizers beside PyTorch's own: the time of a step, the bytes of the states and of what is temporary.

Ours are the model answers, written to be read. All step the same parameters, a small GPT's or many tensors of one size,
by turns; a time is the median of the turns, and so is its ratio to PyTorch's fused AdamW in the same turn. On a CPU it
is the CPU time of one thread, so what other programs take of the processor does not count. On a GPU (`optimizers_gpu`)
the kernels of a step are counted too. It says nothing about what they learn: the lab does.

    python -m benchmarks --only optimizers                 on the CPU with one thread, within a minute
    python -m benchmarks --only optimizers_gpu             the same on an NVIDIA GPU, larger
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import nn

from benchmarks._trace import events_of
from grading.terminal import say, table
from labkit import track_memory
from labkit.material.optimizer_costs import MakeOptimizer, state_bytes_on
from tests.exercises.harness import answers_in, solution_of

Shapes = Sequence[tuple[int, ...]]
WARM_UP = 3
BASELINE = "AdamW, torch, fused"


def gpt(width: int, n_layers: int, n_tokens: int) -> list[tuple[int, ...]]:
    """The shapes of a GPT's parameters: matrices, biases and norms of each layer, an embedding."""
    layer = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    layer += [(3 * width,), (4 * width,), *[(width,)] * 6]
    return [(n_tokens, width), *n_layers * layer, (width,), (width,)]


CPU_MODELS: dict[str, Shapes] = {"GPT, 3.4 M parameters": gpt(256, 4, 1000), "400 tensors of 64 x 64": 400 * [(64, 64)]}


def ways() -> dict[str, tuple[MakeOptimizer, torch.dtype]]:
    """Each optimizer with the dtype of its parameters; "ours" are the model answers of lab 06."""
    ours: dict[str, Callable] = {}
    for slug in ("adamw", "bf16-states", "adam8bit", "adafactor", "foreach", "muon"):
        ours |= answers_in(f"06-{slug}", solution_of(f"06-{slug}"))

    def by_chance(params):
        params = list(params)
        return ours["BF16AdamW"](params, generator=torch.Generator(params[0].device))

    fp32, bf16 = torch.float32, torch.bfloat16
    return {
        "AdamW, ours": (ours["AdamW"], fp32),
        "AdamW on lists, ours": (ours["ForeachAdamW"], fp32),
        "AdamW, torch, a loop": (partial(torch.optim.AdamW, foreach=False), fp32),
        "AdamW, torch, foreach": (partial(torch.optim.AdamW, foreach=True), fp32),
        BASELINE: (partial(torch.optim.AdamW, fused=True), fp32),
        "AdamW in bf16 by chance, ours": (by_chance, bf16),
        "AdamW in bf16, torch, fused": (partial(torch.optim.AdamW, fused=True), bf16),
        "Adam in 8 bits, ours": (ours["Adam8bit"], fp32),
        "Adafactor, ours": (ours["Adafactor"], fp32),
        "Adafactor, torch": (partial(torch.optim.Adafactor, foreach=False), fp32),
        "Muon and AdamW, ours": (partial(_muon, ours["Muon"]), fp32),
        "Muon and AdamW, torch": (partial(_muon, torch.optim.Muon), fp32),
    }


class _Both:
    """Muon for matrices, PyTorch's fused AdamW for the rest; its state is that of both."""

    def __init__(self, muon: torch.optim.Optimizer | None, rest: torch.optim.Optimizer | None) -> None:
        self.optimizers = [one for one in (muon, rest) if one is not None]

    def step(self) -> None:
        for one in self.optimizers:
            one.step()

    def state_dict(self) -> dict[str, object]:
        return {type(one).__name__: one.state_dict() for one in self.optimizers}


def _muon(make: MakeOptimizer, params) -> _Both:
    params = list(params)
    matrices, rest = [p for p in params if p.dim() == 2], [p for p in params if p.dim() < 2]
    return _Both(make(matrices) if matrices else None, torch.optim.AdamW(rest, fused=True) if rest else None)


def main(argv: list[str]) -> dict:
    """Prints a table for each model and returns the rows: ms (median, low, high), ratio to BASELINE, bytes."""
    parser = argparse.ArgumentParser(prog="benchmarks optimizers", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="steps of each optimizer that are timed")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    return {"threads": 1, "time": "CPU time", "rows": measured(CPU_MODELS, torch.device("cpu"), args.repeats)}


def measured(models: Mapping[str, Shapes], device: torch.device, repeats: int) -> list[dict]:
    """The rows of each model in turn, whose parameters are gone before the next one's are made."""
    return [row for model, shapes in models.items() for row in _rows(model, shapes, device, repeats)]


def _rows(model: str, shapes: Shapes, device: torch.device, repeats: int) -> list[dict]:
    steppers = {name: _Stepper(make, shapes, dtype, device) for name, (make, dtype) in ways().items()}
    milliseconds: dict[str, list[float]] = {name: [] for name in steppers}
    for turn in range(WARM_UP + repeats):
        for name, stepper in steppers.items():
            spent = stepper.milliseconds()
            if turn >= WARM_UP:
                milliseconds[name].append(spent)
    rows = [
        {
            "model": model,
            "optimizer": name,
            "median_ms": round(statistics.median(milliseconds[name]), 3),
            "low_ms": round(min(milliseconds[name]), 3),
            "high_ms": round(max(milliseconds[name]), 3),
            "times_baseline": round(median_ratio(milliseconds[name], milliseconds[BASELINE]), 2),
            **stepper.costs(),
        }
        for name, stepper in steppers.items()
    ]
    columns = [name for name in rows[0] if name not in ("model", "low_ms", "high_ms")]
    print(f"{model}:")
    say(*table(columns, [[str(row[name]) for name in columns] for row in rows]))
    return rows


def median_ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    """Of what was timed in the same turns."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))


class _Stepper:
    """One optimizer with its parameters, whose gradients stay."""

    def __init__(self, make: MakeOptimizer, shapes: Shapes, dtype: torch.dtype, device: torch.device) -> None:
        self.device, self.shapes, self.dtype, self.make = device, shapes, dtype, make
        # Drawn where they live: a billion numbers are half a minute of a CPU, and a moment of a GPU.
        draw = partial(torch.randn, generator=torch.Generator(device).manual_seed(0), device=device)
        self.parameters = [nn.Parameter((0.02 * draw(shape)).to(dtype)) for shape in shapes]
        for parameter in self.parameters:
            parameter.grad = draw(parameter.shape).to(dtype)
        self.n_parameters = sum(parameter.numel() for parameter in self.parameters)
        self.optimizer = make(self.parameters)

    def milliseconds(self) -> float:
        self._wait()
        now = time.perf_counter if self.device.type == "cuda" else time.process_time
        start = now()
        self.optimizer.step()
        self._wait()
        return 1e3 * (now() - start)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def costs(self) -> dict[str, float]:
        """Bytes per parameter of the states and of what a step allocates beside them; on a GPU its kernels."""
        found = {"state_bytes": round(state_bytes_on(self.make, self.shapes, self.dtype) / self.n_parameters, 4)}
        if self.device.type == "cpu":
            with track_memory(sites=False) as profile:
                self.optimizer.step()
            temporary = profile.peak_bytes - profile.live_bytes
        else:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_stats()["requested_bytes.all.current"]
            self.optimizer.step()
            temporary = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before
            found["kernels"] = self._kernels()
        return found | {"temporary_bytes": round(temporary / self.n_parameters, 4)}

    def _kernels(self) -> int | None:
        """None where the profiler cannot see kernels. Copies, and the optimizer's own mark on the GPU, are none."""
        with torch.profiler.profile() as seen:
            self.optimizer.step()
            self._wait()
        return sum(event.get("cat") == "kernel" for event in events_of(seen)) or None
