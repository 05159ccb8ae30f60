"""The same call launches on a GPU: its results beside the executor's. Without a GPU, how a launch is prepared."""

from __future__ import annotations

import ctypes
import struct
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from labkit.simt import gpu
from labkit.simt.gpu import GpuError, device_of, parameter_bytes
from tests.simt.harness import compiled, integers, random, source

PROGRAMS = source("programs")
I32 = torch.int32
CASES = {
    "saxpy": (3, 128, lambda: (random(5000), random(5000, seed=1), 0.5, 5000), 0),
    "transpose": ((10, 7), (32, 8), lambda: (random(200, 300), torch.zeros(300, 200), 200, 300), 0),
    "tiled_product": (
        (4, 4),
        (16, 16),
        lambda: (
            integers(50, 50, low=-9, high=9).float(),
            integers(50, 50, low=-9, high=9).float(),
            torch.zeros(50, 50),
            50,
        ),
        0,
    ),
    "block_sum": (12, 256, lambda: (integers(3000, low=-9, high=9).float(), torch.zeros(1), 3000), 1024),
    "warp_sum": (24, 128, lambda: (integers(3000, low=-9, high=9), torch.zeros(1, dtype=I32), 3000), 0),
    "butterfly_max": (1, 64, lambda: (random(64), torch.zeros(64)), 0),
    "scan": (1, 256, lambda: (integers(256, low=-99, high=99), torch.zeros(256, dtype=I32), 200), 0),
    "histogram": (5, 128, lambda: (integers(5000, low=0, high=64), torch.zeros(64, dtype=I32), 5000), 0),
    "stencil": (3, 64, lambda: (integers(150, low=-9, high=9).float(), torch.zeros(150), 150), 0),
    "votes": (1, 64, lambda: (integers(64, low=0, high=9), torch.zeros(64, 8, dtype=I32)), 0),
}
"""By kernel: grid, block, arguments, dynamic shared memory. Their results are the same to the bit."""


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_gives_the_same_bits(name: str) -> None:
    grid, block, make, shared_bytes = CASES[name]
    here, there = make(), [one.cuda() if isinstance(one, torch.Tensor) else one for one in make()]
    kernel = compiled(PROGRAMS)[name]
    kernel.launch(grid, block, *here, shared_bytes=shared_bytes)
    profile = kernel.launch(grid, block, *there, shared_bytes=shared_bytes)
    for mine, its in zip(here, there, strict=True):
        if isinstance(mine, torch.Tensor):
            assert torch.equal(mine, its.cpu())
    assert profile.device.startswith("cuda")
    with pytest.raises(RuntimeError, match="is counted on the CPU only"):
        print(profile.global_sectors)


@pytest.mark.gpu
def test_approximations_are_within_what_ptx_documents() -> None:
    logits = random(6, 300) * 4
    here, there = torch.zeros(6, 300), torch.zeros(6, 300, device="cuda")
    kernel = compiled(PROGRAMS)["softmax"]
    kernel.launch(6, 128, logits, here, 300)
    kernel.launch(6, 128, logits.cuda(), there, 300)
    torch.testing.assert_close(there.cpu(), here, rtol=4e-6, atol=1e-8)


def test_tensors_in_several_places_are_refused() -> None:
    kernel = compiled(PROGRAMS)["saxpy"]
    with pytest.raises(TypeError, match="have to be on one device, not on cpu, meta"):
        kernel.launch(1, 32, torch.zeros(8), torch.zeros(8, device="meta"), 0.5, 8)
    with pytest.raises(TypeError, match="of the CPU or of an NVIDIA GPU, not on meta"):
        device_of([torch.zeros(8, device="meta")])


