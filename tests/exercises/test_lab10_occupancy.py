"""Lab 10's occupancy agrees with NVIDIA's own calculator, a header of CUDA that a C compiler turns into a program."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from labkit.exercises.lab10.chips import CHIPS
from labkit.oracles.lab10.sm import Rules, resident_blocks
from labkit.simt.nvrtc import header_folders
from tests.simt.harness import require_nvrtc

pytestmark = pytest.mark.lab("10")
PROGRAM = r"""
#include <stddef.h>
#include <stdio.h>
#include <cuda_occupancy.h>
int main(void) {
  int arch, threads, registers, shared, warps, blocks, shared_sm;
  while (scanf("%d %d %d %d %d %d %d", &arch, &threads, &registers, &shared, &warps, &blocks, &shared_sm) == 7) {
    struct cudaOccDeviceProp chip = {0};
    struct cudaOccFuncAttributes kernel = {0};
    struct cudaOccDeviceState state = {0};
    struct cudaOccResult result = {0};
    chip.computeMajor = arch / 10, chip.computeMinor = arch % 10, chip.warpSize = 32, chip.maxThreadsPerBlock = 1024;
    chip.maxThreadsPerMultiprocessor = 32 * warps, chip.regsPerBlock = chip.regsPerMultiprocessor = 65536;
    chip.sharedMemPerBlock = 49152, chip.sharedMemPerMultiprocessor = shared_sm;
    chip.sharedMemPerBlockOptin = shared_sm - 1024, chip.reservedSharedMemPerBlock = 1024, chip.numSms = 1;
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = shared;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    int status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &chip, &kernel, &state, threads, shared);
    printf("%d\n", status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -status);
    (void)blocks;
  }
}
"""


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_nvrtc()
    compiler = shutil.which("cc")
    headers = [folder for folder in header_folders() if (Path(folder) / "cuda_occupancy.h").exists()]
    if not compiler or not headers:
        pytest.skip("no C compiler, or no cuda_occupancy.h")
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "calculator.c").write_text(PROGRAM)
    command = [
        compiler,
        "-Werror=implicit-function-declaration",
        "-Werror=int-conversion",
        f"-I{headers[0]}",
        "calculator.c",
        "-o",
        "calculator",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "calculator"


@pytest.mark.parametrize("name", CHIPS)
def test_as_many_blocks_fit_as_cuda_says(name: str, calculator: Path) -> None:
    chip, rng = CHIPS[name], random.Random(name)
    asked = [
        (
            rng.choice((rng.randint(1, 128), rng.randint(1, 1024))),
            rng.randint(16, 255),
            rng.choice((0, rng.randint(1, 12000), rng.randint(1, chip.shared_bytes - 1024))),
        )
        for _ in range(400)
    ]
    lines = [f"{chip.arch} {t} {r} {s} {chip.max_warps} {chip.max_blocks} {chip.shared_bytes}" for t, r, s in asked]
    answer = subprocess.run([calculator], input="\n".join(lines), capture_output=True, text=True, check=True)
    theirs = [int(line) for line in answer.stdout.split()]
    ours = [resident_blocks(*one, chip) for one in asked]
    wrong = [pair for pair in zip(asked, ours, theirs, strict=True) if pair[1] != pair[2]]
    assert not wrong, wrong[:5]
    # The control: without the kibibyte of the system, it is another number.
    assert [resident_blocks(*one, chip, Rules(reserved_bytes=0)) for one in asked] != theirs
