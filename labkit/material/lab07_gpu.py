"""Lab 07: both loops of 07-slow-loop on a real device, with PyTorch's DataLoader and a network that is really trained.

Times differ from machine to machine, so nothing is judged here, and without a GPU the lab leaves it out.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from labkit.devices import device

N_FILES = 16
"""Files that differ; the others are copies of them."""
LEVELS = 32
"""Shades of a pixel. A file of so few is about two thirds as long as its image, and takes some milliseconds."""


@dataclass(frozen=True)
class Photos:
    """n_images of 3 x size x size bytes, in batches, n_epochs times. n_cores: for workers; at most those there are."""

    n_images: int = 1024
    size: int = 192
    batch_size: int = 64
    n_epochs: int = 2
    n_channels: int = 64
    n_cores: int = 8


class Compressed(Dataset):
    """Images that are decompressed when they are asked for: uint8 of shape (3, size, size)."""

    def __init__(self, case: Photos) -> None:
        gen = torch.Generator().manual_seed(0)
        self.shape = (3, case.size, case.size)
        drawn = torch.randint(0, LEVELS, (N_FILES, *self.shape), dtype=torch.uint8, generator=gen)
        self.files = [zlib.compress(image.numpy().tobytes(), level=6) for image in drawn * (256 // LEVELS)]
        self.n_images = case.n_images

    def __len__(self) -> int:
        return self.n_images

    def __getitem__(self, index: int) -> Tensor:
        if index >= len(self):
            raise IndexError(index)
        content = bytearray(zlib.decompress(self.files[index % N_FILES]))
        return torch.frombuffer(content, dtype=torch.uint8).view(self.shape)


class Trained(nn.Module):
    """`model(x)` is a whole training step, as in the exercise: forward, backward, optimizer. It returns the loss."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(
            nn.Conv2d(3, n_channels, 7, stride=4),
            nn.ReLU(),
            nn.Conv2d(n_channels, n_channels, 3),
            nn.ReLU(),
            nn.Conv2d(n_channels, 1, 3),
        )

    def forward(self, x: Tensor) -> Tensor:
        """x: (images, 3, size, size), float32, 0 to 1, on the device."""
        loss = (self.layers(x).mean((1, 2, 3)) - x.mean((1, 2, 3))).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in self.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        return loss.detach()


def run_loop(train: Callable, case: Photos, on: torch.device) -> tuple[float, float]:
    """What `train` returns, and its wall-clock time in seconds."""
    dataset, model = Compressed(case), Trained(case.n_channels)
    affinity = getattr(os, "sched_getaffinity", None)
    n_cores = min(case.n_cores, len(affinity(0)) if affinity else os.cpu_count() or 1)
    start_s = time.perf_counter()
    total = train(DataLoader, dataset, model, on, case.n_epochs, case.batch_size, n_cores)
    return total, time.perf_counter() - start_s


def times_of(loops: dict[str, Callable], case: Photos = Photos()) -> str:
    """The time of each loop, and how many times faster the last one is than the first, in words."""
    # What a process does once (loading kernels, choosing algorithms) belongs to neither loop.
    run_loop(next(iter(loops.values())), replace(case, n_images=case.batch_size, n_epochs=1), device())
    seconds = {name: run_loop(train, case, device())[1] for name, train in loops.items()}
    lines = [f"{name:6}{case.n_epochs * case.n_images / one:8,.0f} images/s" for name, one in seconds.items()]
    first, *_, last = seconds.values()
    return "\n".join([*lines, f"that is {first / last:.1f} times as fast"])
