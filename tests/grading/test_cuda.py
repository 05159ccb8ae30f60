"""Kernels in CUDA C++ are judged in a process where nothing of the student's Python has run."""

from __future__ import annotations

import os

import pytest

from grading.isolation.plan import CUDA, LIGHT
from grading.isolation.tiers import NONE
from grading.supervisor import Sandbox
from grading.supervisor.result import ExerciseResult
from grading.supervisor.run import preload_of
from grading.worker.protocol.steps import ServeExercise
from tests.grading.fake_labs import registered
from tests.grading.shared_sandboxes import shared_sandbox
from tests.grading.steps import code, graded
from tests.lanes import MOSTLY_LATER, require_tier
from tests.simt.harness import require_nvrtc

pytestmark = pytest.mark.slow

ASKED = os.environ.get("LABS_ISOLATION")
RIGHT = '''transpose = r"""
__global__ void transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8)
    if (c < cols && blockIdx.y * 32 + i < rows) tile[i][threadIdx.x] = x[(blockIdx.y * 32 + i) * cols + c];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (r < rows && blockIdx.x * 32 + i < cols) y[(blockIdx.x * 32 + i) * rows + r] = tile[threadIdx.x][i];
}
"""'''
CONFLICTS = RIGHT.replace("[33]", "[32]")
PATCHES = """
import labkit.meters.cuda, labkit.simt.counters
from labkit.simt import KernelProfile
labkit.simt.counters.wavefronts = lambda *_: (1, 0)
labkit.meters.cuda.cuda_figures = lambda launches: {}
KernelProfile.bank_conflicts = 0
"""


@pytest.fixture(scope="module")
def lab95():
    require_nvrtc()
    with registered("95"):
        yield


@pytest.fixture(scope="module", params=[ASKED] if ASKED else MOSTLY_LATER)
def sandbox(lab95, request):
    tier = NONE if request.param == NONE.name else require_tier(request.param)
    return shared_sandbox(tier, (*LIGHT, *CUDA))


def found(sandbox: Sandbox, answer: str, *cells: str) -> ExerciseResult:
    steps = [code(f"c{n}", source) for n, source in enumerate((*cells, answer))]
    check = ServeExercise("95-transpose-check", "95-transpose", {"transpose": answer})
    return graded(sandbox, *steps, check).exercises["95-transpose"]


def test_a_right_kernel_passes(sandbox) -> None:
    result = found(sandbox, RIGHT)
    assert result.outcome == "passed" and result.score == 1, result


def test_what_it_costs_is_counted(sandbox) -> None:
    verdict = found(sandbox, CONFLICTS).deciding
    assert verdict.outcome == "failed" and "served one after the other" in verdict.hint
    rows = dict(verdict.rows)
    assert rows["problem"] == "over budget: bank conflicts" and rows["measured"] == "1,984 bank conflicts"


@pytest.mark.parametrize("cell", [PATCHES, "from labkit.simt import compiling; compiling._compiled = None"])
def test_a_notebook_that_patches_the_meter_reaches_nothing(sandbox, cell: str) -> None:
    assert found(sandbox, CONFLICTS, cell).outcome == "failed"
    assert found(sandbox, RIGHT, cell).outcome == "passed"


@pytest.mark.parametrize(
    ("change", "problem", "hint"),
    [
        (("__syncthreads();", ""), "LaunchFault: transpose, line 9: race: reads tile[", "pass a `__syncthreads()`"),
        (("c < cols && ", ""), "out of bounds: reads x[", "more threads than there are elements left"),
        (("int c = ", "int c = d + "), 'CudaCompileError: line 4: error: identifier "d" is undefined', None),
        (("i += 8", "i += 0"), "never ends: still running after", "A loop in the kernel does not end"),
        (("void transpose(", "void other("), "LookupError: the kernel has to be called `transpose`", None),
        (('r"""', 'f"""'), "NoPlainString: the grader reads `transpose` from the text of its cell", None),
        (('= r"""', '= "" + r"""'), "NoPlainString: the grader reads `transpose` from the text of its cell", None),
        (("  __shared__", '#include "/etc/hostname"\n  __shared__'), "is not allowed; these headers are:", None),
    ],
)
def test_what_goes_wrong_is_told_with_the_students_line(sandbox, change, problem: str, hint: str | None) -> None:
    verdict = found(sandbox, RIGHT.replace(*change)).deciding
    rows = dict(verdict.rows)
    assert verdict.outcome == "failed" and problem in rows["problem"], verdict
    assert hint is None or hint in verdict.hint
    if "line" in problem:
        assert rows["at"].startswith("line ")


def test_a_compiler_that_takes_all_memory_costs_its_own_exercise(sandbox) -> None:
    bomb = (
        "template <int N, int M> struct A { static const int v = A<N - 1, 2 * M>::v + A<N - 1, 2 * M + 1>::v; };\n"
        "template <int M> struct A<0, M> { static const int v = 1; };\n"
        "__global__ void k(int* y) { *y = A<30, 0>::v; }\n"
    )
    verdict = found(sandbox, RIGHT.replace('r"""', f'r"""{bomb}')).deciding
    # On a slow machine the compiler's CPU time is over before the memory is, on a busy one the exercise's time.
    limits = ("memory", "s of CPU time", "did not finish")
    assert any(limit in dict(verdict.rows)["problem"] for limit in limits), verdict
    assert verdict.score == 0
    assert found(sandbox, RIGHT).outcome == "passed"


def test_a_blank_answer(sandbox) -> None:
    stub = RIGHT.replace("__syncthreads();", '#error "Write your answer here."')
    assert found(sandbox, stub).outcome == "unanswered"


def test_what_executes_kernels_is_loaded_for_those_who_have_some() -> None:
    from grading.supervisor import Job

    def preloaded(source: str) -> bool:
        return set(CUDA) <= set(preload_of(Job("10", "ada", "1", (), (source,), (), b"key")))

    assert preloaded(RIGHT) and not preloaded("x = 1")
