"""Traces as torch.profiler exports them, from a model of a GPU.

The host launches one operation after the other, each stream of the device runs its own in order, streams run
beside each other. Names, categories and fields are those of PyTorch's profiler on an H100; the times are drawn at
random and say nothing about any GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TENSOR_CORE_MARKS = ("xmma_gemm_bf16", "xmma_gemm_f16", "s16816gemm", "s1688gemm", "tensorop", "nvjet", "flash_")
"""A kernel whose name has one of these in it computes on tensor cores. No such list is complete."""
COMPUTE, COPIES, REDUCTION = 7, 20, 24
"""Streams, by the numbers that the profiler gives them."""
MAIN_THREAD, AUTOGRAD_THREAD = 4100, 4177

_AT = "void at::native::"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel"
ATTENTION = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>, false, true>"
ATTENTION_BACK = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128>>"
NORM = f"{_AT}(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
GELU = "triton_poi_fused_gelu_0"
ADD = f"{_AT}vectorized_elementwise_kernel<4, {_AT.split()[-1]}CUDAFunctor_add<c10::BFloat16>>"
HEAD = "ampere_sgemm_128x64_tn"
ADAM = f"{_AT}(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BACK_GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nt"
TUNING = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4"


TWO_MARKS = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_nt_align8"
"""One kernel, though two marks are in its name."""
MARK_IN_ANOTHER_CASE = f"{_AT}(anonymous namespace)::TensorOp_reduce_kernel<float>"
"""No kernel on tensor cores: the mark is written "tensorop"."""


@dataclass(frozen=True)
class Op:
    """One operation of a step: what the device runs. us: its mean time; after: waits for all earlier of that stream."""

    name: str
    us: float
    stream: int = COMPUTE
    cat: str = "kernel"
    thread: int = MAIN_THREAD
    after: int | None = None


COPY_IN = Op("Memcpy HtoD (Pinned -> Device)", 60, COPIES, "gpu_memcpy")
"""Of the next batch."""


@dataclass(frozen=True)
class TracedOp:
    """One operation as it ran, times in microseconds. correlation ties the launch to what the device ran.

    step: counted from 0; after the last step one more.
    """

    op: Op
    step: int
    correlation: int
    launch_us: float
    launch_took_us: float
    start_us: float
    end_us: float


@dataclass(frozen=True)
class Recording:
    """work of the steps in the order of launches; steps: start and end of each on the host; after: in no step."""

    work: tuple[TracedOp, ...]
    steps: tuple[tuple[float, float], ...]
    after: tuple[TracedOp, ...]


def step_ops(n_layers: int, warm: bool, reduces: bool) -> list[Op]:
    """A training step of a small transformer. A step that is not warm yet also tries kernels out."""
    ops = [COPY_IN]
    if not warm:
        ops += [Op(TUNING, 90) for _ in range(3)]
    for _ in range(n_layers):
        ops += [Op(NORM, 6), Op(GEMM, 40), Op(ATTENTION, 30), Op(GEMM, 20), Op(ADD, 5), Op(GEMM, 50), Op(GELU, 8)]
    ops += [Op(HEAD, 70), Op("Memset (Device)", 2, cat="gpu_memset")]
    for _ in range(n_layers):
        back = [Op(BACK_GEMM, 80), Op(ATTENTION_BACK, 60), Op(BACK_GEMM, 40), Op(ADD, 5)]
        ops += [Op(one.name, one.us, thread=AUTOGRAD_THREAD) for one in back]
        if reduces:
            ops.append(Op(REDUCE, 70, REDUCTION, thread=AUTOGRAD_THREAD, after=COMPUTE))
    ops += [Op(ADAM, 9, after=REDUCTION) for _ in range(4)]
    return [*ops, Op("Memcpy DtoH (Device -> Pageable)", 2, cat="gpu_memcpy")]


def evaluation_ops() -> list[Op]:
    """What the program runs when its loop has ended. No name tells it from a step's work."""
    return [COPY_IN, Op(NORM, 6), Op(GEMM, 40), Op(HEAD, 70)]


