"""The compiler as a meter: it sees what was launched, in figures that are worst over kernels, and compiles it once."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

import triton
import triton.language as tl

from labkit import interpreter
from labkit.meters import METERS
from labkit.meters.compiled import compile_report, compiled_figures, launched
from labkit.meters.launches import KernelLaunch, listening
from tests.kernels.matmul import matmul
from tests.kernels.softmax import softmax, softmax_kernel

interpreter.enable()
FACTOR = tl.constexpr(2)


@triton.jit
def scaled(x):
    return x * FACTOR


@triton.jit
def scaled_in_half_precision(x):
    return (x.to(tl.float16) * FACTOR).to(tl.float32)


@triton.jit
def helped(x):
    return scaled(x)


@triton.jit
def scale_kernel(x_ptr, BLOCK: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK)
    tl.store(at, helped(tl.load(at)))


def seen(run, *args) -> list[KernelLaunch]:
    found: list[KernelLaunch] = []
    with listening(found.append):
        run(*args)
    return found


def test_a_launch_is_told_as_it_was_asked_for() -> None:
    (one,) = seen(
        lambda x: softmax_kernel[lambda meta: (x.shape[0],)](x, x, 8, 8, n_cols=8, BLOCK_SIZE=8, num_warps=2),
        torch.ones(3, 8),
    )
    assert (one.function.__name__, one.grid, one.options) == ("softmax_kernel", (3, 1, 1), {"num_warps": 2})
    assert list(one.arguments) == ["out_ptr", "x_ptr", "stride_out", "stride_x", "n_cols", "BLOCK_SIZE"]


def test_blocks_may_be_nested_and_leave_nothing_behind() -> None:
    outer: list[KernelLaunch] = []
    with listening(outer.append):
        inner = seen(softmax, torch.ones(2, 8))
        softmax(torch.ones(2, 8))
    softmax(torch.ones(2, 8))
    assert (len(outer), len(inner)) == (2, 1)


def test_the_meter_says_what_the_report_says_at_the_worst() -> None:
    x = torch.zeros(2, 256)
    measured: dict[str, float] = {}
    held: dict[str, list[str]] = {}
    with METERS["compiled"](measured, held):
        softmax(x)
    report = compile_report(softmax_kernel, x, x, 256, 256, 256, BLOCK_SIZE=256, arch=80).figures()
    assert measured == {**report, "matrix_flops": 0}
    assert (measured["vector_width"], measured["spills"], measured["matrix_instructions"]) == (8, 0, 0)
    assert held["vector_width"] == ["softmax_kernel for sm_80: 8"]


@pytest.mark.slow
def test_a_simple_kernel_is_compiled_for_one_gpu_because_the_others_say_the_same(monkeypatch) -> None:
    runs = seen(softmax, torch.zeros(2, 256)) + seen(softmax, torch.zeros(2, 255))
    on_each = [compiled_figures(runs, (arch,)) for arch in (80, 90)]
    assert [[one[name] for one in on_each] for name in ("spills", "vector_width")] == [[0, 0], [4, 4]]
    a = torch.zeros(64, 64, dtype=torch.bfloat16)
    for least, run, archs in ((0, runs, [80, 90]), (128, runs, [80]), (128, seen(matmul, a, a), [80, 90])):
        monkeypatch.setattr(launched, "AT_EASE", least)
        assert list(dict.fromkeys(report.arch for report, _ in launched._made(run, (80, 90)))) == archs


def test_arguments_of_the_same_kind_are_compiled_once(monkeypatch) -> None:
    compiled = []
    monkeypatch.setattr(
        launched, "compile_report", lambda *a, arch, **k: compiled.append(arch) or compile_report(*a, arch=arch, **k)
    )
    runs = [*seen(softmax, torch.zeros(2, 48)), *seen(softmax, torch.zeros(5, 48)), *seen(softmax, torch.zeros(2, 49))]
    compiled_figures(runs, (90,))
    assert len(compiled) == 2
    compiled_figures(runs, (90,))
    assert len(compiled) == 2


def test_what_is_called_by_what_is_called_may_be_defined_anew(monkeypatch) -> None:
    x = torch.zeros(64)

    def ptx() -> str:
        ((report, _),) = launched._made(seen(lambda: scale_kernel[(1,)](x, 64)), (80,))
        return report.ptx

    first = ptx()
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "scaled", scaled_in_half_precision)
        assert "f16" in ptx() and "f16" not in first
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "FACTOR", tl.constexpr(3))
        assert ptx() != first
    monkeypatch.setattr(launched, "compile_report", None)
    assert ptx() == first


def test_reports_are_kept_up_to_a_number_and_arguments_never(monkeypatch) -> None:
    monkeypatch.setattr(launched, "_reports", {})
    monkeypatch.setattr(launched, "MOST_REPORTS", 2)
    for block in (16, 32, 64):
        x = torch.zeros(block)
        compiled_figures(seen(lambda x, block: scale_kernel[(1,)](x, block), x, block), (80,))
    assert [dict(kind.arguments)["BLOCK"] for kind, _ in launched._reports] == ["32", "64"]
    kept = weakref.ref(x)
    del x
    gc.collect()
    assert kept() is None


@pytest.mark.full("kernels")
def test_matrix_instructions_are_added_up_where_they_are_fewest() -> None:
    a = torch.zeros(64, 64, dtype=torch.bfloat16)
    figures = compiled_figures(seen(matmul, a, a), (80, 90))
    each = [compiled_figures(seen(matmul, a, a), (arch,))["matrix_instructions"] for arch in (80, 90)]
    assert figures["matrix_instructions"] == min(each) > 0


def test_nothing_launched_is_nothing_measured() -> None:
    assert compiled_figures([]) == {
        **dict.fromkeys(("registers", "spills", "shared_bytes", "vector_width"), 0),
        **dict.fromkeys(("matrix_instructions", "matrix_flops"), 0),
    }
