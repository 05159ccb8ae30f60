"""Lab 07: images that are kept once they are decoded, and a whole data set on the (simulated) device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab07.slow_loop import MS, PIXELS, WIDTH, Images, Model, machine_of
from labkit.simdevice import SimDevice, as_plain
from labkit.spec import Answer, Case, Exercise

COLUMNS, STAMP = 16, 8
"""Of an image: its columns, and how many numbers of its first row a decoder or an augmentation writes."""
MOST_CALLS = 4
"""Calls of `decode` or `augment` for each image of each epoch, before an answer is ended."""


@dataclass(frozen=True)
class Pictures(Case):
    """n images of 4 to 40 rows, asked for in random order in each of n_epochs epochs. max_share: of their decoded
    bytes, what may be kept. Then a loop over n_train images on the simulated device, in batches.
    """

    n: int
    max_share: float
    n_epochs: int = 3
    n_train: int = 48
    batch_size: int = 8
    copy_ms: float = 8.0

    @property
    def loop(self) -> Images:
        """The loop of 07-slow-loop, with the times of this case."""
        return Images(self.n_train, self.batch_size, self.n_epochs, copy_ms=self.copy_ms, python_ms=3.0)


def max_bytes(case: Pictures, tree: dict[str, Any]) -> int:
    """What `CachedImages` may keep."""
    return int(case.max_share * sum(image.numel() for image in tree["images"]))


def pictures(case: Pictures, gen: torch.Generator) -> dict[str, Any]:
    """images: uint8, (rows, 16), the first row is 0. files: their encoded bytes, which begin with the image's number.
    orders: (epochs, n). decode_stamps, augment_stamps: what each call writes into the first row of an image. plans:
    arguments of `pays_from`. train, weight: as in 07-slow-loop.
    """

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=gen))

    images, files = [], []
    for index in range(case.n):
        image = torch.randint(0, 256, (number(4, 40), COLUMNS), dtype=torch.uint8, generator=gen)
        image[0] = 0
        images.append(image)
        encoded = torch.randint(0, 256, (4 + image.numel() // 3,), dtype=torch.uint8, generator=gen)
        encoded[:4] = torch.tensor(list(index.to_bytes(4, "big")), dtype=torch.uint8)
        files.append(encoded)
    n_stamps = MOST_CALLS * case.n_epochs * case.n
    stamps = torch.randint(0, 256, (2, n_stamps, STAMP), dtype=torch.uint8, generator=gen)
    resident_ms, gain_ms, epochs, room = number(20, 90), number(5, 40), number(2, 9), number(1000, 9000)
    loader_ms = resident_ms + gain_ms
    return {
        "images": images,
        "files": files,
        "orders": torch.stack([torch.randperm(case.n, generator=gen) for _ in range(case.n_epochs)]),
        "decode_stamps": stamps[0],
        "augment_stamps": stamps[1],
        "plans": [
            # After so many epochs both are equally far; a little sooner; never, twice; too large; it fits just so.
            [epochs * gain_ms, resident_ms, loader_ms, room - 1, room],
            [epochs * gain_ms + number(1, gain_ms - 1), resident_ms, loader_ms, room // 2, room],
            [number(100, 900), loader_ms, resident_ms, room // 2, room],
            [number(100, 900), loader_ms, loader_ms, room // 2, room],
            [epochs * gain_ms, resident_ms, loader_ms, room + 1, room],
            [number(1, gain_ms - 1), resident_ms, loader_ms, room, room],
        ],
        "train": torch.randint(0, 256, (case.n_train, PIXELS), dtype=torch.uint8, generator=gen),
        "weight": torch.randn(PIXELS, WIDTH, generator=gen) / PIXELS**0.5,
    }


class Calls:
    """`decode` and `augment`, which write into an image by which of their calls it was made."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree
        self.n_decoded = self.n_augmented = 0

    def decode(self, file: bytes) -> torch.Tensor:
        image = self._tree["images"][int.from_bytes(file[:4], "big")].clone()
        image[0, :STAMP] = self._stamp("decode", self.n_decoded)
        self.n_decoded += 1
        return image

    def augment(self, image: torch.Tensor) -> torch.Tensor:
        """In place: of an image that is augmented twice both calls show, as their sum."""
        image[0, STAMP:] += self._stamp("augment", self.n_augmented)
        self.n_augmented += 1
        return image

    def _stamp(self, name: str, call: int) -> torch.Tensor:
        stamps = self._tree[f"{name}_stamps"]
        if call == len(stamps):
            raise RuntimeError(f"{name} was called more than {MOST_CALLS} times for each image of each epoch")
        return stamps[call]


def drive(ans, case: Pictures, tree: dict, stage) -> dict[str, Any]:
    """epochs[e][i]: what item orders[e][i] was in epoch e. n_decoded: the calls of `decode` before the first epoch and
    after each. total, seconds, commands: of `train_resident`, as in 07-slow-loop. plans: what `pays_from` says.
    """
    calls = Calls(tree)
    files = [bytes(file.tolist()) for file in tree["files"]]
    dataset = ans.CachedImages(files, calls.decode, calls.augment, max_bytes(case, tree))
    n_decoded, epochs = [calls.n_decoded], []
    for order in tree["orders"].tolist():
        epochs.append([dataset[index].clone() for index in order])
        n_decoded.append(calls.n_decoded)
    loop = case.loop
    with SimDevice(machine_of(loop)) as sim, torch.no_grad():

        def think() -> None:
            sim.clock.call_driver("Python", loop.python_ms * MS, device_first=False)

        model = Model(tree["weight"].clone(), think)
        total = ans.train_resident(tree["train"], model, sim.device, case.n_epochs, case.batch_size)
        sim.synchronize()
        seconds, commands = sim.now_s, as_plain(sim.commands)
    return {
        "length": len(dataset),
        "epochs": epochs,
        "n_decoded": n_decoded,
        "total": total,
        "seconds": seconds,
        "commands": commands,
        "plans": [ans.pays_from(*plan) for plan in tree["plans"]],
    }


CACHE = Exercise(
    id="07-cache",
    title="Keep what was expensive to load",
    points=0.4,
    minutes=25,
    difficulty=2,
    answers=(Answer("CachedImages"), Answer("train_resident"), Answer("pays_from")),
    public=(
        Pictures(24, 0.5),
        Pictures(30, 0.3, n_epochs=4, copy_ms=16.0),
        Pictures(16, 1.0, n_train=44),
        Pictures(12, 0.01, batch_size=16),
    ),
    inputs=pictures,
    drive=drive,
    optional=True,
)
