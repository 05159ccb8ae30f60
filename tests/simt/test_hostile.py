"""Sources and launches that mean harm, or just go wrong: each ends in a clear error, within limits."""

from __future__ import annotations

import pytest
import torch

from labkit.simt import CudaCompileError, PtxSyntaxError, SourceRefused, Unsupported, compile_cuda, compiler_process
from labkit.simt.compiler_process import CompilerStopped, compile_apart
from labkit.simt.sources import check_source
from tests.simt.harness import compiled, faults, require_nvrtc

EMPTY = "__global__ void k(int* y) {}\n"


@pytest.mark.parametrize(
    "text",
    [
        '#include "/etc/hostname"',
        "#include </etc/hostname>",
        "# include <stdio.h>",
        '#/* */include "x.h"',
        '#/*\n*/ include "x.h"',
        '#inc\\\nlude "x.h"',
        '%:include "x.h"',
        '??=include "x.h"',
        "#define F <cuda_fp16.h>\n#include F",
        '#include_next "x.h"',
        '#embed "/etc/hostname"',
        '#line 1 "other.cu"',
        '# 7 "other.cu"',
        "#include <../include/cuda.h>",
        'const char* s = R"(/*)";\n#include "/etc/hostname"\n/**/',
    ],
)
def test_includes_of_host_files_are_refused(text: str) -> None:
    with pytest.raises(SourceRefused):
        check_source(EMPTY + text)


def test_what_is_refused_is_named_with_its_line() -> None:
    with pytest.raises(SourceRefused, match=r"line 2: #include \"secret.h\" is not allowed; these headers are: "):
        check_source(EMPTY + '#include "secret.h"\n')
    check_source("#include <cuda_fp16.h> // halves\n#if 1\n#endif\n" + EMPTY)


def test_a_source_that_is_too_large() -> None:
    with pytest.raises(SourceRefused, match=r"at most 200,000 are compiled"):
        check_source("// " + "x" * 200_000)


def test_errors_show_the_line_and_a_caret() -> None:
    require_nvrtc()
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda("__global__ void k(float* x) {\n\tfloat y = 1;\n  x[0] = z;\n  x[1] = y\n}\n")
    shown = str(caught.value).splitlines()
    assert shown[:3] == ['line 3: error: identifier "z" is undefined', "      x[0] = z;", "             ^"]
    assert [one.line for one in caught.value.diagnostics] == [3, 4]


def test_templates_without_an_end() -> None:
    require_nvrtc()
    with pytest.raises(CudaCompileError, match="recursion"):
        compile_cuda(
            "template <int N> struct A { static const int v = A<N - 1>::v; };\n"
            "__global__ void k(int* y) { *y = A<9>::v; }"
        )


ALWAYS_DOUBLES = """
template <int N, int M> struct A { static const int v = A<N - 1, 2 * M>::v + A<N - 1, 2 * M + 1>::v; };
template <int M> struct A<0, M> { static const int v = 1; };
__global__ void k(int* y) { *y = A<22, 0>::v; }
"""
ALWAYS_UNROLLED = """
__global__ void k(float* y) {
#pragma unroll
  for (int i = 0; i < 100000; i++)
#pragma unroll
    for (int j = 0; j < 1000; j++) y[i * j] += sinf(y[i + j]);
}
"""
FLAGS = ("--gpu-architecture=compute_80",)


@pytest.fixture(params=["fork", "interpreter"])
def each_way(request, monkeypatch) -> None:
    """The compiler in a fork, and in an interpreter of its own."""
    require_nvrtc()
    monkeypatch.setattr(compiler_process, "_can_fork", lambda: request.param == "fork")


@pytest.mark.usefixtures("each_way")
def test_the_compiler_has_a_process_of_its_own() -> None:
    found = compile_apart(EMPTY, "kernel.cu", FLAGS)
    assert b".entry" in found.code and found.log == ""
    assert compile_apart("__global__ void k() { x; }", "kernel.cu", FLAGS).code is None


@pytest.mark.usefixtures("each_way")
def test_a_source_that_takes_too_much_memory() -> None:
    with pytest.raises(CompilerStopped, match="compiling this source takes more than 64 MiB of memory"):
        compile_apart(ALWAYS_DOUBLES, "kernel.cu", FLAGS, limit_bytes=1 << 26)


@pytest.mark.usefixtures("each_way")
def test_a_source_that_takes_too_much_time_of_the_processor() -> None:
    with pytest.raises(CompilerStopped, match=r"the compiler was stopped after 0\.1 s of CPU time"):
        compile_apart(ALWAYS_UNROLLED, "kernel.cu", FLAGS, cpu_limit_s=0.1)


