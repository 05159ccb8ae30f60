"""The memory meter against the CUDA allocator: what was asked of it, without rounding and workspaces."""

from __future__ import annotations

import pytest
import torch

from labkit.meters.memory import measure_step, track_memory
from tests.meters.setups import SETUPS, Setup, tokens

pytest.importorskip("transformers")
pytest.importorskip("peft")
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


@pytest.mark.parametrize("setup", [pytest.param(setup, id=setup.name) for setup in SETUPS])
def test_fake_tensors_foretell_the_gpu(setup: Setup) -> None:
    """The parts of a step that every device runs alike; attention kernels differ in what they keep."""
    fake, real = (measure_step(setup.build, lambda: tokens(64), device, setup.step) for device in ("fake", "cuda"))
    assert fake.peak_bytes == pytest.approx(real.peak_bytes, rel=0.05)
