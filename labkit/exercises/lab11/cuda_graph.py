"""Lab 11: what is asked, given and run for a step that is captured once and replayed."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.simdevice import Machine, SimDevice, as_plain
from labkit.spec import Answer, Case, Exercise

MACHINE = Machine("the device of the check")


@dataclass(frozen=True)
class Replays(Case):
    """Batches of n_rows x width, and a step of 3 * n_layers kernels.

    asked: seconds of each kernel of a step, and of the copy of its batch, for which the launch time is worked out.
    """

    n_batches: int = 5
    n_rows: int = 4
    width: int = 8
    n_layers: int = 3
    asked: tuple[tuple[float, ...], float] = ((4e-6, 2e-6, 3e-6, 1e-6), 2e-6)

    @property
    def n_kernels(self) -> int:
        return 3 * self.n_layers


class Step:
    """step(x): new values of x's shape. Its weights are copied to the device when it is called for the first time."""

    def __init__(self, weights: torch.Tensor) -> None:
        self._host_weights = weights
        self._weights: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self._weights is None:
            self._weights = self._host_weights.to(x.device)
        for weight in self._weights:
            x = torch.tanh(x * weight + 0.5)
        return x


def replay_inputs(case: Replays, gen: torch.Generator) -> dict[str, object]:
    """weights: (n_layers, width); batches: (n_rows, width) each, in ordinary memory of the host."""
    return {
        "weights": torch.randn(case.n_layers, case.width, generator=gen),
        "batches": [torch.randn(case.n_rows, case.width, generator=gen) for _ in range(case.n_batches)],
    }


def drive_cuda_graph(ans, case: Replays, tree: dict, stage) -> dict[str, object]:
    """out: the result of each batch, copied before the next. spans: where the commands of each call begin and end."""
    out, spans = [], []
    with SimDevice(MACHINE) as sim, torch.no_grad():
        batches = [batch.pin_memory() for batch in tree["batches"]]
        example = torch.zeros(case.n_rows, case.width, device=sim.device)
        step = Step(tree["weights"])  # which is kept, as a model is
        run = ans.graphed(sim, step, example)
        if not callable(run):
            raise TypeError(f"graphed should return a function, and returned {type(run).__name__}")
        del example
        for batch in batches:
            n_before = len(sim.commands)
            result = run(batch)
            spans.append([n_before, len(sim.commands)])
            if not isinstance(result, torch.Tensor):
                raise TypeError(f"the function should return a tensor, and returned {type(result).__name__}")
            out.append(result + 0)
            del result
        sim.synchronize()
        commands = as_plain(sim.commands)
        results = [one.cpu() for one in out]
    kernels_s, copy_s = case.asked
    return {
        "out": results,
        "pays_from_s": ans.pays_from_s(list(kernels_s), copy_s),
        "commands": commands,
        "spans": spans,
    }


CUDA_GRAPH = Exercise(
    id="11-cuda-graph",
    title="A step as one launch",
    points=0.3,
    minutes=25,
    difficulty=2,
    optional=True,
    answers=(Answer("graphed"), Answer("pays_from_s")),
    public=(
        Replays(),
        Replays(n_batches=3, n_layers=6, asked=((8e-6, 8e-6), 5e-6)),
        Replays(n_batches=7, n_rows=1, asked=((1e-6,) * 12 + (3e-5,), 0.0)),
    ),
    inputs=replay_inputs,
    drive=drive_cuda_graph,
)