def test_parameters_are_addresses_and_numbers_in_their_own_types() -> None:
    kernel = compiled(PROGRAMS)["saxpy"]._loaded
    x, y = torch.zeros(8), torch.zeros(8)
    packed = parameter_bytes(kernel, (x, y[2:], 0.5, 8))
    assert packed == [
        struct.pack("<Q", x.data_ptr()),
        struct.pack("<Q", y.data_ptr() + 8),
        struct.pack("<f", 0.5),
        struct.pack("<i", 8),
    ]
    with pytest.raises(TypeError, match=r"takes 4 arguments, 3 were given"):
        parameter_bytes(kernel, (x, y, 0.5))


class FakeDriver:
    """Records what it is asked for, reads the parameters of a launch as the real one does, and fails when told to."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.calls, self.parameters = fails, [], []

    def __getattr__(self, name: str):
        def call(*arguments):
            self.calls.append((name, arguments))
            if name == "cuGetErrorString":
                ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_char_p))[0] = b"no kernel image"
            if name == "cuLaunchKernel":
                pointers = arguments[9]
                self.parameters = [ctypes.string_at(at, size) for at, size in zip(pointers, (8, 8, 4, 4), strict=True)]
            return 209 if name == self.fails else 0

        return call


@pytest.fixture
def with_fake_gpu(monkeypatch: pytest.MonkeyPatch):
    """Lets launches on tensors of the CPU take the way of a GPU's, up to a driver that only records."""

    def install(fails: str = "") -> FakeDriver:
        fake = FakeDriver(fails)
        stream = SimpleNamespace(cuda_stream=7, synchronize=lambda: fake.calls.append(("waited", ())))
        cuda = SimpleNamespace(
            device=lambda device: nullcontext(),
            current_stream=lambda: stream,
            current_device=lambda: 0,
            synchronize=lambda device: None,
        )
        gpu._function.cache_clear()
        monkeypatch.setattr(gpu, "_driver", lambda: fake)
        monkeypatch.setattr(torch, "cuda", cuda)
        return fake

    yield install
    gpu._function.cache_clear()


def test_a_launch_reaches_the_driver_with_its_shape_and_its_bytes(with_fake_gpu) -> None:
    fake, kernels = with_fake_gpu(), compiled(PROGRAMS)
    x, y = torch.zeros(8), torch.zeros(8)
    profile = gpu.run(kernels["saxpy"]._loaded, kernels.ptx, (2, 3), 64, (x, y, 0.5, 8), 50_000)
    names = [name for name, _ in fake.calls]
    assert names == ["cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute", "cuLaunchKernel", "waited"]
    assert fake.calls[1][1][2] == kernels["saxpy"]._loaded.entry.encode()
    assert fake.calls[2][1][1:] == (gpu.MAX_DYNAMIC_SHARED_SIZE, 50_000)
    assert fake.calls[3][1][1:8] == (2, 3, 1, 64, 1, 1, 50_000)
    assert fake.parameters == parameter_bytes(kernels["saxpy"]._loaded, (x, y, 0.5, 8))
    assert (profile.grid, profile.block) == ((2, 3, 1), (64, 1, 1))
    gpu.run(kernels["saxpy"]._loaded, kernels.ptx, 1, 32, (x, y, 0.5, 8), 0)
    assert [name for name, _ in fake.calls[5:]] == ["cuLaunchKernel", "waited"]


def test_what_the_driver_refuses_is_told_in_its_words(with_fake_gpu) -> None:
    with_fake_gpu("cuModuleLoadData")
    kernels = compiled(PROGRAMS)
    with pytest.raises(GpuError, match=r"cuModuleLoadData: no kernel image \(code 209\)"):
        gpu.run(kernels["saxpy"]._loaded, kernels.ptx, 1, 32, (torch.zeros(8), torch.zeros(8), 0.5, 8), 0)


def test_shapes_are_checked_as_on_the_cpu() -> None:
    kernels = compiled(PROGRAMS)
    with pytest.raises(ValueError, match="at most 1,024 are allowed"):
        gpu.run(kernels["saxpy"]._loaded, kernels.ptx, 1, (64, 32), (torch.zeros(8), torch.zeros(8), 0.5, 8), 0)