def record(
    steps: Sequence[Sequence[Op]],
    jitter: Sequence[float],
    launch_us: float,
    waits: bool,
    kernel_scale: float = 1.0,
    after: Sequence[Op] = (),
) -> Recording:
    """Let the model run these steps, and `after` when they have ended.

    jitter: factors around 1, as many as operations; waits: a step ends with a wait. All times are multiples of 1/8 us,
    so that sums of them are exact.
    """
    host_us, free_us, work, bounds = 100.0, dict.fromkeys((COMPUTE, COPIES, REDUCTION), 0.0), [], []
    factors = iter(jitter)
    for number, ops in enumerate([*steps, after]):
        begin_us = host_us
        for op in ops:
            took_us = _rounded(launch_us * 0.6)
            ready_us = max(free_us[op.stream], free_us[op.after] if op.after else 0.0, host_us + took_us + 2.0)
            end_us = ready_us + _rounded(op.us * kernel_scale * next(factors))
            work.append(TracedOp(op, number, 1000 + len(work), host_us, took_us, ready_us, end_us))
            free_us[op.stream] = end_us
            host_us += _rounded(launch_us)
        if waits:
            host_us = max(host_us, free_us[COMPUTE]) + 4.0
        bounds.append((begin_us, host_us))
        host_us += 1.0
    in_steps = tuple(one for one in work if one.step < len(steps))
    return Recording(in_steps, tuple(bounds[:-1]), tuple(work[len(in_steps) :]))


def as_events(recording: Recording) -> list[dict[str, Any]]:
    """What the profiler would have written, in its own order: by category, not by time."""
    events = [{"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}}]
    for number, (start_us, end_us) in enumerate(recording.steps):
        name = f"ProfilerStep#{number}"
        events.append(_event("user_annotation", name, start_us, end_us, MAIN_THREAD))
        mine = [one for one in recording.work if one.step == number]
        on_device = min(one.start_us for one in mine), max(one.end_us for one in mine)
        events.append(_event("gpu_user_annotation", name, *on_device, COMPUTE))
    work = [*recording.work, *recording.after]
    for one in work:
        end_us = one.launch_us + one.launch_took_us
        # PyTorch's operator encloses the launch that it makes.
        events.append(_event("cpu_op", "aten::op", one.launch_us - 0.5, end_us + 0.25, one.op.thread))
        events.append(_event(*_launch(one.op), one.launch_us, end_us, one.op.thread, correlation=one.correlation))
    for one in work:
        about = {"device": 0, "stream": one.op.stream, "correlation": one.correlation}
        events.append(_event(one.op.cat, one.op.name, one.start_us, one.end_us, one.op.stream, **about))
        events.append({"ph": "f", "cat": "ac2g", "name": "ac2g", "id": one.correlation, "ts": one.start_us, "bp": "e"})
    last_us = max(recording.steps[-1][1], work[-1].launch_us + work[-1].launch_took_us + 1)
    # A wait has a number of its own, which no work of the device shares.
    waits = _event("cuda_runtime", "cudaDeviceSynchronize", last_us, last_us + 50, MAIN_THREAD, correlation=9)
    return [*events, waits, {"ph": "i", "name": "Record Window End", "ts": last_us + 60, "s": "g"}]


def after_all_others(name: str, begin_us: float, us: float) -> dict[str, Any]:
    """A kernel by itself, from begin_us on."""
    about = {"device": 0, "stream": COMPUTE, "correlation": 7}
    return _event("kernel", name, begin_us, begin_us + _rounded(us), COMPUTE, **about)


def _launch(op: Op) -> tuple[str, str]:
    """Category and name of the call that launches this."""
    if op.name.startswith("triton_"):
        return "cuda_driver", "cuLaunchKernel"
    calls = {"gpu_memcpy": "cudaMemcpyAsync", "gpu_memset": "cudaMemsetAsync"}
    return "cuda_runtime", calls.get(op.cat, "cudaLaunchKernel")


def _event(cat: str, name: str, start_us: float, end_us: float, tid: int, **args: object) -> dict[str, Any]:
    on_device = cat in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
    place = {"pid": 0 if on_device else MAIN_THREAD, "tid": tid}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": start_us, "dur": end_us - start_us, "args": dict(args)}


def _rounded(us: float) -> float:
    return max(1, round(8 * us)) / 8
