# %% [markdown]
# # Lab 09: Timing an asynchronous device
#
# You put a matrix product between two readings of the clock. The device can do at most 2 TFLOP/s. The measurement
# says 54. **What did the clock measure, and which of your earlier measurements were wrong in the same way?**
#
# A GPU works on its own. A call hands it the work and returns, long before the work is done. Reading a value, freeing
# memory or copying may stop the program at places where you see no wait. In this lab you will measure what a call
# really takes, with clocks and with events. You will run copies and kernels at the same time, find the lines at which
# a training loop waits without saying so, work out what PyTorch's memory allocator holds and what it costs to
# interfere with it, and read a profiler's trace.
#
# [[time]]
#
# You need to know PyTorch, and no earlier lab.
#
# With a GPU, the notebook's measurements run on it. Without one they run on a **simulated device**: it has the names
# of `torch.cuda`, computes real values, and moves a virtual clock by the rates of a machine that the notebook
# defines. So its times are exact and the same on every computer.

# %% nbgrader={"grade": false, "grade_id": "09-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import itertools
import json
import math
import os
import statistics
import tempfile
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit
import labkit.figures
from labkit import Predictions, check, has_gpu, measure_step, progress
from labkit.exercises.lab09.traces import TENSOR_CORE_MARKS
from labkit.material.lab09 import load_trace
from labkit.simdevice import (
    Machine,
    SimDevice,
    alloc_events_of_commands,
    alloc_events_of_profile,
    auto_device,
    probe_timing,
    run_traced,
)
from labkit.units import in_bytes

# Without this, PyTorch's tracer writes two lines to stderr whenever it is used.
os.environ["KINETO_LOG_LEVEL"] = "6"

guesses = Predictions("09")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# First the measurement. `cuda` is `torch.cuda` or the simulated device, and `now_s()` is the host's clock in
# seconds: `time.perf_counter`, or the virtual one.

# %%
SMALL = Machine(
    "a small device",
    flops_per_s=2e12,
    memory_bytes_per_s=1e11,
    cache_bytes=4 * 2**20,
    cache_bytes_per_s=4e11,
    first_call_s=20e-3,
    jitter=0.2,
)
n = 4096 if has_gpu() else 512
with auto_device(SMALL) as (cuda, device, now_s):
    a = torch.randn(n, n).to(device)
    a @ a  # not measured: why the first call is special comes below
    cuda.synchronize()
    before_s = now_s()
    a @ a
    seconds = now_s() - before_s
print(
    f"{1e6 * seconds:.1f} µs for {2 * n**3 / 1e9:.2f} GFLOP: {2 * n**3 / seconds / 1e12:.1f} TFLOP/s"
)

# %% [markdown]
# ## What a clock sees
#
# The clock is right, but it measured how long the host took to *launch* the product, some 5 microseconds. The product
# itself had hardly begun. Four things stand between such a reading and the time that a call takes:
#
# | the reading is | because | remedy |
# |---|---|---|
# | too short | the call returns before the work is done | wait for the device, or let the device take the times |
# | too long | the first call loads the kernel's code, and may compile or tune it | call it before, unmeasured |
# | too short | the previous call has left the data in the cache | overwrite the cache in between |
# | sometimes far too long | other programs, clock rates and the operating system interfere | repeat, and take the **median** |
#
# There are two ways to wait for the device. After `cuda.synchronize()` all work is done, but the host's clock then
# includes the launch and the wait. Or the device takes the time itself: an **event** is a mark in a stream, and
# `start.elapsed_time(end)` returns the milliseconds between two marks that the device has passed.

# %% [markdown]
# Should the cache be cold or warm? Ask what the kernel will meet in a training step. There, gigabytes of other data
# pass through the cache before a tensor is used again, so kernels are compared with a **cold** cache. The cache's size
# is `cuda.get_device_properties(device).L2_cache_size`, in bytes; overwriting a buffer of twice that size makes it
# cold.
#
# **Predict:** 49 of 50 calls take 10 µs, and the first takes 20 ms. What is the mean of the 50? (In the next cell, as
# in all cells of this kind, replace `None` with your answer and run the cell. A choice from `among` is written exactly
# as it stands there, in quotes.)

# %% nbgrader={"grade": false, "grade_id": "09-predict-mean", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("mean of 50 calls", None, unit="µs")

# %% [markdown]
# [[exercise 09-bench]]
#
# Write `bench(fn, cuda, device, now_s, n_repeats)`: the median time of one call of `fn()` in milliseconds, over
# `n_repeats` calls, each from a cold cache, without anything that happens only the first time. `fn` issues work to
# the device's current stream. Use events, or the clock `now_s`, and use `cuda`, not `torch.cuda`: the check has
# devices of its own, with slow first calls, a fast cache and jitter. In one case `n_repeats` is 1, and that single
# reading must be right. A result may be off by 3.5 % plus 10 µs, two launches, because a reading of the clock includes
# a launch.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Go through the four rows of the table. For each line that you write, ask where in time it stands: before the first
# mark, between the two, or after the second.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Call `fn` once. Make a buffer of twice the cache's size on the device. For each repeat: overwrite the buffer, record
# an event, call `fn`, record another. When everything is queued, synchronize once, and only then ask for the times.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `buffer = torch.empty(2 * size, dtype=torch.int8, device=device)`, and `buffer.zero_()` overwrites it. An event that can
# tell times is `cuda.Event(enable_timing=True)`. Collect the pairs in a list;
# `statistics.median(start.elapsed_time(end) for start, end in pairs)` is the answer.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "09-bench", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bench(
    fn: Callable[[], object],
    cuda,
    device: torch.device,
    now_s: Callable[[], float],
    n_repeats: int,
) -> float:
    """The median time of fn() in ms over n_repeats calls, each from a cold cache, without the first call."""
    ### BEGIN SOLUTION
    size = cuda.get_device_properties(device).L2_cache_size
    buffer = torch.empty(2 * size, dtype=torch.int8, device=device)
    fn()
    pairs = []
    for _ in range(n_repeats):
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        buffer.zero_()
        start.record()
        fn()
        end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-bench-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("09-bench", bench)

# %% [markdown]
# Now watch four methods on a slow simulated device: the function takes 0.4 ms when the cache is cold and 0.1 ms when
# it is warm, and a launch takes 30 µs, so that you can see it.


# %%
def clock_alone(fn, cuda, device, now_s) -> float:
    fn()
    cuda.synchronize()
    before_s = now_s()
    fn()
    return 1e3 * (now_s() - before_s)


def clock_and_sync(fn, cuda, device, now_s) -> float:
    before_s = now_s()
    fn()
    cuda.synchronize()
    return 1e3 * (now_s() - before_s)


def events_alone(fn, cuda, device, now_s) -> float:
    fn()
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    fn()
    end.record()
    cuda.synchronize()
    return start.elapsed_time(end)


def one_function(device: torch.device) -> Callable[[], object]:
    x = torch.ones(50_000).to(device)
    return lambda: x.neg_()


SLOW = Machine(
    "a slow device",
    memory_bytes_per_s=1e9,
    cache_bytes=2**18,
    cache_bytes_per_s=4e9,
    first_call_s=0.6e-3,
    launch_s=3e-5,
)
probes = {
    name: probe_timing(method, one_function, SLOW)
    for name, method in {
        "clock, not synchronized": clock_alone,
        "clock, synchronized, first call": clock_and_sync,
        "events, warm cache": events_alone,
        "your bench, 2 repeats": lambda *args: bench(*args, n_repeats=2),
    }.items()
}

calls_us = [20_000.0] + 49 * [10.0]
print(f"mean {statistics.mean(calls_us):.0f} µs, median {statistics.median(calls_us):.0f} µs")
guesses.settle("mean of 50 calls", statistics.mean(calls_us))

# %% tags=["figure"]
labkit.figures.timing_methods(probes, true_ms=0.4)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 410 µs: the one slow call makes the mean 41 times as long as the median, 10 µs.
#
# </details>
#
# Follow the shaded spans. The first method stops its clock when the call is launched. The second includes the time
# for loading the code. The third times the device correctly, but with a cache that the previous call has warmed. In
# yours, the flush comes before each repeat's start event, and the host is so far ahead that the launches are hidden.
#
# **In practice** use `triton.testing.do_bench(fn)`, which does what you wrote; its default is the mean, so ask for
# `return_mode="median"`. For the CPU there is `torch.utils.benchmark.Timer`. This course has `labkit.bench`, which
# uses events or the host's clock, whichever is right, and reports the spread: p20 is the time that a fifth of the
# calls did not exceed.

