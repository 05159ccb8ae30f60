"""Small programs of a course: scans, histograms, reductions, tiles, tensor cores, locks; each against torch."""

from __future__ import annotations

import math

import pytest
import torch

from labkit.simt.instructions.matrices import ERROR
from tests.simt.harness import compiled, integers, launch, random, source

PROGRAMS = source("programs")
I32 = torch.int32


def zeros(*shape: int, dtype: torch.dtype = I32) -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype)


@pytest.mark.parametrize("block", [1, 31, 33, 128, 1000])
def test_any_block_size(block: int) -> None:
    x, y = random(5000), random(5000, seed=1)
    want = torch.tensor(0.5) * x + y
    launch(PROGRAMS, "saxpy", 3, block, x, y, 0.5, 5000)
    torch.testing.assert_close(y, want, rtol=1e-6, atol=1e-7)


def test_three_dimensions_and_vectors() -> None:
    out = zeros(6, 8, 10)
    launch(PROGRAMS, "three_dimensions", (5, 2, 3), (2, 4, 2), out)
    z, y, x = torch.meshgrid(torch.arange(6), torch.arange(8), torch.arange(10), indexing="ij")
    assert torch.equal(out.long(), x + 100 * y + 10000 * z)
    pairs = [
        (random(32, 4), torch.zeros(32, 4)),
        (random(32, 2, dtype=torch.float64), torch.zeros(32, 2, dtype=torch.float64)),
        (integers(32, 4, low=-128, high=128, dtype=torch.int8), zeros(32, 4, dtype=torch.int8)),
    ]
    launch(PROGRAMS, "copy_vectors", 1, 32, *(one for pair in pairs for one in pair))
    assert all(torch.equal(a, b) for a, b in pairs)


