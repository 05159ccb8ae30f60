"""The compiler's figures move as they must: with alignment, with size, with the GPU; and nothing else is disturbed."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import interpreter
from labkit.interpreter.switch import TritonMissing, how_to_get_triton
from labkit.meters.compiled import CompileFailed, CompileReport, build, compile_report
from labkit.meters.compiled.sass import disassembled
from labkit.meters.traffic import track_traffic
from tests.kernels.compiled import broken_kernel, closure_kernel, half, helpers_kernel, tuned_kernel
from tests.kernels.matmul import matmul_kernel
from tests.kernels.softmax import softmax, softmax_kernel

interpreter.enable()

X = torch.zeros(4, 1024)


def report_of_softmax(n_cols: int = 1024, block_size: int = 1024, **options) -> CompileReport:
    return compile_report(softmax_kernel, X, X, n_cols, n_cols, n_cols, BLOCK_SIZE=block_size, **options)


def report_of_matmul(arch: int, precision: str = "ieee", dtype: torch.dtype = torch.bfloat16, **options):
    a = torch.zeros(256, 256, dtype=dtype)
    sizes = (256, 256, 256, 256, 1, 256, 1, 256, 1)
    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, **options}
    return compile_report(matmul_kernel, a, a, a, *sizes, PRECISION=precision, arch=arch, **blocks)


@pytest.mark.parametrize("arch", [80, 90])
def test_aligned_rows_are_moved_sixteen_bytes_at_a_time(arch: int) -> None:
    aligned, ragged = report_of_softmax(arch=arch), report_of_softmax(1023, arch=arch)
    assert (dict(aligned.loads), dict(aligned.stores)) == ({16: 2}, {16: 2})
    assert (dict(ragged.loads), dict(ragged.stores)) == ({4: 8}, {4: 8})
    assert aligned.figures()["vector_width"] == 16
    assert ragged.figures()["vector_width"] == 4
    assert aligned.spill_bytes == 0
    assert 0 < aligned.registers <= 255


@pytest.mark.full("kernels")
def test_a_row_that_does_not_fit_spills() -> None:
    """32 Ki values over 128 threads are 256 registers for each of them, where a thread has 255."""
    report = report_of_softmax(32768, 32768)
    assert report.spill_store_bytes > 100
    assert report.spill_load_bytes > 100
    assert report.figures()["spills"] == report.spill_store_bytes + report.spill_load_bytes


@pytest.mark.slow
def test_each_gpu_has_its_matrix_instructions() -> None:
    assert {name.split(".")[0] for name in report_of_matmul(80).matrix_instructions} == {"mma"}
    assert {name.split(".")[0] for name in report_of_matmul(90).matrix_instructions} == {"wgmma"}


@pytest.mark.full("kernels")
def test_full_precision_has_no_matrix_instruction() -> None:
    single = {"dtype": torch.float32, "BLOCK_M": 32, "BLOCK_N": 32}
    assert report_of_matmul(80, "ieee", **single).figures()["matrix_instructions"] == 0
    names = report_of_matmul(80, "tf32", **single).matrix_instructions
    assert names and all(".tf32.tf32." in name for name in names)


@pytest.mark.full("kernels")
def test_shared_memory_beyond_the_gpu_s() -> None:
    report = report_of_matmul(90, BLOCK_M=256, BLOCK_N=256, BLOCK_K=128, num_stages=4, num_warps=8)
    assert report.shared_bytes > 232448
    assert not report.fits
    assert ": TOO MUCH, the launch would fail" in str(report)


def test_helpers_methods_and_libdevice() -> None:
    report = compile_report(helpers_kernel, X, X, 4096, BLOCK_SIZE=1024)
    assert (report.kernel, report.load_width_bytes) == ("helpers_kernel", 16)
    assert "tanh" in report.ptx or "ex2.approx" in report.ptx


def test_functions_captured_from_outside() -> None:
    kernel = closure_kernel(half)
    assert dict(compile_report(kernel, X, BLOCK_SIZE=256).loads) == {8: 1}
    assert kernel.fn.__closure__[0].cell_contents is half, "given back"


def test_an_autotuned_kernel_in_its_first_configuration() -> None:
    report = compile_report(tuned_kernel, X, X, 4096)
    assert report.num_warps == 2
    # 512 values over 64 threads; without a mask, as the heuristic found.
    assert dict(report.loads) == {16: 2}
    assert "@%p" not in report.ptx


def test_the_process_is_as_before() -> None:
    before = dict(os.environ)
    first, second = report_of_softmax(), report_of_softmax()
    assert first == second, "compiled anew, not found in a cache without its log"
    assert dict(os.environ) == before
    x = torch.randn(3, 100, generator=torch.Generator().manual_seed(0))
    with track_traffic() as traffic:
        torch.testing.assert_close(softmax(x), torch.softmax(x, -1))
    assert len(traffic.launches) == 1


def test_no_cache_is_written(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    report_of_softmax()
    assert list(tmp_path.rglob("*")) == []


def test_the_assembly(capfd) -> None:
    report = report_of_softmax()
    assert ".target sm_90a" in report.ptx
    lines = report.sass.splitlines()
    assert lines[0].startswith("0000  ")
    assert sum("LDG.E.128" in line for line in lines) == 2
    assert any(line.endswith("EXIT ;") for line in lines)
    assert capfd.readouterr() == ("", "")


def test_a_cubin_that_is_none() -> None:
    with pytest.raises(RuntimeError, match=r"^cuobjdump cannot read the compiled kernel: "):
        disassembled(b"nothing of the kind")


def test_the_text() -> None:
    report = report_of_softmax()
    assert str(report).splitlines() == [
        "softmax_kernel for sm_90, 4 warps, 3 stages",
        f"  registers      {report.registers} a thread",
        "  spills         0 bytes stored, 0 loaded",
        f"  shared memory  {report.shared_bytes} bytes a block of at most 232,448",
        "  loads          2 × 16 bytes",
        "  stores         2 × 16 bytes",
        "  tensor cores   not used",
    ]
    assert "ptx" not in repr(report)


def test_a_kernel_that_does_not_compile() -> None:
    with pytest.raises(CompileFailed) as error:
        compile_report(broken_kernel, X, BLOCK_SIZE=64)
    assert str(error.value) == (
        "kernel broken_kernel does not compile for sm_90: arange's range must be a power of 2 "
        "(line 2: return x + tl.arange(0, 3))"
    )
    report_of_softmax()


def test_a_block_that_no_gpu_could_hold_is_refused_before_the_compiler_unrolls_it(monkeypatch) -> None:
    """At 2**20 lanes that takes a quarter of an hour, in which nothing can interrupt it."""
    monkeypatch.setattr(build, "_compiled", lambda launch, arch: pytest.fail("it was compiled"))
    with pytest.raises(CompileFailed) as error:
        report_of_softmax(4000, 2**20)
    assert str(error.value) == (
        "kernel softmax_kernel is not compiled for sm_90: a block of 4.00 MiB is larger than all registers of a "
        "multiprocessor together (256.0 KiB)"
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((X,), {}, "the arguments of kernel softmax_kernel do not fit: softmax_kernel() missing 5 required"),
        (
            (X, X, 1, 1, 1),
            {"BLOCK_SIZE": 64, "num_wraps": 4},
            "the arguments of kernel softmax_kernel do not fit: Keyword argument num_wraps was specified but",
        ),
    ],
)
def test_wrong_arguments(args: tuple, kwargs: dict, text: str) -> None:
    with pytest.raises(TypeError) as error:
        compile_report(softmax_kernel, *args, **kwargs)
    assert str(error.value).startswith(text)


def test_no_kernel_at_all() -> None:
    with pytest.raises(TypeError) as error:
        compile_report(len, X)
    assert str(error.value) == "compile_report needs a function under @triton.jit, not <built-in function len>"


def test_an_unknown_gpu() -> None:
    with pytest.raises(ValueError) as error:
        compile_report(softmax_kernel, arch=9)
    assert str(error.value) == (
        "arch is a compute capability, 80 for an A100 or 90 for an H100, not 9; known: 75, 80, 86, 87, 89, 90, 100, 120"
    )


def test_without_triton(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TritonMissing) as error:
        compile_report(softmax_kernel)
    assert str(error.value) == how_to_get_triton(sys.platform)