# %%
with auto_device(SMALL) as (cuda, device, now_s):
    a = torch.randn(n, n).to(device)
    by_labkit = labkit.bench(lambda: a @ a, cuda, n_repeats=50)
    by_yours_ms = bench(lambda: a @ a, cuda, device, now_s, n_repeats=50)
print(f"yours         {by_yours_ms:.4f} ms, {2 * n**3 / (1e-3 * by_yours_ms) / 1e12:.2f} TFLOP/s")
print(f"labkit.bench  {by_labkit}")

# %% [markdown]
# Here the rate alone would give 0.134 ms, plus 2 µs to start a kernel. The simulated device has jitter of up to 20 %:
# other work takes its share, as on a GPU that you do not have for yourself. Now the same on this computer's CPU.

# %% tags=["varies"]
import time

from torch.utils.benchmark import Timer

x = torch.randn(256, 256)
by_torch = Timer("x @ x", globals={"x": x}, num_threads=torch.get_num_threads()).timeit(30)
print(f"torch.utils.benchmark {1e3 * by_torch.median:.3g} ms (mean of 30 calls)")
print("labkit.bench         ", labkit.bench(lambda: x @ x, n_repeats=30, now_s=time.perf_counter))

# %% [markdown]
# ## Times of parts
#
# A step has parts: copies, kernels, communication, on several streams. If you timed each with `synchronize`, the host
# would stop at every part, the streams would no longer run side by side, and you would have measured another program.
# Events cost next to nothing. You can record them wherever work is issued, and read them when the step is over.
#
# An event belongs to the stream in which it was recorded. It happens when everything that was queued there before it
# is done, whatever other streams do.

# %% [markdown]
# A question before you write: two copies of 1 ms are queued on a side stream, and a kernel of 3 ms on the default
# stream. After its work, an event is recorded on each stream. After `side.synchronize()`, may you read the time of
# the kernel?
#
# [[exercise 09-events]]
#
# Write `time_jobs(jobs, cuda)`. `jobs` is a list of pairs: a function that issues work, and the stream on which it
# must run. Run them in the order of the list, each on its stream. Return for each the milliseconds from the moment its
# stream reaches it to its end, waits included. The host must not wait before the last job is issued, no stream may
# wait for another, and after the call the same stream is current as before.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A function does not know its stream. The stream that is current when you call it decides, and the same holds for
# `record`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Record two events for each job, one right before it and one right after it, both on its stream. After the loop, wait
# once for all streams, and then read.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Inside `with cuda.stream(stream):` come `start.record()`, `fn()` and `end.record()`. `cuda.synchronize()` waits for every
# stream. Then `[start.elapsed_time(end) for start, end in pairs]`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "09-events", "locked": false, "schema_version": 3, "solution": true, "task": false}
def time_jobs(jobs: Sequence[tuple[Callable[[], object], object]], cuda) -> list[float]:
    """The ms that each (function, stream) took on its stream; the host waits only after the last is issued."""
    ### BEGIN SOLUTION
    pairs = []
    for fn, stream in jobs:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        with cuda.stream(stream):
            start.record()
            fn()
            end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-events-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("09-events", time_jobs)

# %% [markdown]
# <details><summary>May you read it?</summary>
#
# No. The side stream is done after 2 ms, the kernel after 3. On a GPU `elapsed_time` then raises "device not ready".
#
# </details>
#
# Now a trap that no check can catch for you. We put the same kernel on two streams.

# %%
HALF_MS = Machine(memory_bytes_per_s=1e9, kernel_s=0.0)
job_times_ms = {}


def two_kernels(cuda, device):
    x, y = (torch.ones(62_500).to(device) for _ in range(2))

    def program():
        first, second = cuda.Stream(), cuda.Stream()
        jobs = [(lambda: x.neg_(), first), (lambda: y.neg_(), second)]
        job_times_ms["two streams"] = time_jobs(jobs, cuda)

    return program


kernels_on_two_streams = run_traced(two_kernels, HALF_MS, simulate=True)
total_ms = sum(job_times_ms["two streams"])
print("times of the two kernels:", ", ".join(f"{ms:.2f} ms" for ms in job_times_ms["two streams"]))
print(
    f"together {total_ms:.2f} ms, and the device was done after {1e3 * kernels_on_two_streams.duration_s:.2f} ms"
)

# %% tags=["figure"]
labkit.figures.gantt(kernels_on_two_streams.spans)

# %% [markdown]
# A kernel that fills the device runs alone, so the second waited for the first, and its pair of events included the
# wait. Times of streams that share an engine do not add up. To know what a kernel takes, time it alone; to know what
# a program takes, time from its first mark to its last.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Copy while you compute
#
# A batch has to be on the device before the device can compute with it. In one stream the two take turns: copy,
# compute, copy, compute. Yet they need different parts of the machine: a copy engine moves bytes over the link while
# the **multiprocessors**, the hundred or so processors of a GPU, compute. You say which work *may* run side by side
# with **streams**. A stream is a queue whose work runs in order; between two streams there is no order at all, unless
# you ask for one.
#
# You ask for an order with an **event**: `stream.record_event()` puts a mark after all work queued so far, and
# `other.wait_event(mark)` holds back everything that is queued on `other` from then on. Both return at once: the
# *device* waits, and the host continues to queue. A copy from the host also returns at once, but only with
# `non_blocking=True` **and** from **pinned** memory, which the operating system promises not to move.

# %% [markdown]
# Let a batch take $c$ seconds to copy and $k$ seconds to compute. For $n$ batches one stream needs $n \, (c + k)$.
# With two streams, all copies except the first can run beside the kernels of an earlier batch:
#
# $$t_\text{two} = c + (n - 1) \, \max(c, k) + k$$
#
# **Predict:** eight batches take 3 ms each to copy and 3 ms each to compute. What is the speed-up with two streams?
# And what is the largest speed-up that it can give, for any $n$, $c$ and $k$?

# %% nbgrader={"grade": false, "grade_id": "09-predict-speed-up", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("speed-up of 8 batches", None)
guesses.take("best speed-up", None)

# %% [markdown]
# [[exercise 09-overlap]]
#
# Write `double_buffered(cuda, compute, batches, buffers)`, which returns the list of `compute(x)`, one result for each
# batch. `cuda` is `torch.cuda` or the simulated device.
#
# - `batches` are tensors in ordinary host memory. `buffers` are two tensors of the device, as large as a batch. Copy
#   into these and nowhere else, so that the device never holds more than two batches. Nothing that was queued before
#   the call uses their memory (or the side stream would have to wait for that first).
# - `compute(x)` launches kernels on the current stream and returns a new tensor of the device.
# - The function queues everything and returns; **the host never waits** for the device (pinning is work of the host
#   and does not count as waiting). The caller may use the results on the stream that is current, without waiting for
#   anything.
# - Copies run beside kernels: at most 1.1 times $t_\text{two}$. No race: nothing is read before it has arrived, and
#   nothing is overwritten while something still reads it.
#
# Also write `overlap_speedup(n_batches, copy_s, kernels_s)`, the time of one stream divided by the time of two.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The host is far ahead of the device, so nothing has to be fetched early: a plain loop over the batches is enough.
# For each copy, ask what it must wait for, and then the same for each `compute`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The copy of batch i reuses the buffer of batch i − 2, so it waits for the kernels of batch i − 2 and for nothing
# else. The kernels of batch i wait for the copy of batch i. That makes two events for each batch.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `side = cuda.Stream()`, `here = cuda.current_stream()`, and a list `used`. For each batch: if `i >= 2`,
# `side.wait_event(used[i - 2])`; under `with cuda.stream(side)` copy from `batch.pin_memory()` into `buffers[i % 2]`
# with `copy_(..., non_blocking=True)`; then `here.wait_event(side.record_event())`, `compute`, and
# `used.append(here.record_event())`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "09-overlap", "locked": false, "schema_version": 3, "solution": true, "task": false}
def double_buffered(
    cuda, compute: Callable[[Tensor], Tensor], batches: Sequence[Tensor], buffers: Sequence[Tensor]
) -> list[Tensor]:
    """compute(x) for every batch of the host; copies into the two buffers run beside kernels, and the host never waits."""
    ### BEGIN SOLUTION
    side, here = cuda.Stream(), cuda.current_stream()
    used, out = [], []  # used[i]: an event behind the kernels of batch i
    for i, batch in enumerate(batches):
        buffer = buffers[i % 2]
        if i >= 2:
            side.wait_event(used[i - 2])
        with cuda.stream(side):
            buffer.copy_(batch.pin_memory(), non_blocking=True)
        here.wait_event(side.record_event())
        out.append(compute(buffer))
        used.append(here.record_event())
    return out
    ### END SOLUTION


