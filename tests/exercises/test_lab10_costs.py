"""Lab 10: what the oracles work out of a launch is what the executor counts, and what the notebook quotes is so."""

from __future__ import annotations

import re
from random import Random

import pytest
import torch

from grading.demo.examples import SOLUTIONS, example
from labkit.exercises.cuda import kernel_of
from labkit.exercises.lab10.block_reduce import Sums
from labkit.exercises.lab10.indexing import Image
from labkit.exercises.lab10.sectors import Load
from labkit.exercises.lab10.tile import BLOCK, Matrix
from labkit.measures import MEASURES
from labkit.oracles.lab10 import block_reduce, indexing, tile
from labkit.oracles.lab10.sectors import cost, of_the_first_warp
from labkit.simt import KernelProfile, compile_cuda
from labkit.spec import CaseRun
from tests.exercises.harness import public_verdict, solution_of
from tests.simt.harness import require_nvrtc

pytestmark = pytest.mark.lab("10")
NOTEBOOK = (SOLUTIONS / "10_gpu_architecture.py").read_text(encoding="utf-8")
PROBES = "\n".join(
    f"""__global__ void probe{size}(const {kind}* x, float* y, int n, int stride, int every) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {kind} value = {{}};
  if (i < n && i % every == 0) value = x[i * stride];
  if (value{part} == 12345.f) *y = 1;
}}"""
    for size, kind, part in (
        (4, "float", ""),
        (8, "float2", ".x + value.y"),
        (16, "float4", ".x + value.y + value.z + value.w"),
    )
)


@pytest.fixture(scope="module", autouse=True)
def nvrtc() -> None:
    require_nvrtc()


def test_of_a_number_that_no_mistake_explains_the_first_warp_is_told() -> None:
    formula = "def load_cost(n, block, size, stride, offset, every):\n    return -(-n // 32), 7\n"
    notes = dict(public_verdict("10-sectors", formula).rows)
    assert notes["note"].startswith("the first warp alone has lanes that read: 32; ")
    assert "sectors that hold them: 4." in notes["note"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Load(1000, offset=8),
            "read: 32; their elements lie within bytes 8 to 135 past a multiple of 32; sectors that hold them: 5.",
        ),
        (
            Load(600, 64, every=50),
            "read: 1; their elements lie within bytes 0 to 3 past a multiple of 32; sectors that hold them: 1.",
        ),
        (
            Load(90, 20, 8, 2),
            "read: 20; their elements lie within bytes 0 to 311 past a multiple of 32; sectors that hold them: 10.",
        ),
    ],
)
def test_what_is_told_of_the_first_warp_is_so(case: Load, words: str) -> None:
    assert words in of_the_first_warp(CaseRun(case, {}))


def test_a_place_that_no_thread_stores_to_is_no_error_of_arithmetic() -> None:
    source = solution_of("10-block-reduce")
    half = source.replace("if (t == 0) out", "if (t == 0 && blockIdx.x % 2) out")
    assert half != source
    verdict = public_verdict("10-block-reduce", half)
    assert dict(verdict.rows)["note"].endswith("values rest on memory that no kernel stored to")
    assert verdict.hint.startswith("Not every place was stored to: see which threads come to the store")


