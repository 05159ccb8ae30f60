"""What surrounds a kernel: autotuning, variables that it captures, and the names that a launch changes."""

import inspect
import linecache

import torch
import triton
import triton.language as tl

from tests.interpreter.checks.blocks import dot, reduce_kernel
from tests.interpreter.checks.common import check


@triton.autotune([triton.Config({"BLOCK_SIZE": size}) for size in (64, 16)], key=["n"], reset_to_zero=["out_ptr"])
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.atomic_add(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@check
def autotuning_takes_the_first_configuration():
    x, out = torch.arange(100.0), torch.zeros(100)
    tuned_kernel[lambda meta: (triton.cdiv(100, meta["BLOCK_SIZE"]),)](x, out, 100)
    assert torch.equal(out, x)
    assert tuned_kernel.best_config.kwargs == {"BLOCK_SIZE": 64}


@triton.jit
def add_one_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)


@check
def autotuning_in_place_leaves_its_trials_behind_unless_they_are_restored():
    for restored, expected in (([], 3.0), (["x_ptr"], 1.0)):
        sizes = [triton.Config({"BLOCK_SIZE": size}) for size in (64, 16)]
        tuned = triton.autotune(sizes, key=["n"], restore_value=restored)(add_one_kernel)
        x = torch.zeros(100)
        tuned[lambda meta: (triton.cdiv(100, meta["BLOCK_SIZE"]),)](x, 100)
        assert torch.equal(x, torch.full((100,), expected)), (restored, x[0])
        # Tuned by now.
        tuned[lambda meta: (triton.cdiv(100, meta["BLOCK_SIZE"]),)](x, 100)
        assert torch.equal(x, torch.full((100,), expected + 1))


@check
def kernels_may_capture_variables():
    factor = tl.constexpr(3)

    @triton.jit
    def scaled(x, by: tl.constexpr):
        return x * by

    @triton.jit
    def kernel(x_ptr, n: tl.constexpr, twice: tl.constexpr = 2):
        offs = tl.arange(0, n)
        tl.store(x_ptr + offs, scaled(tl.load(x_ptr + offs), factor) * twice)

    x = torch.arange(8.0)
    kernel[(1,)](x, 8)
    assert torch.equal(x, 6 * torch.arange(8.0))


@check
def no_names_are_left_behind():
    source = "import triton\nimport triton.language as tl\n" + inspect.getsource(reduce_kernel.fn)
    names = {"__name__": "notebook"}
    file = f"<{id(names)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    before = set(names)
    out = torch.zeros(1)
    args = (torch.ones(16), out, out.clone(), torch.zeros(1, dtype=torch.int32), torch.zeros(16), 16)
    names["reduce_kernel"][(1,)](*args)
    assert out.item() == 16
    assert set(names) - before <= {"interpreter_semantic", "_InterpreterComparison"}


@check
def the_language_is_exchanged_once_a_launch():
    from triton.runtime import interpreter

    x = torch.zeros(8, 128)
    calls = []
    plain = interpreter._patch_builtin
    interpreter._patch_builtin = lambda *args: (calls.append(1), plain(*args))[1]
    try:
        out = torch.zeros(8)
        reduce_kernel[(8,)](x, out, out.clone(), torch.zeros(8, dtype=torch.int32), torch.zeros_like(x), 128)
    finally:
        interpreter._patch_builtin = plain
    assert len(calls) <= 7, f"the language was looked up {len(calls)} times in one launch"


@check
def the_language_is_given_back():
    before = {name: getattr(tl, name) for name in dir(tl)}
    dot(torch.eye(16), torch.eye(16))
    assert {name: getattr(tl, name) for name in dir(tl)} == before