def overlap_speedup(n_batches: int, copy_s: float, kernels_s: float) -> float:
    """Time of one stream over time of two, where a batch takes copy_s to copy and kernels_s to compute."""
    ### BEGIN SOLUTION
    one_s = n_batches * (copy_s + kernels_s)
    two_s = copy_s + (n_batches - 1) * max(copy_s, kernels_s) + kernels_s
    return one_s / two_s
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-overlap-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("09-overlap", double_buffered, overlap_speedup)

# %% [markdown]
# Here is your function next to the loop that everybody writes first. Without a GPU both run on a simulated device of
# 2 GFLOP/s, whose link is just fast enough that copying a batch takes as long as computing with it.


# %%
def in_one_stream(cuda, compute, batches, buffers):
    """The plain loop: copy, compute, copy, compute."""
    out = []
    for batch in batches:
        buffers[0].copy_(batch)
        out.append(compute(buffers[0]))
    return out


ROWS, WIDTH = (4096, 4096) if has_gpu() else (64, 64)
KERNELS_S = 2 * 64 * 64 * 64 / 2e9  # one batch on the simulated device


def feeder(ratio: float) -> Machine:
    """A device of 2 GFLOP/s on which copying a batch takes `ratio` times as long as its kernels."""
    return Machine(flops_per_s=2e9, to_device_bytes_per_s=4 * 64 * 64 / (ratio * KERNELS_S))


def feeding(loop: Callable, n_batches: int = 8):
    """A program for `run_traced`: the loop on n_batches."""

    def prepare(cuda, device):
        weight = torch.randn(WIDTH, WIDTH).to(device)
        batches = [torch.randn(ROWS, WIDTH).pin_memory() for _ in range(n_batches)]
        buffers = [torch.empty(ROWS, WIDTH, device=device) for _ in range(2)]
        return lambda: loop(cuda, lambda x: x @ weight, batches, buffers)

    return prepare


loops = {"one stream": in_one_stream, "yours": double_buffered}
fed = {name: run_traced(feeding(loop), feeder(1.0)) for name, loop in loops.items()}
for name, run in fed.items():
    print(f"{name:12}{run.duration_s * 1e3:6.2f} ms, {len(run.races)} races")

# %% tags=["figure"]
labkit.figures.gantt({name: run.spans for name, run in fed.items()})

# %% [markdown]
# In the lower chart a copy and a product run together all the time, except at the two ends. With as few as eight
# batches, these ends cost a noticeable part of the gain.
#
# What if the link is faster or slower? Move the slider. The violet area counts the batches that are in use, from the
# start of a batch's copy to the end of its kernel: the second buffer is what the overlap costs.

# %% tags=["figure"]
labkit.figures.gantt_player(
    lambda ratio: {
        name: run_traced(feeding(loop), feeder(ratio), simulate=True).spans
        for name, loop in loops.items()
    },
    "a copy takes, in times of its kernel",
    values=[("1/4", 1 / 4), ("1/2", 1 / 2), ("1", 1), ("2", 2), ("4", 4)],
    start=1 / 2,
    in_use=True,
)

# %% [markdown]
# Now the speed-up, for links from 16 times faster to 16 times slower than the kernels. The line is your formula.

# %%
ratios = (1 / 16, 1 / 4, 1, 4, 16)
measured = {}
for ratio in ratios:
    one, two = (
        run_traced(feeding(loop), feeder(ratio), simulate=True).duration_s
        for loop in loops.values()
    )
    measured[ratio] = one / two
predicted = {2 ** (e / 4): overlap_speedup(8, 2 ** (e / 4), 1.0) for e in range(-16, 17)}
guesses.settle("speed-up of 8 batches", overlap_speedup(8, 3e-3, 3e-3))
guesses.settle("best speed-up", overlap_speedup(10**6, 1.0, 1.0))
for ratio, gain in measured.items():
    print(
        f"copy {ratio:>6g} times the kernels: {gain:.2f}, predicted {overlap_speedup(8, ratio, 1.0):.2f}"
    )

# %% tags=["figure"]
labkit.figures.overlap_gain(predicted, measured)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 1.78 for the eight batches: $8 \cdot 6 / (3 + 7 \cdot 3 + 3) = 48/27$. The limit is 2, for $c = k$ and very many
# batches.
#
# </details>
#
# At the left the dots lie above the line, because the copies of the plain loop also make the *host* wait, so its
# launches are no longer hidden. The formula leaves launches out.
#
# **In five cases a second stream gains little or nothing:**
#
# 1. The copies are short (left in the figure): there is nothing to hide.
# 2. The link is the bottleneck (right in the figure): the kernels hide behind the copies, and it only helps to copy
#    less (bytes instead of floats, tokens instead of images, augmentation on the device).
# 3. There is a single batch: nothing is left to run beside it.
# 4. The *host* is late: where every kernel waits for its launch, all streams are empty most of the time. People try
#    more streams most often with many tiny kernels, where they help least. A CUDA graph or larger kernels do help
#    there. (Lab 11 does both: one launch for 40 kernels, and a chain of 15 kernels compiled into one.)
# 5. Both streams hold kernels that fill the device, so they share the same multiprocessors. The formula does not know
#    this case and the one before. Here are four products that do not need each other, on one stream and on two:


# %%
def two_products(n_streams: int):
    """A program for `run_traced`: four products that do not need each other, on n_streams."""

    def prepare(cuda, device):
        x, weight = (torch.randn(ROWS, WIDTH).to(device) for _ in range(2))
        streams = [cuda.Stream() for _ in range(n_streams)]

        def program():
            results = []
            for i in range(4):
                with cuda.stream(streams[i % n_streams]):
                    results.append(x @ weight)
            return results

        return program

    return prepare


for n_streams in (1, 2):
    run = run_traced(two_products(n_streams), feeder(1.0))
    print(f"{n_streams} stream{'s' * (n_streams > 1)}: {run.duration_s * 1e3:.2f} ms")

# %% [markdown]
# **In practice** `DataLoader(pin_memory=True)` pins batches in a thread of its own, because pinning takes the host
# longer than the copy (in your loop it is part of the host's work), and `batch.to(device, non_blocking=True)` does
# the rest. A second stream is worth it where copies take a tenth of a step or more. Prefetchers, offloading (lab 05)
# and `fully_shard` (lab 16) are built on it.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## The syncs nobody wrote
#
# `torch.cuda.synchronize()` is easy to find. Most waits are not: an `if` on a tensor, a `print`, a mask as an index,
# a copy from memory that is not pinned. Each needs a value, or a *size*, that only the device knows, so the host
# waits until the queue is empty. Then it launches the next kernel, and until that arrives the device has nothing to
# do. A step pays for it twice.
#
# This loop trains a linear classifier. Labels of −100 do not count. A step whose loss is not finite (a batch without
# any label gives 0/0) must leave the weight alone and is counted as skipped.


# %%
def train_with_waits(device, weight, batches, lr):
    """Mean loss and accuracy over the steps that count, and the number of skipped steps. Changes weight."""
    losses, n_right, n_labels, n_skipped = [], 0, 0, 0
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        logits = F.linear(x, weight)
        counts = y != -100
        loss = F.cross_entropy(logits[counts], y[counts])
        if not loss.isfinite():
            n_skipped += 1
            continue
        losses.append(loss.item())
        n_right += (logits.argmax(-1) == y)[counts].sum().item()
        n_labels += counts.sum().item()
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= lr * grad
    return sum(losses) / len(losses), n_right / n_labels, n_skipped


# %% [markdown]
# **Predict:** how many times does the host wait in one step? Go through the loop line by line and count.

# %% nbgrader={"grade": false, "grade_id": "09-predict-waits", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("waits of one step", None, exact=True)