@pytest.mark.usefixtures("each_way")
def test_a_source_that_takes_too_long() -> None:
    with pytest.raises(CompilerStopped, match=r"the compiler was stopped after 0\.5 s"):
        compile_apart(ALWAYS_UNROLLED, "kernel.cu", FLAGS, limit_s=0.5)


def test_a_compiler_that_was_stopped_is_an_error_of_the_source(monkeypatch) -> None:
    from labkit.simt import compiling

    def stopped(*_: object, **__: object) -> None:
        raise CompilerStopped("the compiler was stopped after 30 s")

    monkeypatch.setattr(compiling, "compile_apart", stopped)
    with pytest.raises(CudaCompileError, match=r"^error: the compiler was stopped after 30 s$"):
        compile_cuda(EMPTY + "// never compiled")


def test_a_source_that_becomes_far_too_large(monkeypatch) -> None:
    from labkit.simt import compiling

    require_nvrtc()
    with pytest.raises(Unsupported, match="at most 268,435,456 are executed"):
        compile_cuda("__device__ char big[1 << 30]; __global__ void k(char* y) { *y = big[*y]; }")
    monkeypatch.setattr(compiling, "MAX_PTX_BYTES", 10_000)
    loop = "for (int i = 0; i < 500; i++) y[i * i] /= 3.f"
    with pytest.raises(CudaCompileError, match="at most 10,000 are executed: is a long loop unrolled"):
        compile_cuda(f"__global__ void k(float* y) {{\n#pragma unroll\n{loop};\n}}")


def test_one_source_is_compiled_once(monkeypatch) -> None:
    """And its variables begin anew with each compile_cuda."""
    from labkit.simt import compiling

    require_nvrtc()
    source = "__device__ int calls; __global__ void once(int* y) { *y = ++calls; }"
    y = torch.zeros(1, dtype=torch.int32)
    compile_cuda(source)["once"].launch(1, 1, y)
    monkeypatch.setattr(compiling, "compile_apart", None)
    compile_cuda(source)["once"].launch(1, 1, y)
    assert y == 1


def test_inline_assembly_that_makes_no_sense() -> None:
    require_nvrtc()
    with pytest.raises(Unsupported, match=r"line 2: the instruction frobnicate\.u32 is not executed"):
        compile_cuda('__global__ void k(int* y) {\n  asm volatile("frobnicate.u32 %0;" :: "r"(*y));\n}')
    with pytest.raises(PtxSyntaxError, match="cannot be read"):
        compile_cuda('__global__ void k() { asm volatile("` ~ `"); }')
    with pytest.raises(Unsupported, match=r"st\.global\.f32 is not executed"):
        compile_cuda('__global__ void k() { asm volatile("st.global.f32;"); }')
    with pytest.raises(PtxSyntaxError, match="registers"):
        compile_cuda('__global__ void k() { asm volatile(".reg .b32 r<1000000>;"); }')


def test_inline_assembly_that_leads_nowhere() -> None:
    """It is refused before anything runs, except a parameter's size, which is known when it is read."""
    require_nvrtc()
    for statement, message in {
        "bra NOWHERE;": "line 1: bra jumps to NOWHERE, which is no label of the kernel",
        "vote.sync.most.b32 _, 1, 1;": r"vote\.sync\.most\.b32 is not executed",
    }.items():
        with pytest.raises((PtxSyntaxError, Unsupported), match=message):
            compile_cuda(f'__global__ void k() {{ asm volatile("{statement}"); }}')
    past = compile_cuda(
        '__global__ void k(int n) { asm volatile("{.reg .u32 t; ld.param.u32 t, [_Z1ki_param_0+64];}"); }'
    )
    with pytest.raises(Unsupported, match="it reads past the end of a parameter"):
        past["k"].launch(1, 1, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("surf", "is not executed"),
        ("pointer", "is not executed"),
        ("texture", r"the instruction tex\.2d\.v4\.f32\.f32 is not executed"),
    ],
)
def test_what_is_not_known_is_refused_by_name_and_line(call: str, message: str) -> None:
    require_nvrtc()
    sources = {
        "texture": "__global__ void k(cudaTextureObject_t t, float* y) {\n  *y = tex2D<float>(t, 0, 0);\n}",
        "surf": '__global__ void k(int* y) {\n  asm volatile("cp.async.bulk.commit_group;");\n}',
        "pointer": "__device__ __noinline__ int f(int x) { return x + 1; }\n"
        "__device__ __noinline__ int g(int x) { return x * 2; }\n"
        "__global__ void k(int* y) {\n  int (*h)(int) = y[0] ? f : g;\n  y[1] = h(3);\n}",
    }
    with pytest.raises(Unsupported, match=rf"line \d+: .*{message}"):
        compile_cuda(sources[call])


