"""Lab 10: what is asked, given and run for a chain of functions in one kernel, with accesses of 16 bytes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import cuda_source, kernel_of
from labkit.simt.cubin import compile_cubin
from labkit.spec import Answer, Case, Exercise, Run
from labkit.unwritten import unwritten_floats

THREADS, PER_THREAD = 256, 4
ARCHS = (80, 90, 100)


@dataclass(frozen=True)
class Fused(Case):
    """n elements; x, y and z begin so many elements behind a multiple of 16 bytes."""

    n: int
    x_at: int = 0
    y_at: int = 0
    z_at: int = 0

    @property
    def grid(self) -> int:
        return -(-self.n // (THREADS * PER_THREAD))

    @property
    def aligned(self) -> bool:
        return all(4 * at % 16 == 0 for at in (self.x_at, self.y_at, self.z_at))


def fused_inputs(case: Fused, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Small whole numbers, so that nothing is rounded; what lies before the first element is none of the kernel's."""
    return {
        "x": torch.randint(-9, 10, (case.x_at + case.n,), generator=gen).float(),
        "y": torch.randint(-40, 40, (case.y_at + case.n,), generator=gen).float(),
    }


def drive_fused(ans, case: Fused, tree: dict, stage) -> dict[str, object]:
    z = unwritten_floats(case.z_at + case.n)[case.z_at :]
    with stage.meter("cuda"):
        kernel = kernel_of(ans.fused, "fused")
        kernel.launch(case.grid, THREADS, tree["x"][case.x_at :], tree["y"][case.y_at :], z, case.n)
    cubins = [compile_cubin(cuda_source(ans.fused, "fused"), arch) for arch in ARCHS]
    return {"z": z.clone(), "stack_bytes": [one.kernels["fused"].stack_bytes for one in cubins]}


KERNEL_LIFE_CYCLE = Exercise(
    id="10-kernel-life-cycle",
    title="From C++ to machine code",
    points=0.4,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("fused", kind="text"),),
    public=(Fused(4096), Fused(2050), Fused(3000, x_at=1, y_at=1, z_at=1), Fused(1500, y_at=2)),
    inputs=fused_inputs,
    drive=drive_fused,
    run=Run(cells=False, wall_s=20.0),
    meters=("cuda",),
)
