"""Lab 07: a training loop whose GPU does not wait for its data, on a simulated device and virtual workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab07.sim_loader import LoadTimes, SimLoaders
from labkit.simdevice import Machine, SimDevice, as_plain
from labkit.spec import Answer, Case, Exercise

PIXELS = 48
WIDTH = 20
MS = 1e-3


@dataclass(frozen=True)
class Images(Case):
    """n images in batches, n_epochs times. In ms: load_ms for an image on one of n_cores cores, start_ms for starting
    workers, python_ms for what a step takes on the host and step_ms on the device, copy_ms for a batch of float32.
    """

    n: int = 64
    batch_size: int = 8
    n_epochs: int = 3
    n_cores: int = 4
    load_ms: float = 4.0
    start_ms: float = 40.0
    python_ms: float = 6.0
    step_ms: float = 8.0
    copy_ms: float = 8.0

    @property
    def float_bytes(self) -> int:
        """A batch in float32."""
        return 4 * self.batch_size * PIXELS


def images_and_weight(case: Images, gen: torch.Generator) -> dict[str, Any]:
    """images: (n, PIXELS), uint8. weight: (PIXELS, WIDTH)."""
    return {
        "images": torch.randint(0, 256, (case.n, PIXELS), dtype=torch.uint8, generator=gen),
        "weight": torch.randn(PIXELS, WIDTH, generator=gen) / PIXELS**0.5,
    }


def machine_of(case: Images) -> Machine:
    """One on which all but the product and the copies takes next to no time."""
    rate = case.float_bytes / (case.copy_ms * MS)
    return Machine(
        "the device of the check",
        flops_per_s=2 * case.batch_size * PIXELS * WIDTH / (case.step_ms * MS),
        memory_bytes_per_s=1e15,
        to_device_bytes_per_s=rate,
        to_host_bytes_per_s=rate,
        launch_s=1e-8,
        kernel_s=1e-8,
        copy_s=1e-8,
    )


def trained(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The loss of a batch (samples, PIXELS); the weight changes, so the order of the batches counts."""
    loss = (x @ weight).square().mean()
    weight.mul_(0.96)
    return loss


class Model(torch.nn.Module):
    """`model(x)` is a whole training step: forward, backward, optimizer. Before its first kernel starts, the host is in
    Python for some time.
    """

    def __init__(self, weight: torch.Tensor, think: Callable[[], None]) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self._think = think

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (samples, PIXELS), float32, 0 to 1, on the device."""
        if x.dtype != torch.float32:
            raise TypeError(f"model(x) takes float32 from 0 to 1, and x is {str(x.dtype).removeprefix('torch.')}")
        self._think()
        return trained(self.weight, x)


def play(train: Callable, case: Images, tree: dict) -> tuple[float, SimDevice, SimLoaders]:
    """What `train` returned, and the device and the loaders that it used."""
    with SimDevice(machine_of(case)) as sim, torch.no_grad():
        loaders = SimLoaders(sim, LoadTimes(case.load_ms * MS, case.start_ms * MS, case.n_cores))
        model = Model(tree["weight"].clone(), lambda: loaders.spend("Python", case.python_ms * MS))
        total = train(
            loaders.DataLoader, list(tree["images"]), model, sim.device, case.n_epochs, case.batch_size, case.n_cores
        )
        sim.synchronize()
    return total, sim, loaders


def drive(ans, case: Images, tree: dict, stage) -> dict[str, Any]:
    """total: what `train` returned. seconds: of virtual time. commands: to the device. loaders: of each that was made,
    its settings, how often it was iterated and how often its workers started.
    """
    total, sim, loaders = play(ans.train, case, tree)
    return {
        "total": total,
        "seconds": sim.now_s,
        "commands": as_plain(sim.commands),
        "loaders": [
            {
                "num_workers": loader.num_workers,
                "pin_memory": bool(loader.pin_memory),
                "persistent_workers": bool(loader.persistent_workers),
                "n_starts": loader.n_starts,
                "n_epochs": loader.n_epochs,
            }
            for loader in loaders.made
        ],
    }


SLOW_LOOP = Exercise(
    id="07-slow-loop",
    title="Four reasons why the GPU waits",
    points=3,
    minutes=10,
    difficulty=2,
    answers=(Answer("train"),),
    public=(
        Images(),
        Images(load_ms=9.0, python_ms=1.0, n_cores=8),
        Images(n=24, n_epochs=8, start_ms=120.0, load_ms=1.0),
        Images(load_ms=1.0, python_ms=10.0, start_ms=30.0),
        Images(n=60, load_ms=1.0, python_ms=2.0, copy_ms=24.0, start_ms=30.0),
    ),
    inputs=images_and_weight,
    drive=drive,
)
