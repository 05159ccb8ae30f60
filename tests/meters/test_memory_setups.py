"""The memory meter on fifteen ways to train: the same on every run and on fake tensors, and equal to the allocator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec

import pytest
import torch

from labkit.meters.memory import measure_step, track_memory, training_step
from labkit.meters.memory.dropout import byte_masks
from tests.meters.allocator import allocator_peak_bytes
from tests.meters.setups import SETUPS, Setup, tokens

# Looked for and not imported: that takes seconds, of each process that collects tests.
if not (find_spec("transformers") and find_spec("peft")):
    pytest.skip("needs transformers and peft", allow_module_level=True)

QUICK = ("base", "LoRA and checkpointing", "AdamW fused")
RNG_STATE_BYTES = 5056
"""What checkpointing keeps of the CPU's generator for every layer, in tensors that no operation makes."""
SCALARS_BYTES = 64
"""Scalars that a few operators keep for themselves while they run."""

each_setup = pytest.mark.parametrize(
    "setup",
    [pytest.param(setup, id=setup.name, marks=[] if setup.name in QUICK else [pytest.mark.slow]) for setup in SETUPS],
)


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(
            setup, id=setup.name, marks=pytest.mark.slow if setup.name in QUICK else pytest.mark.full("kernels")
        )
        for setup in SETUPS
    ],
)
def test_the_same_on_every_run_and_on_fake_tensors(setup: Setup) -> None:
    seen = []
    for device in ("cpu", "cpu", "fake"):
        profile = measure_step(setup.build, tokens, device, setup.step)
        seen.append((profile.peak_bytes, profile.peak_by_category, profile.tracker.curve))
    assert seen[0] == seen[1], "a repeat"
    assert seen[0] == seen[2], "fake tensors"


@each_setup
def test_the_peak_is_the_allocators(setup: Setup) -> None:
    model, optimizer = setup.build()
    batch = tokens(4)
    setup.step(model, optimizer, batch)  # from here on the optimizer has its states

    def step() -> None:
        with byte_masks():
            setup.step(model, optimizer, batch)

    torch.manual_seed(1)
    with track_memory(model, optimizer, batch, sites=False) as profile:
        before_bytes = profile.live_bytes
        setup.step(model, optimizer, batch)
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted_bytes = allocator_peak_bytes(step)
    unseen_bytes = 3 * RNG_STATE_BYTES if "checkpointing" in setup.name else 0
    assert wanted_bytes - SCALARS_BYTES - unseen_bytes <= profile.peak_bytes - before_bytes <= wanted_bytes


@pytest.mark.slow
@each_setup
def test_categories_add_up_at_every_point(setup: Setup) -> None:
    profile = measure_step(setup.build, tokens, "fake", setup.step)
    assert sum(profile.peak_by_category.values()) == profile.peak_bytes
    for point in profile.timeline:
        assert sum(point.by_category.values()) == point.live_bytes
        assert min(point.by_category.values()) >= 0


def padded() -> dict[str, torch.Tensor]:
    """A second sequence that is half padding: what the model does with it depends on the mask's values."""
    mask = torch.ones(2, 64, dtype=torch.int64)
    mask[1, 32:] = 0
    return {**tokens(), "attention_mask": mask}


def scaled(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: dict) -> None:
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(**batch).loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True, foreach=False)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)


@pytest.mark.parametrize("batch, step", [(padded, training_step), (tokens, scaled)], ids=["padding", "loss scaler"])
def test_programs_that_look_at_values(batch: Callable, step: Callable) -> None:
    """They take the same way on fake tensors as on real ones."""
    build = SETUPS[0].build
    real, fake = (measure_step(build, batch(), device, step) for device in ("cpu", "fake"))
    assert real.tracker.ops == fake.tracker.ops
    assert real.tracker.curve == fake.tracker.curve


def test_views_of_one_tensor_stay_views_of_one() -> None:
    whole = torch.arange(2 * 65).reshape(2, 65) % 250
    batch = {"input_ids": whole[:, :-1], "labels": whole[:, 1:]}
    real, fake = (measure_step(SETUPS[0].build, batch, device) for device in ("cpu", "fake"))
    assert real.peak_bytes == fake.peak_bytes


@pytest.mark.slow
def test_a_step_of_an_8_b_model_in_little_memory() -> None:
    """All of 8.03 · 10⁹ parameters in bfloat16, and what AdamW holds for the largest of them."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "vocab_size": 128256}
    config = LlamaConfig(**sizes, num_attention_heads=32, num_key_value_heads=8, use_cache=False)

    def build() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        model = LlamaForCausalLM(config).to(torch.bfloat16)
        return model, torch.optim.AdamW(model.parameters(), foreach=False)

    ids = torch.zeros(1, 2048, dtype=torch.int64)
    profile = measure_step(build, {"input_ids": ids, "labels": ids}, n_steps=1)
    n_parameters = 8_030_261_248
    scalars_bytes = 2 * 291 * 4
    parts = profile.peak_by_category
    assert parts["gradients"] == 2 * n_parameters
    assert 2 * n_parameters <= parts["parameters"] <= 2 * n_parameters + 4096  # and the rotary frequencies
    assert 4 * n_parameters <= parts["optimizer"] <= 4 * n_parameters + scalars_bytes
    largest_bytes, one_before_bytes = 2 * 128256 * 4096, 2 * 4096
    assert parts["temporaries"] == 2 * largest_bytes + one_before_bytes, "a loop's variables live until the next turn"
