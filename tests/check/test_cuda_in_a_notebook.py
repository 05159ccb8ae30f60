"""A kernel's text in a real notebook: its stub as students get it, and what the check takes for the answer."""

from __future__ import annotations

import nbformat
import pytest

from grading.build import build
from grading.build.stub import CODE_STUB, CUDA_STUB
from grading.demo.examples import SOLUTIONS
from grading.site.kernel import run_notebook
from labkit import exercises
from labkit.simt import compile_cuda
from labkit.simt.sources import BlankKernel
from tests.exercises.harness import solution_of
from tests.simt.harness import require_nvrtc

pytestmark = pytest.mark.lab("10")
SOURCE = SOLUTIONS / "10_gpu_architecture.py"


def test_a_stub_in_cuda_cpp_keeps_the_head_of_its_kernel_and_is_told_from_an_answer() -> None:
    cells = {cell.id: cell.source for cell in build(SOURCE, exercises.of_lab("10")).student.cells}
    stub = cells["10-indexing"]
    assert stub.startswith('adjust = r"""\n__global__ void adjust(float* image, const float* gain,')
    assert f"\n  {CUDA_STUB}\n}}" in stub and CODE_STUB not in stub and "SOLUTION" not in stub
    assert "blockIdx" not in stub
    assert CODE_STUB in cells["10-sectors"] and CUDA_STUB not in cells["10-sectors"]
    namespace: dict = {}
    exec(stub, namespace)
    with pytest.raises(BlankKernel) as caught:
        compile_cuda(namespace["adjust"])
    assert caught.value.blank == "adjust"


@pytest.mark.slow
def test_a_check_reads_the_cell_as_the_grader_does(tmp_path) -> None:
    """A text that its cell computes passes no check, however right it is, because no grader would carry that out."""
    require_nvrtc()
    right = solution_of("10-indexing")
    computed = right.replace('r"""', '"" + r"""')
    cells = [
        "from labkit import check",
        computed,
        'check("10-indexing", adjust)',
        right,
        'check("10-indexing", adjust)',
        "adjust = adjust",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    run_notebook(notebook, tmp_path, 600, also_past_errors=True)
    said = ["".join(str(output) for output in cell.outputs) for cell in notebook.cells]
    assert "NoPlainString" in said[2] and "the grader reads `adjust` from the text of its cell" in said[2]
    assert "all 5 cases pass" in said[4] and "CheckFailed" not in said[4]
