"""The memory meter on fifteen ways to train: the same on every run and on fake tensors, and equal to the allocator."""

from __future__ import annotations

import warnings

import pytest
import torch

from labkit.meters.memory import measure_step, track_memory
from labkit.meters.memory.dropout import byte_masks
from tests.meters.allocator import allocator_peak_bytes
from tests.meters.setups import SETUPS, Setup, tokens

pytest.importorskip("transformers")
pytest.importorskip("peft")

QUICK = ("base", "LoRA and checkpointing", "AdamW fused")
RNG_STATE_BYTES = 5056
"""What checkpointing keeps of the CPU's generator for every layer, in tensors that no operation makes."""
SCALARS_BYTES = 64
"""Scalars that a few operators keep for themselves while they run."""

each_setup = pytest.mark.parametrize(
    "setup",
    [pytest.param(setup, id=setup.name, marks=[] if setup.name in QUICK else [pytest.mark.slow]) for setup in SETUPS],
)


@each_setup
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


@each_setup
def test_categories_add_up_at_every_point(setup: Setup) -> None:
    profile = measure_step(setup.build, tokens, "fake", setup.step)
    assert sum(profile.peak_by_category.values()) == profile.peak_bytes
    for point in profile.timeline:
        assert sum(point.by_category.values()) == point.live_bytes
        assert min(point.by_category.values()) >= 0


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
