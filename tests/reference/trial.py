"""What the tests of the reference kernels have in common: where they run, how near is near, what the meters must say.

On the CPU kernels are interpreted and shapes are small. With a GPU in the machine they are compiled, and the same tests
run on it with larger ones. Nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from labkit import has_gpu, interpreter
from labkit.meters.compiled import CompileReport, compile_report
from labkit.meters.launches import KernelLaunch, listening
from labkit.meters.traffic import TrafficProfile, track_traffic

interpreter.enable()


@dataclass(frozen=True)
class Type:
    """A dtype, and how far from the exact result its numbers may be, as in torch.testing.assert_close."""

    dtype: torch.dtype
    atol: float
    rtol: float

    def __str__(self) -> str:
        return str(self.dtype).removeprefix("torch.")


# Half a unit in the last place is 2^-9 of a bfloat16 and 2^-12 of a float16; what is rounded on the way doubles that.
FLOAT32, BFLOAT16, FLOAT16 = (
    Type(torch.float32, 2e-5, 2e-5),
    Type(torch.bfloat16, 2e-3, 2**-7),
    Type(torch.float16, 3e-4, 2**-10),
)
types = pytest.mark.parametrize("kind", [FLOAT32, BFLOAT16, FLOAT16], ids=str)


def places(small: Sequence[tuple], large: Sequence[tuple], slow: Sequence[tuple] = ()) -> pytest.MarkDecorator:
    """Parameters `device` and `shape`: the small and the slow ones on the CPU, all of them on the GPU."""
    on_cpu = [pytest.param("cpu", shape, marks=pytest.mark.slow) for shape in slow]
    on_gpu = [pytest.param("cuda", shape, marks=pytest.mark.gpu) for shape in (*small, *slow, *large)]
    return pytest.mark.parametrize(("device", "shape"), [*(("cpu", shape) for shape in small), *on_cpu, *on_gpu])


def draw(device: str, kind: Type, *shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    """The same normally distributed numbers on every device."""
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (scale * numbers).to(device, kind.dtype)


def agree(ours: Callable, reference: Callable, tensors: Sequence[Tensor], kind: Type, gradients: bool = True) -> None:
    """ours(*tensors) and its gradients are those that the reference has in float64."""
    if tensors[0].device.type == "cpu" and has_gpu():
        pytest.skip("with a GPU kernels are compiled: start Python with CUDA_VISIBLE_DEVICES= for the interpreter")
    told = [x.clone().requires_grad_(gradients) for x in tensors]
    exact = [x.double().requires_grad_(gradients) for x in tensors]
    got, want = ours(*told), reference(*exact)
    assert (got.shape, got.device) == (want.shape, want.device)
    near(got, want, kind)
    if gradients:
        outer = torch.randn(want.shape, generator=torch.Generator().manual_seed(99)).to(got)
        found = torch.autograd.grad(got, told, outer)
        for one, other, x in zip(found, torch.autograd.grad(want, exact, outer.double()), told, strict=True):
            assert one.dtype == x.dtype
            near(one, other, kind)


def near(got: Tensor, want: Tensor, kind: Type) -> None:
    # What is a sum over many rows is as far off as its addends are.
    atol = kind.atol * max(1.0, want.abs().max().item() if want.numel() else 1.0)
    torch.testing.assert_close(got.double(), want, atol=atol, rtol=kind.rtol, equal_nan=True)


def traffic_of(call: Callable[[], object]) -> TrafficProfile:
    """What a call moves, if it is sound: every lane in bounds, no two programs at one place."""
    if has_gpu():
        pytest.skip("traffic is counted in the interpreter: start Python with CUDA_VISIBLE_DEVICES=")
    with track_traffic() as traffic:
        call()
    assert not traffic.out_of_bounds and not traffic.races, str(traffic)
    return traffic


def moved(traffic: TrafficProfile, kernel: str) -> dict[str, tuple[int, int]]:
    """Bytes loaded and stored by argument, of the launches of one kernel."""
    total: dict[str, tuple[int, int]] = {}
    for launch in traffic.launches:
        if launch.kernel == kernel:
            for name, one in launch.arguments.items():
                loaded, stored = total.get(name, (0, 0))
                total[name] = loaded + one.load_bytes, stored + one.store_bytes
    assert total, f"{kernel} was not launched: {[launch.kernel for launch in traffic.launches]}"
    return total


def launched_by(call: Callable[[], object]) -> list[KernelLaunch]:
    """The launches of a call, each with the configuration that the interpreter took, which is the first that fits."""
    if has_gpu():
        pytest.skip("launches are listened to in the interpreter: start Python with CUDA_VISIBLE_DEVICES=")
    launches: list[KernelLaunch] = []
    with listening(launches.append):
        call()
    return launches


def compiled(call: Callable[[], object], arch: int) -> dict[str, CompileReport]:
    """By name, a call's kernels, compiled as they were launched; none spills, and each has the memory it asks for."""
    reports = {}
    for one in launched_by(call):
        if one.function.__name__ not in reports:
            reports[one.function.__name__] = compile_report(one.kernel, arch=arch, **one.arguments, **one.options)
    for report in reports.values():
        assert report.spill_bytes == 0 and report.fits, str(report)
    return reports


archs = pytest.mark.parametrize("arch", [80, 90])
