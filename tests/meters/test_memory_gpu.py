"""The memory meter against the CUDA allocator: what was asked of it, without rounding and workspaces."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from labkit.meters.memory import measure_step, track_memory
from tests.meters.setups import SETUPS, Setup, tokens
from tests.meters.vectors import KIB, vector

# Looked for and not imported: that takes seconds, of each process that collects tests.
if not (find_spec("transformers") and find_spec("peft")):
    pytest.skip("needs transformers and peft", allow_module_level=True)
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("setup", [pytest.param(setup, id=setup.name) for setup in SETUPS])
def test_the_peak_is_within_a_percent_of_the_allocators(setup: Setup) -> None:
    with torch.device("cuda"):
        model, optimizer = setup.build()
        batch = tokens(64)
    # cuBLAS gets its workspaces, the optimizer its states.
    for _ in range(2):
        setup.step(model, optimizer, batch)
    torch.cuda.synchronize()
    before_bytes = torch.cuda.memory_stats()["requested_bytes.all.current"]
    torch.cuda.reset_peak_memory_stats()
    with track_memory(model, optimizer, batch, sites=False) as profile:
        start_bytes = profile.live_bytes
        setup.step(model, optimizer, batch)
    wanted_bytes = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before_bytes
    assert profile.peak_bytes - start_bytes == pytest.approx(wanted_bytes, rel=0.01)


def test_where_nothing_is_named_every_device_counts() -> None:
    with track_memory(sites=False) as profile:
        kept = vector(1), vector(2, device="cuda")
    assert profile.live_bytes == sum(tensor.nbytes for tensor in kept) == 3 * KIB
    with track_memory(batch=kept[1], sites=False) as profile:
        on_the_cpu = vector(1)
        del on_the_cpu
    assert profile.peak_bytes == 2 * KIB


def test_the_line_of_a_gradient_is_the_one_that_called_backward() -> None:
    x = vector(device="cuda", requires_grad=True)
    with track_memory(batch=x) as profile:
        x.exp().sum().backward()  # the line
    (gradient,) = [tensor for tensor in profile.alive_at(len(profile.timeline) - 1) if tensor.op == "mul.Tensor"]
    assert gradient.site.text == "x.exp().sum().backward()  # the line"


@pytest.mark.parametrize("setup", [pytest.param(setup, id=setup.name) for setup in SETUPS])
def test_fake_tensors_foretell_the_gpu(setup: Setup) -> None:
    """With attention as single operations on both: which fused kernel there is depends on the device.

    In float32, say, a GPU has none for grouped heads or for dropout: a step of the small Llama peaks at 93.3 MB on an
    H200, and at 77.8 MB where the CPU's kernel is taken.
    """
    with sdpa_kernel(SDPBackend.MATH):
        fake, real = (measure_step(setup.build, lambda: tokens(64), device, setup.step) for device in ("fake", "cuda"))
    assert fake.peak_bytes == pytest.approx(real.peak_bytes, rel=0.05)
