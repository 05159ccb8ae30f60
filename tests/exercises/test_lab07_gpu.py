"""Both loops of 07-slow-loop with PyTorch's DataLoader: the same losses, whatever waits. No time is judged."""

from __future__ import annotations

import pytest
import torch

from labkit.devices import device
from labkit.material import lab07_gpu
from labkit.material.lab07_gpu import Photos
from tests.exercises.harness import answers_in, solution_of

SMALL = Photos(n_images=20, size=24, batch_size=8, n_channels=4, n_cores=2)


def slow_train(DataLoader, dataset, model, device, n_epochs: int, batch_size: int, n_cores: int) -> float:
    """As the notebook has it."""
    model = model.to(device, non_blocking=True)
    total = torch.zeros((), device=device)
    for _ in range(n_epochs):
        for images in DataLoader(dataset, batch_size):
            total += model((images / 255).to(device))
    return total.item()


@pytest.fixture
def loops() -> dict[str, object]:
    return {"slow": slow_train, "yours": answers_in("07-slow-loop", solution_of("07-slow-loop"))["train"]}


def test_images_are_bytes_in_which_shades_differ() -> None:
    dataset = lab07_gpu.Compressed(SMALL)
    assert len(dataset) == 20 and dataset[0].dtype == torch.uint8 and dataset[0].shape == (3, 24, 24)
    assert torch.equal(dataset[0], dataset[16]) and not torch.equal(dataset[0], dataset[1])
    assert dataset[3].max() > 200 and len(list(dataset)) == 20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*pin_memory")
def test_both_loops_train_the_same_on_a_cpu(loops) -> None:
    totals = {name: lab07_gpu.run_loop(loop, SMALL, torch.device("cpu"))[0] for name, loop in loops.items()}
    assert totals["slow"] == pytest.approx(totals["yours"], rel=1e-5)
    once = lab07_gpu.run_loop(slow_train, Photos(20, 24, 8, 1, 4, 2), torch.device("cpu"))[0]
    assert totals["slow"] < 2 * once, "the network learns, so the second epoch has smaller losses"


@pytest.mark.gpu
def test_both_loops_train_the_same_on_a_gpu(loops) -> None:
    totals = {name: lab07_gpu.run_loop(loop, SMALL, device())[0] for name, loop in loops.items()}
    assert totals["slow"] == pytest.approx(totals["yours"], rel=1e-2)


@pytest.mark.gpu
def test_every_loop_is_timed(loops) -> None:
    said = lab07_gpu.times_of(loops, SMALL).splitlines()
    assert [line.split()[0] for line in said] == ["slow", "yours", "that"]