def loads() -> list[Load]:
    rng, found = Random(10), []
    for _ in range(40):
        size = rng.choice((4, 8, 16))
        found.append(
            Load(
                rng.randrange(1, 600),
                rng.choice((32, 40, 48, 64, 100, 256)),
                size,
                rng.randrange(5),
                size * rng.randrange(32 // size),
                rng.choice((1, 1, 2, 7, 60)),
            )
        )
    return found


def test_predicted_requests_and_sectors_are_those_that_the_executor_counts() -> None:
    kernels, memory = compile_cuda(PROBES), torch.zeros(4 * 600 * 4 + 32)
    for case in loads():
        x = memory[case.offset // 4 :]
        grid = -(-case.n // case.block)
        profile = kernels[f"probe{case.size}"].launch(
            grid, case.block, x, torch.zeros(1), case.n, case.stride, case.every
        )
        assert cost(case) == (profile.global_load_requests, profile.global_load_sectors), case


def launched(source: str, name: str, grid, block, *arguments) -> KernelProfile:
    return kernel_of(source, name).launch(grid, block, *arguments)


@pytest.mark.parametrize("case", [Image(30, 64), Image(33, 70, (7, 5)), Image(1, 1), Image(9, 300, (64, 2), (1, 1))])
def test_a_thread_for_each_element_stores_the_sectors_that_the_oracle_allows(case: Image) -> None:
    arguments = torch.ones(case.rows, case.cols), torch.ones(case.rows), torch.ones(case.cols)
    profile = launched(solution_of("10-indexing"), "adjust", case.grid, case.block, *arguments, case.rows, case.cols)
    assert profile.global_store_sectors == indexing.store_sectors(CaseRun(case, {}))


@pytest.mark.parametrize("case", [Matrix(64, 64), Matrix(33, 40), Matrix(1, 77), Matrix(95, 3)])
def test_a_transpose_in_tiles_touches_the_sectors_that_the_oracle_allows(case: Matrix) -> None:
    x, y = torch.randn(case.rows, case.cols), torch.empty(case.cols, case.rows)
    profile = launched(solution_of("10-transpose"), "transpose", case.grid, BLOCK, x, y, case.rows, case.cols)
    run = CaseRun(case, {})
    assert profile.global_load_sectors == tile.load_sectors(run)
    assert profile.global_store_sectors == tile.store_sectors(run)
    assert profile.bank_conflicts == 0 and torch.equal(y, x.T)


@pytest.mark.parametrize("block", [64, 128, 256, 512, 1024])
@pytest.mark.parametrize("kernel", ["block_sum", "shuffle_sum"])
def test_the_limits_of_a_reduction_leave_room_for_two_passes_and_a_barrier_at_most(kernel: str, block: int) -> None:
    case = Sums(kernel, 3 * block - 5, block)
    source = solution_of("10-block-reduce")
    profile = launched(source, kernel, case.grid, block, torch.ones(case.n), torch.empty(case.grid), case.n)
    run = CaseRun(case, {})
    assert 0 <= block_reduce.most_passes(run) - profile.shared_wavefronts <= 2 * case.grid
    assert 0 <= block_reduce.most_barriers(run) - profile.barriers <= case.grid * case.warps


def test_the_opening_quotes_what_is_counted() -> None:
    opening = NOTEBOOK[: NOTEBOOK.index("[[time]]")]
    x, y = torch.randn(256, 256), torch.empty(256, 256)

    def transposed(source: str, name: str) -> KernelProfile:
        return launched(source, name, (8, 8), BLOCK, x, y, 256, 256)

    naive = transposed(example("wrong", "10-transpose/strided_stores").source, "transpose")
    unpadded = transposed(example("wrong", "10-transpose/unpadded_tile").source, "transpose")
    best = transposed(solution_of("10-transpose"), "transpose")
    assert f"**{naive.global_sectors / best.global_sectors:.1f} times**" in opening
    assert f"**{unpadded.shared_wavefronts:,}** passes" in opening
    assert f"{best.shared_wavefronts:,} would do" in opening and best.bank_conflicts == 0
    assert unpadded.global_sectors == best.global_sectors == 2 * 256 * 256 * 4 // 32


def test_the_notebook_quotes_the_threads_without_an_element() -> None:
    case = Image(200, 300, (32, 32))
    threads = case.grid[0] * case.grid[1] * 1024
    quoted = f"{threads:,} threads for 60,000 elements. {threads - 60_000:,} threads have none"
    assert quoted in re.sub(r"\n# ", " ", NOTEBOOK)


def test_the_figures_of_cuda_are_borne_out_by_texts_alone() -> None:
    from labkit import exercises
    from labkit.oracles import oracle_of

    on_text = {name for name, measure in MEASURES.items() if measure.witness == "text"}
    limited = [
        exercise
        for exercise in exercises.everything().values()
        if on_text & {budget.name for budget in oracle_of(exercise.id).budgets}
    ]
    assert len(limited) >= 5 and all(not exercise.run.cells for exercise in limited)