def test_tiles() -> None:
    x, y = random(200, 300), torch.zeros(300, 200)
    launch(PROGRAMS, "transpose", (10, 7), (32, 8), x, y, 200, 300)
    assert torch.equal(y, x.T)
    for n in (16, 50):
        a, b = integers(n, n, low=-9, high=9).float(), integers(n, n, low=-9, high=9, seed=1).float()
        c = torch.zeros(n, n)
        launch(PROGRAMS, "tiled_product", (-(-n // 16), -(-n // 16)), (16, 16), a, b, c, n)
        assert torch.equal(c, a @ b)


def test_sums() -> None:
    x, out = integers(3000, low=-9, high=9), zeros(1)
    total = torch.zeros(1)
    launch(PROGRAMS, "block_sum", 12, 256, x.float(), total, 3000, shared_bytes=1024)
    launch(PROGRAMS, "warp_sum", 24, 128, x, out, 3000)
    assert out == x.sum() and total == x.sum()


def test_shuffles() -> None:
    x, y = random(64), torch.zeros(64)
    launch(PROGRAMS, "butterfly_max", 1, 64, x, y)
    assert torch.equal(y.view(2, 32), x.view(2, 32).amax(1, keepdim=True).expand(2, 32))
    v, out = integers(32, low=0, high=900), zeros(32)
    launch(PROGRAMS, "segments", 1, 32, v, out)
    for lane in range(32):
        up = v[lane - 3] if lane % 8 >= 3 else v[lane]
        index = v[lane // 16 * 16 + lane * 5 % 16]
        down = v[lane + 9] if lane + 9 < 32 else v[lane]
        assert out[lane] == (up + 1000 * index + 1000000 * down).to(I32)


def test_scans() -> None:
    x, y = integers(256, low=-99, high=99), zeros(256)
    launch(PROGRAMS, "scan", 1, 256, x, y, 200)
    assert torch.equal(y[:200], x[:200].cumsum(0).to(I32))
    launch(PROGRAMS, "warp_scan", 1, 256, x, y)
    assert torch.equal(y.view(8, 32), x.view(8, 32).cumsum(1).to(I32))


def test_histogram_stencil_and_softmax() -> None:
    x, bins = integers(5000, low=0, high=64), zeros(64)
    launch(PROGRAMS, "histogram", 5, 128, x, bins, 5000)
    assert torch.equal(bins, torch.bincount(x, minlength=64).to(I32))
    a, b = integers(150, low=-9, high=9).float(), torch.zeros(150)
    launch(PROGRAMS, "stencil", 3, 64, a, b, 150)
    padded = torch.nn.functional.pad(a, (1, 1))
    assert torch.equal(b, padded[:-2] + padded[1:-1] + padded[2:])
    logits, out = random(6, 300) * 4, torch.zeros(6, 300)
    launch(PROGRAMS, "softmax", 6, 128, logits, out, 300)
    torch.testing.assert_close(out, logits.softmax(1), rtol=2e-6, atol=1e-8)


def test_shared_memory_from_the_end() -> None:
    """The compiler makes a base below 0 and an offset of an index that falls, and the sum wraps at 32 bits."""
    x, y = torch.arange(128, dtype=torch.int32), torch.zeros(128, dtype=torch.int32)
    launch(PROGRAMS, "mirrored", 1, 128, x, y)
    assert torch.equal(y, x[:64].flip(0).repeat(2) + 1000 * x.flip(0))


def test_votes() -> None:
    x, y = integers(64, low=0, high=9), zeros(64, 8)
    launch(PROGRAMS, "votes", 1, 64, x, y)
    for lane in range(64):
        warp = x[lane // 32 * 32 : lane // 32 * 32 + 32].tolist()
        ballot = sum(1 << i for i, v in enumerate(warp) if v % 2 == 0)
        same = sum(1 << i for i, v in enumerate(warp) if v == x[lane])
        want = [ballot, max(warp) > 7, 1, same, -1, sum(warp), max(warp), int((x > 3).sum())]
        assert y[lane].tolist() == [(int(one) + 2**31) % 2**32 - 2**31 for one in want]


def test_atomics() -> None:
    a, u = zeros(128), zeros(4)
    a[2], a[4] = 100, -1
    f, long, d = torch.zeros(1), zeros(1, dtype=torch.int64), zeros(1, dtype=torch.float64)
    launch(PROGRAMS, "atomics", 1, 64, a, u, f, long, d)
    assert a[:8].tolist() == [2016, -2016, -5, 63, -256, 65535, 0, 64]
    assert a[8:72].tolist() == list(range(64)) and a[101] == 63
    assert u[:3].tolist() == [4, 6, 63]
    assert (f, long, d) == (32, 64 << 33, 16)


def test_compare_and_swap() -> None:
    y = torch.ones(1)
    launch(PROGRAMS, "compare_and_swap", 2, 10, y)
    assert y == 2.0**20


@pytest.mark.parametrize("name", ["lock", "lock_across_the_loop"])
def test_locks_between_lanes_and_blocks(name: str) -> None:
    total = zeros(1)
    launch(PROGRAMS, name, 4, 8, zeros(1), total)
    assert total == 32


def test_variables_of_the_module() -> None:
    kernels = compiled(PROGRAMS)
    y, n = torch.zeros(8), zeros(1)
    for _ in range(2):
        kernels["constants"].launch(1, 8, y)
    assert y.tolist() == [1, 2, 4, 8] * 2
    kernels["read_launches"].launch(1, 1, n)
    assert n == 5
    kernels.variable("launches").view("i4")[:] = 3


def test_local_arrays_calls_and_recursion() -> None:
    x, y = integers(16, low=-50, high=50), zeros(32)
    launch(PROGRAMS, "local_array", 1, 32, x, y)
    for thread in (0, 3, 31):
        a = [int(v) * thread for v in x]
        for i in range(16):
            j = int(x[i]) & 15
            a[i], a[j] = a[j], a[i]
        assert y[thread] == sum(v * i for i, v in enumerate(a))
    launch(PROGRAMS, "recursion", 1, 12, y)
    assert y[:12].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def test_generic_pointers() -> None:
    x, y = integers(32, low=-9, high=9).float(), torch.zeros(32)
    own = torch.where(torch.arange(32) % 2 == 0, x, 0.0)
    want = 12 + 2 * (own + 1) + 2 * (x + 1)
    launch(PROGRAMS, "generic", 1, 32, x, y)
    assert torch.equal(y, want)
    x = integers(32, low=-9, high=9).float()
    want = torch.where(torch.arange(32) % 2 == 1, torch.arange(32.0), x) * 2 + 2
    launch(PROGRAMS, "mixed_pointers", 1, 32, x, y)
    assert torch.equal(y, want)


def test_control_flow() -> None:
    y = zeros(64)
    launch(PROGRAMS, "switches", 1, 64, y)
    for i in range(64):
        table = {0: 5, 1: i + 7, 2: 7, 3: 9 * i, 4: 1, 5: 77, 6: -i, 7: 3, 8: 1000}
        assert y[i] == table[i % 9]
    x, y = torch.arange(1, 101, dtype=I32), zeros(100)
    launch(PROGRAMS, "collatz", 2, 64, x, y, 100)

    def steps(v: int) -> int:
        return 0 if v == 1 else 1 + steps(3 * v + 1 if v % 2 else v // 2)

    assert y.tolist() == [steps(v) for v in range(1, 101)]
    x, y = integers(32, low=0, high=20), zeros(32)
    launch(PROGRAMS, "nested", 1, 32, x, y)
    for lane in range(32):
        want = sum(
            i * j + 1
            for i in range(int(x[lane]))
            for j in range(min(i, 20) + 1)
            if (i + j) % 3 and all(k <= 6 or (i + k) % 3 == 0 for k in range(j + 1))
        )
        assert y[lane] == want


def test_structures_and_scalars() -> None:
    import struct

    y = zeros(1, dtype=torch.float64)
    packed = struct.pack("<ifd", 7, 0.5, 0.25)
    launch(PROGRAMS, "structure", 1, 1, packed, -3, -300, True, 1e-3, 1 << 40, y)
    assert y == 7 + 0.5 + 0.25 - 3 - 300 + 1 + 1e-3 + (1 << 40)


def test_named_barriers_and_asynchronous_copies() -> None:
    x, y = integers(128), zeros(128)
    launch(PROGRAMS, "producer_consumer", 1, 64, x, y)
    assert torch.equal(y.view(4, 32), x.view(4, 32).flip(1))
    a, b = random(64, 4), torch.zeros(64, 4)
    launch(PROGRAMS, "asynchronous", 1, 64, a, b)
    assert torch.equal(b, a.flip(0))


def test_tensor_cores_are_exact_on_small_integers() -> None:
    a, b = integers(16, 16, low=-20, high=20).half(), integers(8, 16, low=-20, high=20, seed=1).half()
    c, d = integers(16, 8, low=-999, high=999).float(), torch.zeros(16, 8)
    profile = launch(PROGRAMS, "tensor_cores", 1, 32, a, b, c, d)
    assert torch.equal(d, a.float() @ b.float().T + c)
    assert profile.mma_instructions == 1 and profile.flops == 4096


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_tensor_cores_are_as_close_as_their_bound_says(device: str) -> None:
    a, b, c = random(16, 16, dtype=torch.float16), random(8, 16, dtype=torch.float16, seed=1), random(16, 8) * 30
    d = torch.zeros(16, 8, device=device)
    launch(PROGRAMS, "tensor_cores", 1, 32, *(one.to(device) for one in (a, b, c)), d)
    terms = torch.cat([a.double()[:, None] * b.double()[None], c.double()[..., None]], dim=2)
    truth = torch.tensor([[math.fsum(one) for one in row] for row in terms.tolist()], dtype=torch.float64)
    off = (d.cpu().double() - truth).abs() / terms.abs().sum(2)
    # Ours rounds once; the rest of the bound is the tensor core's.
    assert 0 < off.max() < (2.0**-23 if device == "cpu" else ERROR)


def test_templates_and_launch_bounds() -> None:
    y = zeros(64)
    launch(PROGRAMS, "templates", 1, 32, y)
    assert y[:32].tolist() == [i**3 for i in range(32)]
    launch(PROGRAMS, "bounded", 1, 64, y)
    with pytest.raises(ValueError, match="has 65 threads; at most 64 are allowed"):
        launch(PROGRAMS, "bounded", 1, 65, y)
