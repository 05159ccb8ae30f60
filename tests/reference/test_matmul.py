"""solutions/kernels/matmul.py: values, gradients, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

import triton

from labkit.meters.compiled import compile_report
from solutions.kernels.matmul import TILES, fitting_tiles, matmul, matmul_kernel
from tests.reference.trial import (
    BFLOAT16,
    FLOAT32,
    agree,
    archs,
    compiled,
    draw,
    launched_by,
    moved,
    places,
    traffic_of,
    types,
)


def factors(device, kind, m, n, k):
    return [draw(device, kind, m, k), draw(device, kind, k, n, seed=1)]


@types
@places([(1, 1, 1), (0, 4, 4), (4, 4, 0), (70, 90, 50), (128, 64, 96)], [(1000, 1000, 1000), (2048, 4096, 1024)])
def test_values_and_gradients(device, shape, kind) -> None:
    agree(matmul, torch.matmul, factors(device, kind, *shape), kind)


@places([(70, 90, 50)], [(1000, 2000, 3000)])
def test_factors_may_be_transposed_or_slices(device, shape) -> None:
    m, n, k = shape
    a, b = draw(device, FLOAT32, k, m).T, draw(device, FLOAT32, k, 2 * n, seed=1)[:, ::2]
    agree(matmul, torch.matmul, [a, b], FLOAT32)


@pytest.mark.parametrize("n_tiles", [1, 4])
def test_each_factor_is_read_once_for_each_tile_of_the_other(n_tiles) -> None:
    size = 64 * n_tiles
    a, b = factors("cpu", BFLOAT16, size, 64, 128)
    traffic = traffic_of(lambda: matmul(a, b))
    tile = matmul_kernel.best_config.kwargs
    found = moved(traffic, "matmul_kernel")
    assert found["a_ptr"] == (a.nbytes * triton.cdiv(64, tile["BLOCK_N"]), 0)
    assert found["b_ptr"] == (b.nbytes * triton.cdiv(size, tile["BLOCK_M"]), 0)
    assert found["c_ptr"] == (0, 2 * size * 64)


@pytest.mark.full("kernels")
@archs
def test_wide_loads_feed_matrix_instructions(arch) -> None:
    a, b = factors("cpu", BFLOAT16, 128, 128, 128)
    report = compiled(lambda: matmul(a, b), arch)["matmul_kernel"]
    assert set(report.loads) == set(report.stores) == {16}
    assert all("wgmma" in name if arch == 90 else "mma.sync" in name for name in report.matrix_instructions)
    assert report.matrix_instructions.total() > 0


@pytest.mark.full("kernels")
def test_every_tile_fits_an_h100() -> None:
    a, b = factors("cpu", BFLOAT16, 64, 64, 64)
    (one,) = launched_by(lambda: matmul(a, b))
    for config in TILES:
        report = compile_report(one.kernel, **{**one.arguments, **one.options, **config.all_kwargs()})
        assert report.fits and report.spill_bytes == 0, f"{config}\n{report}"


def test_tiles_are_no_larger_than_the_result() -> None:
    a = draw("cpu", BFLOAT16, 100, 100)
    sizes = [config.kwargs["BLOCK_M"] for config in fitting_tiles(TILES, {"m": 100, "n": 4096, "a_ptr": a})]
    assert sizes and max(sizes) == 64
    (smallest,) = fitting_tiles(TILES, {"m": 3, "n": 3, "a_ptr": a})
    assert smallest is TILES[-1]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (torch.ones(2, 3), torch.ones(2, 3)),
        (torch.ones(3), torch.ones(3, 2)),
        (torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float16)),
    ],
)
def test_bad_input_is_named(a, b) -> None:
    with pytest.raises(ValueError, match=r"matmul takes matrices \(m, k\) and \(k, n\) of one type, not "):
        matmul(a, b)
