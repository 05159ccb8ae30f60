"""solutions/kernels/attention.py: values, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit.meters.compiled import compile_report
from solutions.kernels.attention import BLOCKS, attention, attention_kernel, fitting_blocks, launch_attention
from tests.reference.trial import (
    BFLOAT16,
    FLOAT32,
    Type,
    agree,
    archs,
    compiled,
    draw,
    launched_by,
    moved,
    near,
    places,
    traffic_of,
    types,
)


def exact(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def inputs(device, kind, *shape):
    return [draw(device, kind, *shape, seed=seed) for seed in range(3)]


@types
@places(
    [(1, 1, 16), (2, 0, 16)],
    [(2, 8, 1000, 64), (1, 4, 4096, 128), (2, 512, 256)],
    slow=[(2, 2, 130, 32), (3, 200, 16)],
)
def test_values(device, shape, kind) -> None:
    # The weights of a row are rounded to the values' type before they are multiplied.
    near_enough = Type(kind.dtype, 4 * kind.atol, 2 * kind.rtol)
    agree(attention, exact, inputs(device, kind, *shape), near_enough, gradients=False)


@places([(1, 150, 16)], [])
def test_another_scale_and_the_logarithm_of_the_sums(device, shape) -> None:
    q, k, v = inputs(device, FLOAT32, *shape)
    want = F.scaled_dot_product_attention(*(one.double() for one in (q, k, v)), is_causal=True, scale=0.7)
    near(attention(q, k, v, 0.7), want, FLOAT32)
    scores = (q.double() @ k.double().mT * 0.7).masked_fill(torch.ones(150, 150).triu(1).bool().to(device), -torch.inf)
    near(launch_attention(q, k, v, 0.7)[1] * math.log(2), scores.logsumexp(-1), FLOAT32)


@pytest.mark.parametrize("seq", [64, 150])
def test_keys_are_read_once_for_each_block_of_queries(seq) -> None:
    q, k, v = inputs("cpu", BFLOAT16, 2, seq, 16)
    found = moved(traffic_of(lambda: attention(q, k, v)), "attention_kernel")
    block = attention_kernel.best_config.kwargs["BLOCK_M"]
    rows = sum(min(end, seq) for end in range(block, seq + block, block))
    assert found["q_ptr"] == (q.nbytes, 0) and found["out_ptr"] == (0, q.nbytes)
    assert found["k_ptr"] == found["v_ptr"] == (2 * rows * 16 * 2, 0)
    assert found["lse_ptr"] == (0, 2 * seq * 4)


@pytest.mark.full("kernels")
@archs
def test_wide_loads_feed_matrix_instructions(arch) -> None:
    q, k, v = inputs("cpu", BFLOAT16, 1, 128, 64)
    report = compiled(lambda: attention(q, k, v), arch)["attention_kernel"]
    assert report.figures()["vector_width"] == 16
    assert report.matrix_instructions.total() > 0
    assert all("wgmma" in name if arch == 90 else "mma.sync" in name for name in report.matrix_instructions)


@pytest.mark.full("kernels")
@pytest.mark.parametrize("d_head", [64, 128])
def test_every_block_that_is_tried_fits_an_h100(d_head) -> None:
    q, k, v = inputs("cpu", BFLOAT16, 1, 64, d_head)
    (one,) = launched_by(lambda: attention(q, k, v))
    for config in fitting_blocks(BLOCKS, {"q_ptr": q, "seq": 4096}, D_HEAD=d_head):
        report = compile_report(one.kernel, **{**one.arguments, **one.options, **config.all_kwargs()})
        assert report.fits and report.spill_bytes == 0, f"{config}\n{report}"


def test_bad_input_is_named() -> None:
    x = torch.ones(2, 8, 16)
    with pytest.raises(ValueError, match="attention takes tensors of one shape"):
        attention(x, x[:, :4], x)
    with pytest.raises(ValueError, match=r"d_head 16, 32, 64, 128 or 256, not \(2, 8, 24\)"):
        attention(*[torch.ones(2, 8, 24)] * 3)
    with pytest.raises(ValueError, match="scale must be above 0, not -1"):
        attention(x, x, x, -1)
    with pytest.raises(ValueError, match=r"no backward pass: call it under torch\.no_grad"):
        attention(x.requires_grad_(), x, x)