# %% [markdown]
# [[exercise 09-hidden-syncs]]
#
# Write `train(device, weight, batches, lr)`. It returns the same three numbers and leaves the same weight behind.
# `weight` has shape (n_classes, width), is on the device, requires gradients and is changed in place. `batches` is a
# list of pairs (x, y) on the host, of shapes (n_rows, width) and (n_rows,), in memory that is not pinned.
#
# Inside the loop **the host waits 0 times**; the check counts the waits up to the last step's forward pass. After the
# loop you may fetch what you like. The mean loss is over the steps that are not skipped, and there is at least one;
# the accuracy is over their labels that are not −100. Numbers and weight may be off by a part in 10,000, because sums
# may be taken in another order.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A wait comes from asking for a value while the loop runs. Whatever only the report needs can be fetched at the end:
# keep it in tensors of the device, `torch.zeros((), device=device)`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The `if` becomes data: `finite = loss.isfinite()` stays on the device, and `torch.where(finite, grad, 0.0)` is the
# gradient or zero. (Multiplying by a factor would not do: NaN times 0 is NaN.) `cross_entropy` has `ignore_index`, so
# the host need not know how many labels count.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Copy with `.pin_memory().to(device, non_blocking=True)`. Under `torch.no_grad()`, with
# `counts = (y != -100) & finite`: `weight -= lr * torch.where(finite, grad, 0.0)`, and four sums,
# `loss_sum += torch.where(finite, loss, 0.0)`, `n_steps += finite`, `n_right += ((logits.argmax(-1) == y) & counts).sum()`
# and `n_labels += counts.sum()`. Fetch them after the loop with `.item()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "09-hidden-syncs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(
    device: torch.device, weight: Tensor, batches: Sequence[tuple[Tensor, Tensor]], lr: float
) -> tuple[float, float, int]:
    """Mean loss, accuracy and number of skipped steps, as train_with_waits; the host waits only after the loop."""
    ### BEGIN SOLUTION
    loss_sum, n_steps, n_right, n_labels = (torch.zeros((), device=device) for _ in range(4))
    for x, y in batches:
        x = x.pin_memory().to(device, non_blocking=True)
        y = y.pin_memory().to(device, non_blocking=True)
        logits = F.linear(x, weight)
        loss = F.cross_entropy(logits, y, ignore_index=-100)
        (grad,) = torch.autograd.grad(loss, weight)
        finite = loss.isfinite()
        counts = (y != -100) & finite
        with torch.no_grad():
            weight -= lr * torch.where(finite, grad, 0.0)
            loss_sum += torch.where(finite, loss, 0.0)
            n_steps += finite
            n_right += ((logits.argmax(-1) == y) & counts).sum()
            n_labels += counts.sum()
    n_counted = int(n_steps.item())
    return loss_sum.item() / n_counted, n_right.item() / n_labels.item(), len(batches) - n_counted
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-hidden-syncs-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("09-hidden-syncs", train)

# %% [markdown]
# Here are six steps of both loops on a simulated device whose memory is slow (8 GB/s), so that kernels of 256 rows
# take some ten microseconds. A launch takes the host 5 µs.


# %%
def training(loop: Callable, n_steps: int = 6):
    """A program for `run_traced`: n_steps of the loop, the fourth of them without a label."""

    def prepare(cuda, device):
        gen = torch.Generator().manual_seed(9)
        weight = torch.zeros(32, 64).to(device).requires_grad_()
        xs = [torch.randn(256, 64, generator=gen) for _ in range(n_steps)]
        ys = [torch.randint(0, 32, (256,), generator=gen) for _ in range(n_steps)]
        ys[3][:] = -100
        return lambda: loop(device, weight, list(zip(xs, ys, strict=True)), 0.5)

    return prepare


NARROW = Machine(memory_bytes_per_s=8e9)
waiting = {
    name: run_traced(training(loop), NARROW, simulate=True)
    for name, loop in (("with waits", train_with_waits), ("yours", train))
}
five = run_traced(training(train_with_waits, n_steps=5), NARROW, simulate=True)
of_six, of_five = (
    sum(span.kind == "host waits" for span in run.spans) for run in (waiting["with waits"], five)
)
guesses.settle("waits of one step", of_six - of_five)
for name, run in waiting.items():
    causes = Counter(span.name for span in run.spans if span.kind == "host waits")
    print(f"{name:11}", ", ".join(f"{n} x {cause}" for cause, n in causes.most_common()))

