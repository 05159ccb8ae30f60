"""What the tests of launch logs share: the kernels they know, and a run beside what its log makes of other inputs."""

from __future__ import annotations

import json

import torch
import triton
import triton.language as tl

from labkit import interpreter
from labkit.meters import METERS
from labkit.meters.launch_log import LaunchLog, Rerunner, digest_of_function
from tests.kernels.add import add_kernel
from tests.kernels.attention import attention_kernel
from tests.kernels.faults import atomic_sum_kernel
from tests.kernels.matmul import matmul_kernel
from tests.kernels.softmax import softmax_kernel

interpreter.enable()


@triton.jit
def square(x):
    return x * x


@triton.jit
def kinds_kernel(tensors, out_ptr, n: tl.constexpr, DTYPE: tl.constexpr, FUNCTION: tl.constexpr, scale=2.0):
    offs = tl.arange(0, n)
    x = tl.load(tensors[0] + offs) + tl.load(tensors[1] + offs)
    tl.store(out_ptr + offs, (FUNCTION(x) * scale).to(DTYPE))


@triton.jit
def rows_kernel(x_desc, out_ptr, n: tl.constexpr):
    x = x_desc.load([1, 0])
    tl.store(out_ptr + tl.arange(0, n), tl.sum(x, axis=0))


KERNELS = {
    (one.fn.__name__, digest_of_function(one.fn)): one
    for kernels in ((add_kernel, softmax_kernel, matmul_kernel, attention_kernel), (atomic_sum_kernel, square))
    for one in (*kernels, kinds_kernel, rows_kernel)
}


def replayed(run, *shapes: tuple[int, ...]):
    """What `run` makes of fresh inputs, and what its log makes of them, which was recorded on others."""
    torch.manual_seed(0)
    first = {f"x{n}": torch.randn(*shape) for n, shape in enumerate(shapes)}
    other = {name: torch.randn_like(tensor) for name, tensor in first.items()}
    log = LaunchLog(first)
    measured: dict[str, float] = {}
    with METERS["traffic"](measured, None), log.recording():
        out = run(*first.values())
    plain = json.loads(json.dumps(log.as_tree({"out": out})))
    kept = {name: tensor.clone() for name, tensor in other.items()}
    played = Rerunner(KERNELS).rerun(plain, other)
    assert all(torch.equal(other[name], kept[name]) for name in kept), "it works on copies of the inputs"
    return run(*kept.values()), played, measured


def kinds(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(16, dtype=torch.bfloat16)
    kinds_kernel[(1,)]((x, y), out, 16, tl.bfloat16, square)
    return out