def test_launches_of_impossible_shapes() -> None:
    kernel = compiled(EMPTY)["k"]
    y = torch.zeros(1, dtype=torch.int32)
    for grid, block, message in [
        (0, 32, r"grid = 0 is not between \(1, 1, 1\)"),
        (1, 1025, "not between"),
        (1, (32, 64), "has 2,048 threads; at most 1,024 are allowed"),
        (2**31 - 1, 1024, "at most 67,108,864 are executed here"),
        ((1, 2, 3, 4), 1, "must have one, two or three numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            kernel.launch(grid, block, y)
    with pytest.raises(ValueError, match="a block has at most 166,912"):
        kernel.launch(1, 1, y, shared_bytes=1 << 30)


def test_arguments_that_do_not_fit() -> None:
    source = "__global__ void k(const float* x, int n, float a) {}"
    kernel = compiled(source)["k"]
    x = torch.zeros(4)
    for arguments, error, message in [
        ((x,), TypeError, "takes 3 arguments, 1 were given"),
        ((x.double(), 1, 1.0), TypeError, "x points to float in the kernel, but the tensor is torch.float64"),
        ((x, x, 1.0), TypeError, "n is no pointer in the kernel"),
        ((3, 1, 1.0), TypeError, "x is a pointer in the kernel, but the number 3 was given"),
        ((x, 1.5, 1.0), TypeError, "n is an integer in the kernel, but 1.5 was given"),
        ((x, 2**40, 1.0), ValueError, "n = 1099511627776 does not fit into 32 bits"),
        ((x, "4", 1.0), TypeError, "n must be a tensor or a number, not str"),
    ]:
        with pytest.raises(error, match=message):
            kernel.launch(1, 1, *arguments)
    with pytest.raises(KeyError, match="no kernel 'missing' in this source; it has k"):
        compiled(source)["missing"]


def test_pointers_out_of_thin_air() -> None:
    source = "__global__ void k(int* y, long long at) { *(int*)at = *(int*)(at + 4096) + 1; }"
    y = torch.zeros(1, dtype=torch.int32)
    for at in (8, 1 << 40, y.data_ptr(), -(1 << 62), 2**63 - 5000, (1 << 56) + 4, (1 << 57) + 4, 1 << 60):
        kinds = {one.kind for one in faults(source, "k", 1, 1, y, at)}
        assert kinds <= {"out of bounds", "misaligned"} and kinds
    assert y == 0


def test_a_launch_that_is_too_much_work_is_told_from_a_loop_without_an_end() -> None:
    source = "__global__ void k(int* y, int n) { for (int i = 0; i < n; i++) if (y[0] < 0) y[0] = i; }"
    y = torch.zeros(1, dtype=torch.int32)
    (large,) = faults(source, "k", 4096, 1024, y, 16, max_work=1 << 27)
    assert large.kind == "too much work" and "more than 134,217,728 units of work" in large.text
    (endless,) = faults(source, "k", 1, 1024, y, 2**31 - 1, max_work=1 << 22)
    assert endless.kind == "never ends"


def test_a_stack_that_is_too_large() -> None:
    source = (
        "__global__ void k(int* y, int n) {\n"
        "  int big[60000]; for (int i = 0; i < n; i++) big[(i * 7) % 60000] = i; *y = big[n];\n}"
    )
    with pytest.raises(ValueError, match="k keeps 240,000 bytes of arrays for each of a block's 1,024 threads"):
        compiled(source)["k"].launch(1024, 1024, torch.zeros(1, dtype=torch.int32), 3)


@pytest.mark.parametrize(
    ("header", "instead"),
    [
        ("cooperative_groups.h", "it needs libcu"),
        ("cstdio", "printf needs no header"),
        ("cmath", "of mathematics"),
        ("mma.h", "by inline assembly"),
        ("iostream", "only kernels are compiled"),
    ],
)
def test_headers_that_courses_use_are_refused_with_what_to_do(header: str, instead: str) -> None:
    with pytest.raises(SourceRefused, match=rf"line 2: #include <{header}> is not allowed: .*{instead}"):
        compile_cuda(f"// a kernel\n#include <{header}>\n__global__ void k() {{}}")
