"""Both at once: with a GPU, launches on its tensors go to Triton's own compiler, those on the CPU to the interpreter.

No GPU is needed: PyTorch is told that there is one, and what Triton would do with it is written down instead of done.
Whether a GPU then computes the right thing is for the tests that need one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")

from labkit.interpreter import beside

ROOT = Path(__file__).resolve().parents[2]

PRETEND = """
import os, warnings
os.environ.pop("TRITON_INTERPRET", None)
import torch
torch.cuda.is_available = lambda: True
import triton, triton.language as tl
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from torch._subclasses.fake_tensor import FakeTensorMode

compiled = []
JITFunction.run = lambda self, *args, grid, warmup, **kwargs: compiled.append(self.fn.__name__)
def _bench(self, *args, config, **kwargs):
    compiled.append(f"timed {config.kwargs['BLOCK_SIZE']}")
    return [-config.kwargs["BLOCK_SIZE"]]
Autotuner._bench = _bench
Autotuner.check_disk_cache = lambda self, key, configs, bench: bench()

@triton.jit
def half(x):
    return x / 2

@triton.jit
def halve(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, half(tl.load(x_ptr + offs, mask=offs < n)), mask=offs < n)

tuned = triton.autotune([triton.Config({"BLOCK_SIZE": size}) for size in (16, 32)], key=["n"])(halve)

def launch(kernel, x, **options):
    out = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)](x, out, x.numel(), **options)
    return out

from labkit import guard_launches, interpreter, track_traffic
assert interpreter.enable() is False and not interpreter.enabled() and not guard_launches()
# The canary sees the pretence.
warnings.simplefilter("ignore", RuntimeWarning)
assert interpreter.enable(beside_gpu=True) and interpreter.enable() and interpreter.enabled_beside_gpu()
assert guard_launches()

here = torch.arange(40.0)
with FakeTensorMode():
    there = torch.empty(40, device="cuda")
assert there.is_cuda
"""

BOTH = """
assert torch.equal(launch(halve, here, BLOCK_SIZE=16), here / 2) and compiled == []
launch(halve, there, BLOCK_SIZE=16)
assert compiled.pop() == "halve" and not compiled
# What was taken on the CPU, without a time, is not taken for the GPU; and the other way round.
assert torch.equal(launch(tuned, here), here / 2) and tuned.best_config.kwargs["BLOCK_SIZE"] == 16
launch(tuned, there)
assert compiled == ["timed 16", "timed 32", "halve"] and tuned.best_config.kwargs["BLOCK_SIZE"] == 32, compiled
launch(tuned, here)
assert tuned.best_config.kwargs["BLOCK_SIZE"] == 16
with track_traffic() as traffic:
    launch(halve, here, BLOCK_SIZE=16)
    try:
        launch(halve, there, BLOCK_SIZE=16)
    except RuntimeError as error:
        print(error)
assert [(one.load_bytes, one.store_bytes) for one in traffic.launches] == [(160, 160)]
launch(halve, there, BLOCK_SIZE=16)
assert compiled[3:] == ["halve"]
"""

CHECKS = """
from tests.exercises.harness import public_verdict, solution_of
for exercise_id in ("12-add", "12-rmsnorm", "13-matmul", "13-cross-entropy"):
    verdict = public_verdict(exercise_id, solution_of(exercise_id))
    assert verdict.score == 1, (exercise_id, verdict)
    assert not compiled, (exercise_id, compiled)
print("all right")
"""


def run(tmp_path: Path, source: str) -> subprocess.CompletedProcess:
    """In a process of its own, which is told lies about its GPU."""
    script = tmp_path / "script.py"
    script.write_text(source)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=280, env=env)


@pytest.mark.slow
def test_launches_go_where_their_tensors_are(tmp_path: Path) -> None:
    done = run(tmp_path, PRETEND + BOTH)
    assert done.stderr == ""
    assert done.stdout == ("the traffic of kernel halve cannot be counted on a GPU: give it tensors on the CPU\n")


@pytest.mark.full("kernels")
def test_checks_work_where_there_is_a_gpu(tmp_path: Path) -> None:
    done = run(tmp_path, PRETEND + CHECKS)
    assert done.stdout == "all right\n", done.stderr


def test_what_counts_as_an_argument_on_a_gpu() -> None:
    class There(torch.Tensor):
        is_cuda = True

    class Descriptor:
        def __init__(self, base: object) -> None:
            self.base = base

    there = torch.ones(2).as_subclass(There)
    assert all(map(beside.on_gpu, ([1, there], [(2, (there,))], [Descriptor(there)])))
    assert not any(map(beside.on_gpu, ([], [1, None, torch.ones(2)], [Descriptor(torch.ones(2)), ("x", 3.0)])))
