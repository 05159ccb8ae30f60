"""Counted bytes are those of the closed forms, at several tile sizes and types, and the same at every run."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

import triton

from labkit.meters.traffic import TrafficProfile, track_traffic
from tests.kernels.add import add
from tests.kernels.attention import attention
from tests.kernels.faults import atomic_sum_kernel, gather_kernel, racy_sum
from tests.kernels.matmul import matmul
from tests.kernels.softmax import softmax, three_pass_softmax


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def sound(traffic: TrafficProfile) -> bool:
    return not traffic.out_of_bounds and not traffic.races


@pytest.mark.parametrize("n", [1, 255, 256, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int8])
def test_addition_reads_two_and_writes_one(n: int, dtype: torch.dtype) -> None:
    x = random(n).to(dtype)
    with track_traffic() as traffic:
        out = add(x, x.clone())
    size = n * x.element_size()
    launch = traffic.launches[0]
    assert torch.equal(out, x + x)
    assert (launch.load_bytes, launch.store_bytes, launch.grid) == (2 * size, size, (-(-n // 256), 1, 1))
    assert sound(traffic)


@pytest.mark.parametrize("n_cols", [1, 100, 781, 1024])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_softmax_in_one_pass_is_ideal(n_cols: int, dtype: torch.dtype) -> None:
    x = random(5, n_cols, dtype=dtype)
    with track_traffic() as traffic:
        softmax(x)
    ideal = x.numel() * x.element_size()
    assert (traffic.load_bytes, traffic.store_bytes, len(traffic.launches)) == (ideal, ideal, 1)
    assert sound(traffic)


def test_softmax_in_three_passes_reads_three_times() -> None:
    x = random(3, 700)
    with track_traffic() as traffic:
        three_pass_softmax(x)
    argument = traffic.launches[0].arguments["x_ptr"]
    assert (argument.load_bytes, argument.unique_load_bytes) == (3 * 8400, 8400)
    assert traffic.store_bytes == 8400
    assert sound(traffic)


@pytest.mark.parametrize("blocks", [(16, 16, 16), (32, 64, 16), (64, 32, 32)])
@pytest.mark.parametrize("sizes", [(64, 64, 64), (50, 70, 40)])
def test_tiled_product_reads_each_factor_once_per_tile(blocks: tuple, sizes: tuple) -> None:
    (m, n, k), (block_m, block_n, _) = sizes, blocks
    a, b = random(m, k, dtype=torch.bfloat16), random(k, n, dtype=torch.bfloat16)
    with track_traffic() as traffic:
        out = matmul(a, b, blocks)
    torch.testing.assert_close(out, a @ b, rtol=0.02, atol=0.02)
    arguments = traffic.launches[0].arguments
    assert arguments["a_ptr"].load_bytes == 2 * m * k * triton.cdiv(n, block_n)
    assert arguments["b_ptr"].load_bytes == 2 * k * n * triton.cdiv(m, block_m)
    assert arguments["a_ptr"].unique_load_bytes == 2 * m * k
    assert (traffic.store_bytes, arguments["c_ptr"].unique_store_bytes) == (2 * m * n, 2 * m * n)
    assert sound(traffic)


@pytest.mark.parametrize("blocks", [(16, 16), (32, 16), (16, 32)])
@pytest.mark.parametrize("seq", [64, 50])
def test_flash_attention_reads_keys_once_per_block_of_queries(blocks: tuple, seq: int) -> None:
    block_m, block_n = blocks
    heads, d_head = 2, 16
    q, k, v = (random(heads, seq, d_head) for _ in range(3))
    with track_traffic() as traffic:
        out, _ = attention(q, k, v, blocks)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(out, want, rtol=1e-5, atol=1e-5)
    ends = [min((i + 1) * block_m, seq) for i in range(triton.cdiv(seq, block_m))]
    rows = sum(min(triton.cdiv(end, block_n) * block_n, seq) for end in ends)
    row_bytes = heads * d_head * 4
    arguments = traffic.launches[0].arguments
    assert arguments["k_ptr"].load_bytes == arguments["v_ptr"].load_bytes == rows * row_bytes
    assert arguments["q_ptr"].load_bytes == arguments["out_ptr"].store_bytes == seq * row_bytes
    assert arguments["lse_ptr"].store_bytes == heads * seq * 4
    assert traffic.load_bytes == (2 * rows + seq) * row_bytes
    assert sound(traffic)


def test_the_same_at_every_run() -> None:
    a = random(50, 50)
    seen = set()
    for shift in range(5):
        # Other allocations in between: where tensors lie must not matter.
        kept = [torch.empty(17 * shift + 1) for _ in range(shift)]
        with track_traffic() as traffic:
            matmul(a.clone(), a.clone())
            add(a[0].clone(), a[1].clone(), block_size=64)
            add(a[:, 1].clone(), a[3], block_size=32)
        seen.add(str(traffic))
        del kept
    assert len(seen) == 1


@pytest.mark.parametrize(("stride", "efficiency"), [(1, 1.0), (2, 0.5), (8, 1 / 8), (16, 1 / 8)])
def test_a_stride_wastes_sectors(stride: int, efficiency: float) -> None:
    x, out = torch.arange(64.0 * 16), torch.zeros(64)
    with track_traffic() as traffic:
        gather_kernel[(1,)](x, out, stride, 0, BLOCK_SIZE=64)
    arguments = traffic.launches[0].arguments
    assert torch.equal(out, x[: 64 * stride : stride])
    assert arguments["x_ptr"].sector_efficiency == efficiency
    assert arguments["out_ptr"].sector_efficiency == 1.0


def test_a_misaligned_view_touches_one_sector_more() -> None:
    x, out = torch.arange(100.0), torch.zeros(64)
    with track_traffic() as traffic:
        gather_kernel[(1,)](x[3:67], out, 1, 0, BLOCK_SIZE=64)
    argument = traffic.launches[0].arguments["x_ptr"]
    assert (argument.load_bytes, argument.sectors) == (256, 9)


def test_atomics_have_a_column_of_their_own() -> None:
    x = torch.arange(256.0)
    with track_traffic() as traffic:
        out = racy_sum(x, kernel=atomic_sum_kernel)
    assert out.item() == x.sum().item()
    launch = traffic.launches[0]
    assert (launch.load_bytes, launch.store_bytes, launch.atomic_bytes) == (1024, 0, 4 * 4)
    assert traffic.total_bytes == 1024 + 16 + 4, "and the zero that PyTorch wrote"


def test_the_table() -> None:
    x = torch.ones(512)
    with track_traffic() as traffic:
        add(x, x)
        x + x
    assert str(traffic).splitlines() == [
        "                                  load         store      atomic   sectors"
        "   (bytes; part of each sector used)",
        "kernel add_kernel, grid (2, 1, 1)",
        "  x_ptr                          2,048             0           0      100%",
        "  y_ptr                          2,048             0           0      100%",
        "  out_ptr                            0         2,048           0      100%",
        "torch.add                        2,048         2,048",
        "total                            6,144         4,096           0",
    ]