# %% tags=["figure"]
labkit.figures.host_waits({name: run.spans for name, run in waiting.items()})

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Nine: for two copies, for three indices by a mask, for the `if`, and for three `.item()` (`_local_scalar_dense` is
# PyTorch's own name for what `.item()`, `float()` and an `if` do).
#
# </details>
#
# In the upper chart a gap in the device's row follows every wait: the launches that should have been in the queue by
# then are missing. The step without labels ends at its `if`, and the last wait, `synchronize`, belongs to the
# measurement. Below, the device's row has no gaps, and the host waits only for what you fetch after the loop.
#
# A run of a week needs its loss before the loop ends. Fetch the running sums every 100 steps: one wait in 100 steps
# costs nothing that you could measure. Nine in every step cost a quarter of the time here, on a device that was busy
# most of the time; where kernels are shorter, they cost more.

# %% [markdown]
# **In practice** ask PyTorch: `torch.cuda.set_sync_debug_mode("warn")` warns at operations that make the host wait
# (its documentation says that it misses some). `GradScaler` finds infinities as you did, on the device, and fetches
# one flag per step. The `Trainer` of `transformers` keeps the running loss on the device and fetches it at each
# logging step. But with `logging_nan_inf_filter=True`, its default, it also asks in *every* step whether the loss is
# NaN, with an `if`. You know now what that costs, and when it matters: it is cheap where the host is not far ahead
# anyway.

# %%
if has_gpu():
    torch.cuda.set_sync_debug_mode("warn")
    weight = torch.zeros(32, 64, device="cuda", requires_grad=True)
    three_batches = [(torch.randn(256, 64), torch.randint(0, 32, (256,)))] * 3
    train(torch.device("cuda"), weight, three_batches, 0.5)
    torch.cuda.set_sync_debug_mode("default")

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Allocated and reserved
#
# A fine-tuning run with QLoRA (a base model in 4 bits, lab 08) prints, in a widely copied talk, a peak of **6.42 GB**
# and, with another function of the same library, **7.09 GB**. Both are right. The first is
# `torch.cuda.max_memory_allocated()` and the second `torch.cuda.max_memory_reserved()`. The 0.67 GB between them hold
# no tensor, but no other program can use them.
#
# Asking the driver for memory (`cudaMalloc`) takes long, and giving it back (`cudaFree`) stops the whole device: it
# returns only when all queued work is done. So PyTorch asks rarely, for large **segments**, cuts them into
# **blocks**, and keeps what is freed for the next request. **Allocated** is the sum of the blocks in use,
# **reserved** that of the segments. `nvidia-smi` shows reserved, plus the few hundred MB that CUDA takes for itself.
#
# These are the rules (after `c10/cuda/CUDACachingAllocator.cpp`, with its default settings):
#
# | | rule |
# |---|---|
# | rounding | every request is rounded up to a multiple of 512 bytes |
# | two pools | rounded requests up to 1 MiB are *small*, the others *large*; they never share a segment |
# | which block | of the free blocks of the pool that are large enough the smallest; of equals, the one in the oldest segment, and there the first (PyTorch takes the lowest address) |
# | no such block | a new segment, which is one free block (go on with splitting): 2 MiB for a small request; 20 MiB for a large one below 10 MiB; from 10 MiB on the request rounded up to a multiple of 2 MiB |
# | splitting | the request takes the front of the block; the rest becomes a free block of its own if it is at least 512 bytes (small pool) or more than 1 MiB (large pool); otherwise it stays part of the block, and counts as allocated |
# | freeing | the block becomes free and joins its free neighbours in the segment; the driver is not called |
# | `empty_cache` | every segment that is one free block goes back to the driver, with one `cudaFree` each |
#
# There is such a cache for each stream; here everything happens on one.

# %% [markdown]
# **Predict:** a program asks for 6 MiB three times, frees the first and the third, and asks for 9 MiB. How much is
# reserved now?

# %% nbgrader={"grade": false, "grade_id": "09-predict-reserved", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("reserved", None, unit="MiB")

# %% [markdown]
# To see the rules at work: three requests, of 6, 3 and 0.5 MiB; then the first is freed. The small request is in a
# segment of its own.

# %% tags=["figure"]
example = [("malloc", 0, 6 * 2**20), ("malloc", 1, 3 * 2**20), ("malloc", 2, 2**19), ("free", 0, 0)]
labkit.figures.segment_map(example)

# %% [markdown]
# [[exercise 09-allocator]]
#
# Write two functions.
#
# - `replay_trace(trace)` follows a list of events: `("malloc", ticket, n_bytes)`, `("free", ticket, 0)`, where the
#   ticket is that of an earlier malloc, and `("empty_cache", 0, 0)`. After its free a ticket may come again. Return a
#   list with one row for each event, four whole numbers that hold after it: allocated bytes, reserved bytes, calls of
#   `cudaMalloc` so far, calls of `cudaFree` so far. Every request is for at least one byte.
# - `slow_down(before, step, step_ms, malloc_ms, free_ms)` predicts what `empty_cache` at the end of every training
#   step costs. `before` is the trace of the set-up, and `step` that of one step, which frees everything that it
#   allocates. A step takes `step_ms`, plus `malloc_ms` or `free_ms` for each call of the driver. Return the time of
#   the third step with `empty_cache` at the end of each, divided by the time of the third step without.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Let a segment be a list of blocks in the order of their addresses, and let a block be a size and whether it is in
# use. Then the neighbours of a block are the next and the previous one in its list, and splitting is an insertion.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# malloc: collect the free blocks that fit from all segments of the pool, in order; `min` by size takes the first of
# equals. If there is none, make a segment of one free block. Then split, mark as used, and remember the block under
# its ticket. `allocated` grows by the size of the block *after* splitting, which may be more than was asked for. For
# the second function, the driver's calls in the third step are the difference of two rows.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Joining: for the block at position i of its segment, first take in the block at i + 1 if it is free, then let the one at
# i - 1 take in this one if it is free. `empty_cache` counts, and removes, the segments with `len(blocks) == 1` whose block
# is free. `rows = replay_trace([*before, *(step + [("empty_cache", 0, 0)]) * 3])`; the third step begins after row
# `-1 - len(step) - 1`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "09-allocator", "locked": false, "schema_version": 3, "solution": true, "task": false}
def replay_trace(trace: Sequence[tuple[str, int, int]]) -> list[tuple[int, int, int, int]]:
    """After each event: allocated bytes, reserved bytes, cudaMallocs and cudaFrees so far."""
    ### BEGIN SOLUTION
    segments: list[Segment] = []
    held: dict[int, tuple[Segment, Block]] = {}
    allocated = reserved = n_mallocs = n_frees = 0
    rows = []
    for kind, ticket, n_bytes in trace:
        if kind == "malloc":
            wanted = 512 * math.ceil(n_bytes / 512)
            found = best_fit(segments, wanted)
            if found is None:
                segment = Segment(wanted <= MiB, [Block(segment_bytes(wanted))])
                segments.append(segment)
                found = segment, segment.blocks[0]
                reserved += found[1].n_bytes
                n_mallocs += 1
            split(*found, wanted)
            held[ticket] = found
            found[1].used = True
            allocated += found[1].n_bytes
        elif kind == "free":
            segment, block = held.pop(ticket)
            block.used = False
            allocated -= block.n_bytes
            join(segment.blocks, segment.blocks.index(block))
        else:
            whole = [one for one in segments if len(one.blocks) == 1 and not one.blocks[0].used]
            reserved -= sum(one.blocks[0].n_bytes for one in whole)
            n_frees += len(whole)
            segments = [one for one in segments if one not in whole]
        rows.append((allocated, reserved, n_mallocs, n_frees))
    return rows


MiB = 2**20


@dataclass(eq=False)
class Block:
    n_bytes: int
    used: bool = False


@dataclass(eq=False)
class Segment:
    small: bool
    blocks: list[Block]


def segment_bytes(wanted: int) -> int:
    if wanted <= MiB:
        return 2 * MiB
    return 20 * MiB if wanted < 10 * MiB else 2 * MiB * math.ceil(wanted / (2 * MiB))


def best_fit(segments: list[Segment], wanted: int) -> tuple[Segment, Block] | None:
    fitting = [
        (segment, block)
        for segment in segments
        if segment.small == (wanted <= MiB)
        for block in segment.blocks
        if not block.used and block.n_bytes >= wanted
    ]
    return min(fitting, key=lambda pair: pair[1].n_bytes, default=None)


def split(segment: Segment, block: Block, wanted: int) -> None:
    rest = block.n_bytes - wanted
    if rest >= 512 if segment.small else rest > MiB:
        block.n_bytes = wanted
        segment.blocks.insert(segment.blocks.index(block) + 1, Block(rest))


def join(blocks: list[Block], at: int) -> None:
    for left in (at, at - 1):
        if 0 <= left < len(blocks) - 1 and not (blocks[left].used or blocks[left + 1].used):
            blocks[left].n_bytes += blocks.pop(left + 1).n_bytes
    ### END SOLUTION


def slow_down(
    before: Sequence[tuple[str, int, int]],
    step: Sequence[tuple[str, int, int]],
    step_ms: float,
    malloc_ms: float,
    free_ms: float,
) -> float:
    """The third step's time with empty_cache at the end of every step, over that without."""

    ### BEGIN SOLUTION
    def third_ms(one: list[tuple[str, int, int]]) -> float:
        rows = replay_trace([*before, *one * 3])
        first, last = rows[-1 - len(one)], rows[-1]
        return step_ms + malloc_ms * (last[2] - first[2]) + free_ms * (last[3] - first[3])

    return third_ms([*step, ("empty_cache", 0, 0)]) / third_ms(list(step))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-allocator-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("09-allocator", replay_trace, slow_down)

# %% [markdown]
# Here is your replay of the program of the prediction, with a picture of the segments (drawn by labkit, not by
# your replay):

# %%
three_and_nine = [("malloc", ticket, 6 * 2**20) for ticket in range(3)]
three_and_nine += [("free", 0, 0), ("free", 2, 0), ("malloc", 3, 9 * 2**20)]
allocated, reserved, n_mallocs, _ = replay_trace(three_and_nine)[-1]
print(f"{in_bytes(allocated)} allocated, {in_bytes(reserved)} reserved, {n_mallocs} segments")
guesses.settle("reserved", reserved / 2**20)

# %% tags=["figure"]
labkit.figures.segment_map(three_and_nine)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 40 MiB. Three times 6 MiB are in one segment of 20 MiB. After the two frees it has free pieces of 6 and 8 MiB, 14 in
# all, but 9 MiB fit into neither. So there is a second segment, 40 MiB are reserved, and 15 are in use.
#
# </details>
#
# This is **fragmentation**. Because of it, a run may die with gigabytes "reserved but unallocated" in the text of the
# error.

# %% [markdown]
# ### Where 0.67 GB go
#
# Now a real trace: the program behind those two figures, as far as the talk describes it; the rest are assumptions of
# ours. TinyLlama has 1.1 billion parameters, kept in 4 bits. LoRA of rank 16 is on queries and values. The program
# runs forward and backward on one text of 1200 tokens, without an optimizer. It switches checkpoints on, but
# `from_pretrained` returns a model in *evaluation* mode, and in that mode `transformers` does not use them. One line
# is missing: `model.train()`.
#
# `measure_step` runs the program of `transformers` on tensors without memory and notes when each storage comes and
# goes. The values in the 4-bit kernel do not matter here; it only has to unpack a weight in 16 bits for a moment,
# forward and backward.

# %% [markdown]
# **Predict:** without `model.train()` the peak of allocated memory is 2.9 GB, with a fused attention. Of these the
# weights take 0.76 GB, the logits and their gradients some 0.5 GB, and the rest are the insides of 22 layers. What is
# the peak with `model.train()`, if a checkpoint keeps only the input of each layer (1200 tokens of width 2048 in 16
# bits)?

# %% nbgrader={"grade": false, "grade_id": "09-predict-train", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("peak with train()", None, unit="GB")

# %%
from transformers import LlamaConfig, LlamaForCausalLM
from transformers import logging as transformers_logging

transformers_logging.set_verbosity_error()
RANK, WITH_LORA = 16, ("q_proj", "v_proj")
TINY_LLAMA = dict(
    vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
    num_attention_heads=32, num_key_value_heads=4, use_cache=False,
)  # fmt: skip


class Unpacked(torch.autograd.Function):
    """x @ W.T, where W is unpacked from 4 bits when it is needed, and not kept."""

    @staticmethod
    def forward(ctx, x: Tensor, n_out: int) -> Tensor:
        ctx.shape = n_out, x.shape[-1]
        return x @ x.new_empty(ctx.shape).T

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple:
        return grad @ grad.new_empty(ctx.shape), None


class QLoRALinear(nn.Module):
    def __init__(self, n_in: int, n_out: int, with_lora: bool) -> None:
        super().__init__()
        self.n_out, self.with_lora = n_out, with_lora
        self.register_buffer("packed", torch.empty(n_out * n_in // 2, dtype=torch.uint8))
        self.register_buffer("scales", torch.empty(n_out * n_in // 64, dtype=torch.uint8))
        if with_lora:
            self.a = nn.Parameter(torch.empty(RANK, n_in))
            self.b = nn.Parameter(torch.empty(n_out, RANK))

    def forward(self, x: Tensor) -> Tensor:
        out = Unpacked.apply(x, self.n_out)
        return out + x @ self.a.to(x.dtype).T @ self.b.to(x.dtype).T if self.with_lora else out


# %%
def tiny_llama(training: bool) -> LlamaForCausalLM:
    torch.set_default_dtype(torch.bfloat16)
    model = LlamaForCausalLM(LlamaConfig(**TINY_LLAMA)).train(training)
    torch.set_default_dtype(torch.float32)
    model.requires_grad_(False)
    for layer in model.model.layers:
        for block in (layer.self_attn, layer.mlp):
            for name, one in list(block.named_children()):
                if isinstance(one, nn.Linear):
                    new = QLoRALinear(one.in_features, one.out_features, name in WITH_LORA)
                    setattr(block, name, new)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    return model


def forward_backward(model, optimizer, batch) -> None:
    model(**batch).loss.backward()


tokens = torch.zeros(1, 1200, dtype=torch.int64)
texts = {"input_ids": tokens, "labels": tokens}
qlora_rows, qlora_traces = {}, {}
for name, training in (("as it is, in evaluation", False), ("after model.train()", True)):
    with warnings.catch_warnings(action="ignore"):
        profile = measure_step(
            partial(tiny_llama, training), texts, step=forward_backward, n_steps=1
        )
    qlora_traces[name] = alloc_events_of_profile(profile)
    qlora_rows[name] = replay_trace(qlora_traces[name])
    qlora_peak, qlora_reserved_peak = (max(row[at] for row in qlora_rows[name]) for at in (0, 1))
    print(
        f"{name:24} {qlora_peak / 1e9:.2f} GB allocated, {qlora_reserved_peak / 1e9:.2f} GB reserved:"
        f" a factor of {qlora_reserved_peak / qlora_peak:.2f}"
    )
guesses.settle("peak with train()", qlora_peak / 1e9)

# %% tags=["figure"]
steps_alone = {
    name: rows[
        sum(1 for _ in itertools.takewhile(lambda one: one[0] == "malloc", qlora_traces[name])) :
    ]
    for name, rows in qlora_rows.items()
}
labkit.figures.allocator_trace(steps_alone) if steps_alone else None

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 1.4 GB, less than half: $0.76 + 0.5$, and 22 inputs of 4.9 MB are 0.1. In evaluation mode every layer keeps its
# inside, 22 times.
#
# </details>
#
# In evaluation the memory climbs through all layers. After `train()` it stays nearly flat, because each layer's inside
# is freed and computed again, and what sets the peak is the loss with its logits, in the middle. Between the blue area
# (allocated) and the red line (reserved) lie two things: free pieces between blocks in use, which no larger request can
# take, and segments that are empty.
#
# The talk's 6.42 GB lie between two rebuilds in evaluation mode: 2.9 GB with a fused attention, as above, and 9.1 GB
# with an attention that is written out and keeps its scores. We do not know which kernels it ran. But its ratio, 7.09
# / 6.42 = 1.10, is not far from the factors that your replay has printed.
#
# Compare a plan for memory (lab 01) with *allocated*, and the size of a card with *reserved* plus what CUDA itself
# takes.

# %% [markdown]
# ### What `empty_cache` costs
#
# `empty_cache` frees nothing that the program uses, and PyTorch itself empties the cache before it reports that
# memory is out. Yet many training loops call it. Here is a step of eight tensors on a simulated device whose driver
# takes 0.4 ms for a `cudaMalloc` and 0.9 ms for a `cudaFree`, with and without it.

# %%
WITH_DRIVER = Machine(
    "a device with a driver",
    memory_bytes_per_s=4e9,
    caching_allocator=True,
    malloc_s=0.4e-3,
    free_s=0.9e-3,
    memory_bytes=2**30,
)


def run_steps(n_steps: int, emptied: bool) -> tuple[list[float], list, int]:
    """(ms of each step, requests, how many of these are the set-up)."""
    with SimDevice(WITH_DRIVER) as sim:
        x = torch.ones(3_000_000).to(sim.device)
        n_setup = len(alloc_events_of_commands(sim.commands))
        ends_ms = [1e3 * sim.now_s]
        for _ in range(n_steps):
            kept = [x[:size].neg() for size in range(500_000, 2_900_000, 300_000)]
            del kept
            if emptied:
                sim.empty_cache()
            sim.synchronize()
            ends_ms.append(1e3 * sim.now_s)
        requests = alloc_events_of_commands(sim.commands)
    return [end - start for start, end in itertools.pairwise(ends_ms)], requests, n_setup


plain_ms, requests, n_setup = run_steps(3, emptied=False)
emptied_ms, emptied_requests, _ = run_steps(3, emptied=True)
n_step = (len(requests) - n_setup) // 3
one_step = requests[n_setup : n_setup + n_step]
predicted = slow_down(requests[:n_setup], one_step, plain_ms[-1], 0.4, 0.9)
print("ms of each step, as it is:        ", ", ".join(f"{ms:.1f}" for ms in plain_ms))
print("ms of each step, with empty_cache:", ", ".join(f"{ms:.1f}" for ms in emptied_ms))
measured_slow_down = emptied_ms[-1] / plain_ms[-1]
print(f"slow-down: your prediction {predicted:.2f}, measured {measured_slow_down:.2f}")

# %% tags=["figure"]
labkit.figures.allocator_trace(
    {"as it is": replay_trace(requests), "with empty_cache": replay_trace(emptied_requests)}
)

# %% [markdown]
# Without `empty_cache` only the first step asks the driver. With it every step pays as the first one did, because it
# has given back memory that the next step asks for again. During `cudaFree` the device is idle, because the call
# waits for it and nothing is queued after it. The prediction is a little too high: a `cudaMalloc` holds up only the
# host, and only the first of a step finds the device without work.
#
# Call it when a *different* program needs the card: another process, or a phase that allocates tensors of very
# different sizes. If a run dies with much "reserved but unallocated", start it with
# `PYTORCH_ALLOC_CONF=expandable_segments:True`. Its segments can grow, so that pieces no longer stay unused between
# them.
#
# **In practice**, and on a GPU here, the same figures come from `torch.cuda.memory_stats()`, and
# `torch.cuda.memory._snapshot()` lists every segment with its blocks.

# %%
if has_gpu():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    figures = ("allocated_bytes.all.current", "reserved_bytes.all.current", "num_device_alloc")
    was = [torch.cuda.memory_stats().get(name, 0) for name in figures]
    blocks = [torch.empty(6 * 2**20, dtype=torch.uint8, device="cuda") for _ in range(3)]
    del blocks[2], blocks[0]
    blocks.append(torch.empty(9 * 2**20, dtype=torch.uint8, device="cuda"))
    now = [torch.cuda.memory_stats()[name] - before for name, before in zip(figures, was)]
    print("this GPU:", *now)
    print("yours:   ", *replay_trace(three_and_nine)[-1][:3])
    for segment in torch.cuda.memory._snapshot()["segments"]:
        sizes = [f"{in_bytes(one['size'])} {one['state']}" for one in segment["blocks"]]
        print(segment["segment_type"], in_bytes(segment["total_size"]), ":", ", ".join(sizes))
else:
    print("There is no GPU here, so there is no driver to compare with.")

# %% [markdown]
# ## What did the device do all the time?
#
# `nvidia-smi` says that the GPU is at 100 %, and the training is slow. That figure is the share of time in which
# *some* kernel ran, even if it used one multiprocessor of 132. Three questions are better: which kernels took the
# time, for how long did nothing run at all, and how much of the work was done on tensor cores, which are an order of
# magnitude faster than the rest of the chip? A profiler's trace answers all three, and it is a plain JSON file.

# %%
trace = load_trace()
print(textwrap.fill(trace.origin, 100))
for category, n in Counter(event.get("cat", "no category") for event in trace.events).most_common():
    print(f"{n:>5} {category}")

# %% [markdown]
# `torch.profiler` exports this *trace event format* of Chrome, which Perfetto (ui.perfetto.dev) opens too. An event
# with `"ph": "X"` has a start `ts` and a duration `dur`, both in microseconds:
#
# | category `cat` | what it is |
# |---|---|
# | `kernel`, `gpu_memcpy`, `gpu_memset` | work of the device. `args["stream"]` is its stream |
# | `cuda_runtime`, `cuda_driver` | calls of the host, launches among them. `ts` is when the host made the call |
# | `user_annotation` | labels of the host. `ProfilerStep#3` spans step 3 |
# | `gpu_user_annotation` | the same labels on the device's rows. No work |
# | `cpu_op`, `ac2g` and others | operators of PyTorch; arrows. Some have neither `cat` nor `dur` |
#
# Work of the device and the call that launched it have the same `args["correlation"]`. That number is the only safe
# way to say to which step a kernel belongs: the device runs *behind* the host, so in time it may lie in the next
# step. The backward pass is launched from one of autograd's threads, and Triton launches its kernels through the
# driver. So do not filter by thread, and count calls of `cuda_driver` as launches, too.

# %%
by_correlation = {
    event["args"]["correlation"]: event for event in trace.events if event.get("cat") == "kernel"
}
one_launch = next(
    event
    for event in trace.events
    if event.get("cat") == "cuda_runtime" and event["args"]["correlation"] in by_correlation
)
for event in (one_launch, by_correlation[one_launch["args"]["correlation"]]):
    print(
        f"{event['cat']:14}{event['name'][:40]:42}at {event['ts']:8.1f} µs for {event['dur']:6.1f} µs"
    )

# %% [markdown]
# The first steps of any run are not like the others: memory is allocated, libraries try out kernels, caches are cold.
# In this trace that holds for all steps before `trace.first_step`, and nothing of them belongs in your report. For
# the rest, with $W$ the time from the first start to the last end of any work,
#
# $$t_\text{idle} = W - \Big|\bigcup_i \, [\text{start}_i, \text{end}_i]\Big| \qquad
# s_\text{tensor} = \frac{\sum \text{time of kernels on tensor cores}}{\sum \text{time of all kernels}}$$
#
# The union counts a microsecond once, however many streams work in it. The name of a kernel says, more or less,
# whether it uses tensor cores: the first cell imports `TENSOR_CORE_MARKS`, pieces of names that say so.

# %%
print(TENSOR_CORE_MARKS)

# %% [markdown]
# **Predict:** the model that was trained here computes in bfloat16 (it runs under `autocast`), and its largest layers
# are matrix products, which is what tensor cores are for. A step takes 25 ms. For what part of the kernels' time do
# tensor cores compute?

# %% nbgrader={"grade": false, "grade_id": "09-predict-tensor-cores", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("time on tensor cores", None, among=("a twentieth", "a third", "nine tenths"))

# %% [markdown]
# [[exercise 09-profile]]
#
# Three tasks, one function each. Write them in this order and run the check after each: it judges what you have
# written, and says which task is wrong or still blank.
#
# 1. `gpu_work(events, first_step)`: those of the events that are work of the device and were launched in a step
#    `ProfilerStep#n` with n ≥ first_step, so between that step's start and its end. What the program launches outside
#    of all steps, such as an evaluation after the last one, does not count. Return the events as they are, in any order.
# 2. `gpu_report(work, marks)`: what is in such a list, which has at least one kernel, as a dict. `"kernels"` is a list
#    of rows (name, calls, total µs), tuples or lists, the longest total first, kernels alone. `"idle_us"` is the time
#    in which *nothing* ran, neither a kernel nor a copy. `"tensor_core_share"` is $s_\text{tensor}$, a number from 0 to
#    1: a kernel counts if one of `marks` is in its name, letter for letter (upper and lower case differ).
# 3. `profile_steps(step, n_unsteady, n_active)`: your own recording. Call `step()` as often as needed under
#    `torch.profiler.profile`, record the n_active calls after the first n_unsteady (n_unsteady is at least 2), and
#    return the profiler. Switching the profiler on takes time of its own, so it must be on for one step that it does
#    not record.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Collect first, choose afterwards: the bounds of the steps that count, then the correlations launched between them, then
# the work. For the idle time, sort by start. For the profiler, read the documentation of `torch.profiler.schedule`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Go through the work by start and remember the latest end so far. Where the next event starts after it, that gap is
# idle time. In a schedule, `wait` steps are off, `warmup` steps are on but thrown away, and `active` steps are kept;
# with `repeat=1` it does not start again.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# A step counts if its name starts with `"ProfilerStep#"`, its category is `user_annotation`, and
# `int(name.split("#")[1]) >= first_step`. Launches are of `cuda_runtime` or `cuda_driver`; use `event.get("cat")`, since
# some events have none. `schedule(wait=n_unsteady - 1, warmup=1, active=n_active, repeat=1)`, and in the `with` block
# n_unsteady + n_active times `step()` followed by `prof.step()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "09-profile", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gpu_work(events: list[dict], first_step: int) -> list[dict]:
    """Task 1: the events of the device that were launched within a step n >= first_step."""
    ### BEGIN SOLUTION
    bounds = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event.get("cat") == "user_annotation"
        and event["name"].startswith("ProfilerStep#")
        and int(event["name"].split("#")[1]) >= first_step
    ]
    launched = {
        event["args"]["correlation"]
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
        and any(start <= event["ts"] < end for start, end in bounds)
    }
    on_device = ("kernel", "gpu_memcpy", "gpu_memset")
    work = [event for event in events if event.get("cat") in on_device]
    return [event for event in work if event["args"]["correlation"] in launched]
    ### END SOLUTION


def gpu_report(work: list[dict], marks: Sequence[str]) -> dict:
    """Task 2: {"kernels": rows (name, calls, total µs), "idle_us": ..., "tensor_core_share": ...} of this work."""
    ### BEGIN SOLUTION
    rows = {}
    for event in work:
        if event["cat"] == "kernel":
            _, n_calls, total_us = rows.get(event["name"], (event["name"], 0, 0.0))
            rows[event["name"]] = (event["name"], n_calls + 1, total_us + event["dur"])
    idle_us, busy_until_us = 0.0, min(event["ts"] for event in work)
    for event in sorted(work, key=lambda event: event["ts"]):
        idle_us += max(0.0, event["ts"] - busy_until_us)
        busy_until_us = max(busy_until_us, event["ts"] + event["dur"])
    on_tensor_cores = [row for row in rows.values() if any(mark in row[0] for mark in marks)]
    return {
        "kernels": sorted(rows.values(), key=lambda row: -row[2]),
        "idle_us": idle_us,
        "tensor_core_share": sum(row[2] for row in on_tensor_cores)
        / sum(row[2] for row in rows.values()),
    }
    ### END SOLUTION


def profile_steps(
    step: Callable[[], None], n_unsteady: int, n_active: int
) -> torch.profiler.profile:
    """Task 3: the finished profiler, which has recorded n_active calls of step after the first n_unsteady."""
    ### BEGIN SOLUTION
    schedule = torch.profiler.schedule(wait=n_unsteady - 1, warmup=1, active=n_active, repeat=1)
    with torch.profiler.profile(schedule=schedule) as profiler:
        for _ in range(n_unsteady + n_active):
            step()
            profiler.step()
    return profiler
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-profile-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("09-profile", gpu_work, gpu_report, profile_steps)

# %% [markdown]
# The figure shows what your `gpu_work` found in the trace above, with a row for each stream. Stream 7 is CUDA's
# default stream and computes; stream 13 copies the next batch to the device. The batch is so small that its copy takes
# 4 µs.

# %% tags=["figure"]
work = gpu_work(trace.events, trace.first_step)
labkit.figures.device_timeline(work, "steps that count")

# %%
report = gpu_report(work, TENSOR_CORE_MARKS)
window_us = max(e["ts"] + e["dur"] for e in work) - min(e["ts"] for e in work)
summed_us = sum(e["dur"] for e in work)
print(f"{window_us:,.0f} µs in all, work of {summed_us:,.0f} µs added up over the streams")
print(f"idle {report['idle_us']:,.0f} µs, {report['idle_us'] / window_us:.0%} of the time")
print(f"tensor cores: {report['tensor_core_share']:.0%} of the kernels' time")
parts = {"a twentieth": 1 / 20, "a third": 1 / 3, "nine tenths": 9 / 10}
guesses.settle(
    "time on tensor cores",
    min(parts, key=lambda name: abs(report["tensor_core_share"] - parts[name])),
)

# %% tags=["figure"]
labkit.figures.kernel_bars(report, TENSOR_CORE_MARKS)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# A twentieth. The layers do compute on tensor cores, but so fast that it hardly counts. Three products in float32 take
# 75 % of the kernels' time, each once a step: the forward pass of the output head and its two gradients. Somebody has
# left the head out of autocast. By its datasheet an H200 multiplies bfloat16 15 times as fast as float32 (990 and 67
# TFLOP/s).
#
# </details>
#
# Read the figure from the bottom. The idle bar comes first, because while nothing runs, faster kernels do not help.
# Here the loop asks for `loss.item()` in every step, so the host begins to launch the next step only when the device
# has nothing left to do. Then come the grey bars: `gemm` with `f32` in its name, or `sgemm`, is a matrix product in
# float32 *without* tensor cores, and one of the easiest factors to gain. A kernel with `nccl` in its name, which this
# trace has none of, is communication, and costs time only where nothing runs beside it (lab 15). Many short elementwise
# kernels are a case for fusion, which is lab 12. Only then is it worth looking at the blue ones.
#
# What would the report say with the first steps in it?

# %%
everything = gpu_report(gpu_work(trace.events, 0), TENSOR_CORE_MARKS)
for name, one in (("steady steps", report), ("all steps", everything)):
    longest, n_calls, total_us = one["kernels"][0]
    share = f"tensor cores {one['tensor_core_share']:.0%}"
    print(f"{name:13}{share}, the longest row: {n_calls} x {longest[:40]}")

# %% [markdown]
# ### Your own profile
#
# Your schedule works on a CPU as well; there the table lists PyTorch's operators. Times differ from run to run, and
# on a busy machine they mean little; look at the *order* of the rows.

# %% tags=["varies"]
torch.manual_seed(0)
mlp = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256))
mlp = mlp.to(labkit.device())
x = torch.randn(256, 256, device=labkit.device())


def forward_and_backward() -> None:
    mlp.zero_grad()
    mlp(x).square().mean().backward()


own = profile_steps(forward_and_backward, n_unsteady=3, n_active=2)
averages = own.key_averages()
print(averages.table(sort_by="self_cpu_time_total", row_limit=6, max_name_column_width=32))

# %% tags=["varies"]
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "trace.json"
    own.export_chrome_trace(str(file))
    own_events = json.loads(file.read_text())["traceEvents"]
labels = sorted({event["name"] for event in own_events if "ProfilerStep" in str(event.get("name"))})
print(f"{len(own_events)} events, steps: {', '.join(labels)}")
own_work = gpu_work(own_events, first_step=0)
if own_work:
    own_report = gpu_report(own_work, TENSOR_CORE_MARKS)
    print(f"idle {own_report['idle_us']:,.0f} µs")
    print(f"tensor cores {own_report['tensor_core_share']:.0%} of the kernels' time")
else:
    print("no work of a GPU in it, for there is none here")

# %% [markdown]
# The labels are those of steps 3 and 4, because the profiler counts from 0 and your schedule left out three.
#
# **In practice** `profiler.key_averages()` is your kernel table, and `holistic-trace-analysis` (HTA) your idle time, split
# further into "the host was late" and "waited for another kernel", over all ranks of a run. Nsight Systems shows the same
# rows with less overhead and no Python. All of them ask you for the same two things: skip the warm-up, and annotate your
# own phases with `torch.profiler.record_function("data loading")`.

# %% [markdown]
# ## What you measured
#
# Each row shows a way to be wrong, or slow, and by how much, on the machines of this notebook.


# %%
def reads(method: str) -> str:
    return (
        f"reads {probes[method].read_ms / probes['your bench, 2 repeats'].read_ms:.0%} of the time"
    )


def times_as_long(runs, slow: str) -> str:
    return f"{runs[slow].duration_s / runs['yours'].duration_s:.0%} of the time"


summary = {
    "clock without synchronization": lambda: reads("clock, not synchronized"),
    "first call among the timed": lambda: reads("clock, synchronized, first call"),
    "warm cache": lambda: reads("events, warm cache"),
    "adding up times of two streams": lambda: (
        f"reads {total_ms / (1e3 * kernels_on_two_streams.duration_s):.0%} of the time"
    ),
    "reserved taken for allocated": lambda: (
        f"{qlora_reserved_peak / qlora_peak:.0%} of the memory in use"
    ),
    "one stream instead of two": lambda: times_as_long(fed, "one stream"),
    "waits in every step": lambda: times_as_long(waiting, "with waits"),
    "empty_cache in every step": lambda: f"{measured_slow_down:.0%} of the step's time",
    "nothing runs, in the trace": lambda: f"{report['idle_us'] / window_us:.0%} of the time",
}
for name, text in labkit.each_written(summary).items():
    print(f"{name:34}{text}")

# %% [markdown]
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("09", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "09",
    "copies and compute on two streams",
    speed=lambda: f"{fed['yours'].duration_s / fed['one stream'].duration_s:.0%} of the time",
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 points each. A person reads your answers, so no check responds at once. Write a
# few sentences for each; numbers count more than words.
#
# **A.** (2 points) When do streams help, and when not? Give one program that gets faster with a second stream and two
# that do not, each with the reason. Say how a profiler's trace would tell you which of them a given program is.

# %% [markdown] nbgrader={"grade": true, "grade_id": "09-open-streams", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# They help where two pieces of work need different engines, or where neither fills the one they share, and where nothing
# orders them: the copy of the next batch (pinned, non_blocking) beside the kernels of this one; communication beside the
# backward pass; many kernels too small to fill the device. They do not help where one of the two already takes the whole
# engine (two large products run one after the other, or share the rate), where each piece needs the other's result, where
# the host cannot launch fast enough to keep even one stream busy (fusion or CUDA graphs help then), where a copy is from
# pageable memory and stops the host, and where the gain is small since one of the two is short: the best factor is
# (t1 + t2) / max(t1, t2), at most 2. In the trace: look for gaps in the kernel row. A gap while a copy or a collective
# runs can be filled by a stream; a gap while the host launches or waits cannot; no gap means that nothing can be gained.
#
# Marks: 1/2 for a program that gains with the reason (different engines or an engine that is not filled). 1/2 for each
# of two that do not, with different reasons. 1/2 for what to look for in the trace, or for the bound (t1 + t2) / max.
# ### END SOLUTION

# %% [markdown]
# **B.** (2 points) A colleague reports that a new kernel takes 0.9 µs per call and is twelve times
# faster than the old one. The report says: `time.perf_counter()` around a loop of 1000 calls, both kernels on the same
# 1 MB of input, in one process, the new kernel second. Name what may be wrong with each part of this set-up, in which
# direction it errs, and which single number in the report shows that something is.

# %% [markdown] nbgrader={"grade": true, "grade_id": "09-open-report", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# No synchronization before the second reading: the loop measures launches, too little (unless the queue fills up, then the
# launch waits and the reading approaches the truth). No synchronization before the first: what the old kernel has queued
# may be counted for the new one, too much for it. No warm-up: the first call of the old kernel pays for the context, the
# library and the clocks' rise, so the old one reads too much, the new one less so. The same input over and over: 1 MB
# lies in the cache from the second call on, too little for both, and not by the same factor. A mean over 1000 calls hides
# the spread. The number: 0.9 µs for one call is less than a launch takes (some 5 µs, at best 2), and 1 MB in 0.9 µs
# would be 1.1 TB/s at the very least for reading alone, without any latency.
#
# Marks: 1/2 for the missing synchronization with its direction. 1/2 for the first call with its direction and that the
# order favours the new kernel. 1/2 for the cache. 1/2 for 0.9 µs against the time of a launch, or the implied rate.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - *CUDA semantics* in PyTorch's documentation: asynchronous execution, streams, the caching allocator and its settings.
# - *Understanding CUDA Memory Usage*, there too: how to record a snapshot, and how to read it at pytorch.org/memory_viz.
# - Zachary DeVito, *A guide to PyTorch's CUDA Caching Allocator* (2022): the rules that you replayed, from their author.
# - NVIDIA's *CUDA C++ Best Practices Guide*, the chapters on timing, and on asynchronous transfers and overlap.
# - *PyTorch Profiler With TensorBoard* and the *Perfetto* viewer (ui.perfetto.dev), which opens the traces of this lab.
#
# ## Sources
#
# PyTorch's `c10/cuda/CUDACachingAllocator.cpp` for the allocator's rules and constants; `triton.testing` for the way
# to time a kernel; NVIDIA's *CUDA C++ Programming Guide* for streams, events and what synchronizes implicitly. The
# figures of 6.42 and 7.09 GB, the program behind them, and an `empty_cache` in the training loop: Sadrtdinov's
# seminar and a deck called *Efficiency*. QLoRA: Tim Dettmers and others, *QLoRA: Efficient Finetuning of Quantized
# LLMs* (2023).
