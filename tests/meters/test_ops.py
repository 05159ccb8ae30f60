"""Counted FLOPs are those of the closed forms, and every dispatched operation is counted once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn

from labkit import track_ops
from labkit.meters.ops import count_operations
from tests.meters.setups import llama, tokens


def llama_forward_flops(n_sequences: int, length: int) -> int:
    """The small Llama of the set-ups: projections, gated feed-forward, scores and sums over values, output head."""
    h, h_ff, kv, n_layers, n_vocab = 64, 160, 32, 3, 256
    n = n_sequences * length
    layer = 2 * n * (2 * h * h + 2 * h * kv + 3 * h * h_ff) + 2 * 2 * n_sequences * length * length * h
    return n_layers * layer + 2 * n * h * n_vocab


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_llama_s_forward_pass_is_its_closed_form(attention: str) -> None:
    pytest.importorskip("transformers")
    model, batch = llama(attention), tokens(2, 48)
    with torch.no_grad(), track_ops() as ops:
        model(**batch)
    assert ops.flops == llama_forward_flops(2, 48)


def test_backward_is_twice_the_forward_but_for_attention() -> None:
    pytest.importorskip("transformers")
    model, batch = llama("eager"), tokens(2, 48)
    with track_ops() as forward:
        loss = model(**batch).loss
    with track_ops() as backward:
        loss.backward()
    assert backward.flops == 2 * forward.flops


def test_the_attention_operators_of_the_cpu_are_counted() -> None:
    q, k, v = (torch.randn(2, 4, 32, 16, requires_grad=True) for _ in range(3))
    with track_ops() as ops:
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    one_product = 2 * 2 * 4 * 32 * 32 * 16
    assert list(ops.flops_by_op) == ["_scaled_dot_product_flash_attention_for_cpu"]
    assert ops.flops == 2 * one_product
    with track_ops() as ops:
        out.sum().backward()
    assert ops.flops == 5 * one_product, "the scores once more, and a gradient for each factor of both products"


@pytest.mark.parametrize(
    "call, flops",
    [
        (lambda m, v, b: torch.zeros(3, 5).addmm_(m, m.T @ m.new_ones(3, 5)), 2 * 2 * 3 * 4 * 5),
        (lambda m, v, b: m @ m.T, 2 * 3 * 4 * 3),
        (lambda m, v, b: torch.addmm(torch.zeros(3), m, m.T), 2 * 3 * 4 * 3),
        (lambda m, v, b: b @ b.mT, 2 * 2 * 3 * 4 * 3),
        (lambda m, v, b: torch.baddbmm(torch.zeros(3), b, b.mT), 2 * 2 * 3 * 4 * 3),
        (lambda m, v, b: m @ v, 2 * 3 * 4),
        (lambda m, v, b: torch.zeros(3).addmv_(m, v), 2 * 3 * 4),
        (lambda m, v, b: v @ v, 2 * 4),
        (lambda m, v, b: torch.zeros(2, 3, 3).baddbmm_(b, b.mT), 2 * 2 * 3 * 4 * 3),
        (lambda m, v, b: torch.zeros(3, 3).addbmm_(b, b.mT), 2 * 2 * 3 * 4 * 3),
    ],
    ids=["addmm_", "mm", "addmm", "bmm", "baddbmm", "mv", "addmv_", "dot", "baddbmm_", "addbmm_"],
)
def test_products_of_every_form_count(call: Callable, flops: int) -> None:
    m, v, b = torch.ones(3, 4), torch.ones(4), torch.ones(2, 3, 4)
    with track_ops() as ops:
        call(m, v, b)
    assert ops.flops == flops


def test_composite_operators_are_taken_apart_in_inference_mode() -> None:
    layer, x = nn.Linear(8, 4), torch.randn(3, 8)
    with torch.inference_mode(), track_ops() as ops:
        layer(x)
    assert ops.flops == 2 * 3 * 8 * 4


def test_an_operation_on_a_list_counts_once_and_on_mixed_dtypes_once_a_tensor() -> None:
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    for tensors, n in (([single] * 5, 1), ([double] * 3, 1), ([single, double, single], 3)):
        with track_ops() as ops:
            torch._foreach_add_(tensors, 1.0)
        assert ops.dispatches == n
    with track_ops() as ops:
        torch._foreach_addcdiv_([single], [single], [single], [2.0])
    assert ops.dispatches == 1


def test_figures_of_several_blocks_add_up() -> None:
    measured: dict = {}
    x = torch.ones(4, 4)
    for _ in range(2):
        with count_operations(measured):
            (x @ x).relu_()
    assert measured == {"dispatches": 4, "flops": 2 * 2 * 4**3}


@pytest.mark.slow
def test_what_is_loaded_for_the_first_count_is_not_the_programs_memory() -> None:
    """In a process of its own: in this one it has been loaded."""
    source = """
import torch
from labkit.stage import Stage
stage = Stage(device=torch.device("cpu"), tmp=None)
with stage.meter("memory"), stage.meter("ops"):
    torch.zeros(1000) + 1
print(stage.measured["dispatches"], stage.measured["peak_bytes"])
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=280)
    assert done.stdout.split() == ["2", "8000"], done.stderr[-500:]
