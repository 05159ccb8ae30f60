"""Lab 04's convolutional block on a GPU: right in float16, and no kernel changes the layout. No time is judged."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from labkit.exercises.lab04.memory_format import LAST, Images, block_of, images
from labkit.material import lab04
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.gpu
CASE = Images(8, 64, 28, 28)
CONVERSIONS = ("nchwToNhwc", "nhwcToNchw")
"""In the names of cuDNN's kernels that change the layout."""


@pytest.fixture
def solved() -> dict[str, object]:
    return answers_in("04-memory-format", solution_of("04-memory-format"))


def on_gpu(dtype: torch.dtype) -> tuple[torch.nn.Module, torch.Tensor]:
    tree = images(CASE, torch.Generator().manual_seed(3))
    block = block_of(CASE, [weight / CASE.channels**0.5 for weight in tree["weights"]])
    return block.to("cuda", dtype), tree["x"].to("cuda", dtype).contiguous(memory_format=LAST)


def test_the_block_is_right_in_float16(solved) -> None:
    block, x = on_gpu(torch.float32)
    want, _ = solved["run_block"](block, x)
    block, x = on_gpu(torch.float16)
    y, tokens = solved["run_block"](solved["prepare"](block), x)
    assert y.is_contiguous(memory_format=LAST) and tokens.data_ptr() == y.data_ptr()
    torch.testing.assert_close(y.float(), want, atol=5e-2, rtol=5e-2)


def test_no_kernel_changes_the_layout(solved) -> None:
    block, x = on_gpu(torch.float16)
    block = solved["prepare"](block)
    with torch.no_grad():
        solved["run_block"](block, x)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            solved["run_block"](block, x)
            torch.cuda.synchronize()
    kernels = [event.name for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert kernels and not [name for name in kernels if any(part in name for part in CONVERSIONS)]


def test_deterministic_algorithms_give_the_same_bits_twice(solved) -> None:
    block, x = on_gpu(torch.float16)
    block, gradients = solved["prepare"](block), []
    with torch.backends.cudnn.flags(deterministic=True, benchmark=False):
        for _ in range(2):
            block.zero_grad()
            solved["run_block"](block, x)[0].float().square().mean().backward()
            gradients.append(block.conv1.weight.grad.clone())
    assert torch.equal(*gradients)


def test_every_way_is_timed(solved) -> None:
    said = lab04.gpu_times({"yours": (solved["prepare"], solved["run_block"])}, CASE)
    assert [line.split()[1] for line in said.splitlines()] == ["by", "benchmark", "deterministic"]
