# %% [markdown]
# # Lab 15: Data parallel
#
# On one GPU, the backward pass of your training step takes 120 milliseconds. You rent four GPUs, give each its own
# rows, and average the gradients. Your first version sends each gradient as soon as it is there, and waits until the
# average has arrived. Four GPUs should do four times the work. Yours do the work of one and a half. **Where did the
# other two and a half go?**
#
# You will write PyTorch's `DistributedDataParallel` from hooks and buckets, accumulate gradients without communicating,
# let all ranks decide together whether a step counts, split the data among them, and launch a training job that survives
# the loss of a rank. Optional exercises normalize over all ranks, put the all-reduce into the optimizer, and train on
# gradients that come late.
#
# [[time]]
#
# You need to know what an all-reduce is (lab 14) and what a loss scale is for (lab 03), but nothing that you wrote there.

# %% nbgrader={"grade": false, "grade_id": "15-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import contextlib
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DistributedSampler, Sampler

import labkit.figures
from labkit import Predictions, check, progress, run_ranks, written
from labkit.exercises.lab15.ddp import Job
from labkit.exercises.lab15.env import Launched, variables
from labkit.material.lab15 import first_host, launch_twice, timeline
from labkit.material.lab15_on_ranks import (
    losses_and_calls,
    micro_batches_and_calls,
    overflowing_steps,
)
from labkit.ranks import Comm

guesses = Predictions("15")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# Here is the question, measured: four simulated ranks on a virtual clock, and a model of 12 blocks with 10 ms of
# backward pass each. The class below averages each gradient in a **hook**, a function that autograd calls as soon as this
# gradient is ready. (The cell itself takes a moment only. The milliseconds are those of the virtual clock.)


# %%
class OneByOne(nn.Module):
    """Averages every gradient in its hook, and waits for it there."""

    def __init__(self, module, comm, bucket_bytes):
        super().__init__()
        self.module = module
        for tensor in (*module.parameters(), *module.buffers()):
            comm.broadcast(tensor, 0)
        for parameter in module.parameters():
            parameter.register_post_accumulate_grad_hook(
                lambda p: comm.all_reduce(p.grad, op="avg")
            )

    def forward(self, *args):
        return self.module(*args)


def step_at_once(ddp, optimizer, loss, max_norm):
    loss.backward()
    nn.utils.clip_grad_norm_(ddp.module.parameters(), max_norm)
    optimizer.step()
    ddp.zero_grad()


job = Job(n_ranks=4, n_blocks=12, n_steps=1)
one_by_one = timeline(OneByOne, step_at_once, job)
work = job.n_ranks * one_by_one.backward_s / one_by_one.step_s
print(f"backward pass alone: {1e3 * one_by_one.backward_s:.0f} ms")
print(f"the whole step: {1e3 * one_by_one.step_s:.0f} ms")
print(f"four ranks do the work of {work:.2f}")

# %% tags=["figure"]
labkit.figures.ddp_timeline({"one by one": one_by_one})

# %% [markdown]
# The upper row shows when the first rank computes, the lower one when its network is busy. They take turns. Not one byte
# of this can be saved, because every gradient has to travel. But the same bytes can travel over the same network *while*
# the rank computes, and with your class they will.

# %% [markdown]
# ## Average the gradients, and the copies stay equal
#
# Every rank holds the whole model and sees different rows. The loss is a mean over rows, and the gradient of a mean is
# the mean of the gradients. With $n$ ranks of equally many rows
#
# $$\nabla L = \frac{1}{n} \sum_{r=0}^{n-1} \nabla L_r ,$$
#
# so one all-reduce gives every rank the gradient that one process would have computed from all rows. If all copies start
# with the same weights and take the same steps, they stay equal *to the last bit*, and no weight ever has to be sent
# again. Nothing else keeps them together. A rank that starts from other weights, or clips before it averages, trains
# another model, and no error is raised.

# %% [markdown]
# ### What came before
#
# - **`torch.nn.DataParallel`** is one line, and is being phased out. One process drives all GPUs, with a thread for each.
#   It copies the model to every GPU in *every* forward pass and collects the outputs on the first one. Its threads share
#   one Python interpreter lock, and it cannot use GPUs of another machine.
# - **Parameter servers** keep the weights on machines of their own. The gradients of all workers go through the network
#   ports of these machines.
# - **Horovod** (2017) took the ring from high-performance computing: one process per GPU, started by `mpirun`, and a
#   wrapper around the optimizer that averages the gradients.
# - **`DistributedDataParallel`** (DDP) is a wrapper around the model that averages them from within autograd, and starts
#   before the backward pass is over.

# %% [markdown]
# ## Send gradients while others are still computed
#
# The gradient of the last layer is ready first, and nothing changes it after that. It can travel while the other layers
# are still computing theirs. There are two obstacles. First, a hook that waits stops the backward pass, as above.
# Second, every call pays its latency $\alpha$ again: on a ring, an all-reduce of $B$ bytes takes
# $2(n-1)\left(\alpha + \frac{B}{n\,b}\right)$ seconds, where $b$ is the bandwidth in bytes/s. So several gradients share
# one call, and what they share is called a **bucket**. With a backward pass of $T$ seconds, a step takes about
#
# $$T + 2(n-1)\left(\alpha + \frac{B_\text{last}}{n\,b}\right)$$
#
# as long as each bucket's call is done before the next bucket is complete. Only the last bucket, which holds the first
# layers, has nothing to hide behind. If the end of the backward pass completes several buckets, their times add up.
#
# On the network of the opening, an all-reduce of one block's gradients takes 9 ms: 6 ms of latency, paid on every call,
# and 3 ms for the bytes. Each block has two parameters. In front of the blocks there are three more parameters (an
# embedding, and the weight and bias of a layer that nobody calls). Their bytes take 2 ms. Not one of them can leave
# before the end of the backward pass: the embedding's gradient comes last, and the other two never get one, so only
# `finish` can send them.

# %% [markdown]
# **Predict:** how long is a step, in ms, if every parameter has a bucket of its own, so that there are 27 calls?

# %% nbgrader={"grade": false, "grade_id": "15-predict-tiny-buckets", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("step with 27 buckets", None, unit="ms")

# %% [markdown]
# **Predict:** which bucket makes the step shortest: one for each parameter, for each block, for 3 blocks, or one for all?

# %% nbgrader={"grade": false, "grade_id": "15-predict-best-bucket", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take(
    "best bucket",
    None,
    among=("a parameter", "a block", "3 blocks", "everything"),
)

# %% [markdown]
# [[exercise 15-ddp]]
#
# Write the class `DDP` and the function `train_step`. `comm` has `broadcast(tensor, src)` and
# `all_reduce(tensor, op="avg", async_op=True)`, which returns an object with a `wait()`.
#
# - **Start:** all parameters and buffers become those of rank 0.
# - **Buckets:** walk through `module.parameters()` from last to first and fill one bucket after another. A bucket closes
#   when its gradients reach `bucket_bytes`; what remains at the end is the last bucket. Each bucket's all-reduce is one
#   call.
# - **Overlap:** a bucket leaves in the hook of the gradient that completes it, and the hook does not wait.
# - **Order:** every rank sends the buckets in the same order. But ranks may complete them in different orders, for
#   instance if some inputs skip a layer. And a parameter may get no gradient at all, on one rank or on all of them: then it
#   counts as zero.
# - **The end:** `finish()` sends what has not left, waits for everything, and puts the average into `.grad` of every
#   parameter.
# - `train_step` runs the backward pass, finishes, clips the gradient to `max_norm`, steps, and clears the gradients.
#
# All parameters are float32. Two layers of the model share one weight: `module.parameters()` lists it once, and its hook
# fires once, after both layers have added to its gradient. If the check fails on time and you cannot see why, run the
# figure below the check: it draws what your class does.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `parameter.register_post_accumulate_grad_hook(fn)` calls `fn(parameter)` when its gradient of this backward pass is
# complete, also when several layers have added to it. Count for each bucket how many gradients are still missing.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Keep the number of the next bucket to send. The hook subtracts one from its bucket's count. Then, while the *next*
# bucket to send is complete, send it. A bucket that is complete early waits for those before it. `finish` sends the rest
# in order, with zeros where `.grad` is None, and then waits.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# To send: `flat = torch.cat([p.grad.flatten() for p in bucket])`, and keep `(flat, comm.all_reduce(flat, op="avg",
# async_op=True))` in a list; its length is the number of the next bucket. In `finish`, after `work.wait()`:
# `for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])): p.grad = mean.view_as(p)`. Do not forget to
# reset the counts and to empty the list.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-ddp", "locked": false, "schema_version": 3, "solution": true, "task": false}
class DDP(nn.Module):
    def __init__(self, module: nn.Module, comm: Comm, bucket_bytes: int) -> None:
        """Start all ranks from rank 0's weights, fill the buckets, and register the hooks."""
        super().__init__()
        self.module, self.comm = module, comm
        ### BEGIN SOLUTION
        for tensor in (*module.parameters(), *module.buffers()):
            comm.broadcast(tensor, src=0)
        parameters = [p for p in module.parameters() if p.requires_grad]
        self.buckets, bucket = [], []
        for p in reversed(parameters):
            bucket.append(p)
            if sum(one.nbytes for one in bucket) >= bucket_bytes or p is parameters[0]:
                self.buckets.append(bucket)
                bucket = []
        self.bucket_of = {p: number for number, bucket in enumerate(self.buckets) for p in bucket}
        for p in parameters:
            p.register_post_accumulate_grad_hook(self.ready)
        self.begin()
        ### END SOLUTION

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish(self) -> None:
        """After backward: send what has not left, wait for all, and leave the averages in .grad."""
        ### BEGIN SOLUTION
        while len(self.flights) < len(self.buckets):
            self.send_next()
        for bucket, (flat, work) in zip(self.buckets, self.flights):
            work.wait()
            for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = mean.view_as(p)
        self.begin()

    def begin(self) -> None:
        self.missing = [len(bucket) for bucket in self.buckets]
        self.flights = []

    def ready(self, p: Tensor) -> None:
        self.missing[self.bucket_of[p]] -= 1
        while len(self.flights) < len(self.buckets) and self.missing[len(self.flights)] == 0:
            self.send_next()

    def send_next(self) -> None:
        bucket = self.buckets[len(self.flights)]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([grad.flatten() for grad in grads])
        self.flights.append((flat, self.comm.all_reduce(flat, op="avg", async_op=True)))
        ### END SOLUTION


def train_step(ddp: DDP, optimizer: torch.optim.Optimizer, loss: Tensor, max_norm: float) -> None:
    """One step of training on the averaged gradient, clipped to max_norm; no gradient is left."""
    ### BEGIN SOLUTION
    loss.backward()
    ddp.finish()
    nn.utils.clip_grad_norm_(ddp.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-ddp-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("15-ddp", DDP, train_step)

# %% [markdown]
# The step of the opening, and one step of your class with each of four caps. (A **cap** is the value of `bucket_bytes`, here
# in blocks.)

# %%
CAPS = {
    "a parameter": 0.01,
    "a block": 1,
    "3 blocks": 3,
    "everything": 100,
}
steps = {}
if written(DDP, train_step):
    for name, cap in CAPS.items():
        steps[name] = timeline(DDP, train_step, replace(job, cap_blocks=cap))
    guesses.settle("step with 27 buckets", 1e3 * steps["a parameter"].step_s)
    guesses.settle("best bucket", min(steps, key=lambda name: steps[name].step_s))

# %% tags=["figure"]
labkit.figures.ddp_timeline(
    {"one by one": one_by_one} | {f"a bucket for {name}": step for name, step in steps.items()}
)

# %% [markdown]
# Look at what stands to the right of the dashed line: that is all that communication costs you. And here is one step of
# your class with sliders. With three times the latency, which cap is the best one?

# %% tags=["figure"]
labkit.figures.ddp_player(DDP, train_step, job)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 210 ms for 27 buckets: the calls have 162 ms of latency alone, more than the 120 ms of the backward pass, so they queue
# up. A bucket for each block is best, with 137 ms. Nearly everything travels for free. What remains is 9 ms for
# the last block, and 8 ms for the embedding and the layer that nobody calls. Three blocks in a bucket leave 15 ms and
# 8 ms, so the step takes 143 ms. One bucket has nothing to hide behind: 6 ms of latency, 3 ms for each block, and 2 ms
# for the rest, 164 ms in all. With three times the latency, three blocks in a bucket are best (167 ms): a bucket for each
# block would cost 282 ms.
#
# </details>

# %% [markdown]
# Now vary the cap, and the number of ranks (with 8 blocks and a tenth of the latency). A node has 8 ranks. From 9 ranks
# on, the ring also crosses a wire between nodes, which is 1.5 times as slow.

# %% tags=["figure"]
labkit.figures.ddp_scaling(DDP, train_step, job)

# %% [markdown]
# Left: with a small cap you pay latency, with a large one you wait for the last bucket. PyTorch's default is 25 MiB, with
# a first bucket of 1 MiB, so that something leaves early. Right: every rank has a batch of its own, so $n$ ranks do at
# most $n$ times the work (**weak scaling**). What bends the curves is the communication that is still running when the
# backward pass ends. A rank sends nearly the same number of bytes for every $n$, but each of the $2(n-1)$ rounds pays its
# latency, so this rest grows with $n$.

# %% [markdown]
# ### Beside PyTorch's own
#
# Two real processes communicate over gloo and train for three steps on 32 rows each, once with your class and once with
# `DistributedDataParallel`. `track_comm` counts their calls.


# %%
def by_pytorch(module: nn.Module, comm: Comm, bucket_bytes: int) -> nn.Module:
    return nn.parallel.DistributedDataParallel(module, bucket_cap_mb=bucket_bytes / 2**20)


ways = {"yours": (DDP, train_step)} if written(DDP, train_step) else {}
ways["DistributedDataParallel"] = (by_pytorch, step_at_once)
for name, (wrap, step) in ways.items():
    ranks = run_ranks(partial(losses_and_calls, wrap=wrap, step=step), 2, backend="gloo")
    losses, n_calls, n_inside = ranks[0]
    print(f"{name:24} losses {losses}, calls a step: {n_calls}, inside of backward: {n_inside}")

# %% [markdown]
# The same losses from the same number of calls. **In practice** you write
#
# ```python
# torch.distributed.init_process_group("nccl")
# ddp = DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])
# ```
#
# and the loop stays as it is; only the data need a sampler (below). The backward pass itself waits at its end, so there
# is no `finish`. After the first step PyTorch fills the buckets again, in the order in which the gradients became
# ready. Three of its arguments concern what you wrote. The first one you know, and the other two handle missing
# gradients, as your `finish` does:
#
# - `bucket_cap_mb` is your `bucket_bytes`, in MiB.
# - `find_unused_parameters=True` walks through the graph after each forward pass and marks parameters that will get no
#   gradient as ready, so that their bucket need not wait for the end. Without it, PyTorch stops with an error when a
#   gradient is missing.
# - `static_graph=True` does that walk only once.
#
# And `with ddp.join():` lets a rank that has run out of data answer the other ranks' all-reduces with zeros.

# %% [markdown]
# ## Put the all-reduce into the optimizer
#
# There is a simpler place for the all-reduce: between the backward pass and the update, in the optimizer's `step`. With this
# interface Horovod made data parallel training popular (its calls may still start in hooks). You wrap the optimizer and
# leave the model alone, so there is no module to unwrap when you save it. But `step` is the last call of a training step,
# and clipping comes before it. If the average is taken in `step`, each rank has already clipped its own gradient. So the
# wrapper has a second method, `synchronize`, which averages now, and then `step` must not average again.
#
# [[exercise 15-optimizer-wrapper]]
#
# Write the class `AveragingOptimizer` and the function `wrapped_step`.
#
# - At the start, all parameters of the wrapped optimizer become those of rank 0. They are in `optimizer.param_groups`, a list
#   of dicts with a list under `"params"`.
# - `synchronize()` averages the gradients of all parameters over the ranks. It takes one all-reduce. A parameter without a
#   gradient counts as zero.
# - `step()` averages, unless `synchronize()` has been called since the last step, and then steps the wrapped optimizer.
# - `wrapped_step` runs the backward pass, averages, clips the averaged gradient of all parameters to `max_norm`, steps, and
#   clears the gradients, through `optimizer.optimizer` or a `zero_grad` of your own.
#
# <details><summary>Hint 1: a nudge</summary>
#
# You wrote the all-reduce of one bucket in your class `DDP`. Here everything is one bucket, and nothing has to be started
# early.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Keep a list of all parameters and a flag, `self.averaged`. `synchronize` sets the flag, and `step` looks at it and resets it
# at its end.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `self.parameters = [p for group in optimizer.param_groups for p in group["params"]]`. In `synchronize`: `flat =
# torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in self.parameters])`, then
# `comm.all_reduce(flat, op="avg")`, then `p.grad = mean.view_as(p)` for the parts of `flat.split(...)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-optimizer-wrapper", "locked": false, "schema_version": 3, "solution": true, "task": false}
class AveragingOptimizer:
    def __init__(self, optimizer: torch.optim.Optimizer, comm: Comm) -> None:
        """Wrap an optimizer; all its parameters become those of rank 0."""
        self.optimizer, self.comm = optimizer, comm
        ### BEGIN SOLUTION
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.averaged = False
        for p in self.parameters:
            comm.broadcast(p, src=0)
        ### END SOLUTION

    def synchronize(self) -> None:
        """Average the gradients of all parameters over the ranks, in one all-reduce."""
        ### BEGIN SOLUTION
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        flat = torch.cat([grad.flatten() for grad in grads])
        self.comm.all_reduce(flat, op="avg")
        for p, mean in zip(self.parameters, flat.split([p.numel() for p in self.parameters])):
            p.grad = mean.view_as(p)
        self.averaged = True
        ### END SOLUTION

    def step(self) -> None:
        """Average, unless that has been done since the last step, and step the wrapped optimizer."""
        ### BEGIN SOLUTION
        if not self.averaged:
            self.synchronize()
        self.optimizer.step()
        self.averaged = False
        ### END SOLUTION


def wrapped_step(optimizer: AveragingOptimizer, loss: Tensor, max_norm: float) -> None:
    """One step of training on the averaged gradient, clipped to max_norm; no gradient is left."""
    ### BEGIN SOLUTION
    loss.backward()
    optimizer.synchronize()
    nn.utils.clip_grad_norm_(optimizer.parameters, max_norm)
    optimizer.step()
    optimizer.optimizer.zero_grad()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-optimizer-wrapper-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("15-optimizer-wrapper", AveragingOptimizer, wrapped_step)

# %% [markdown]
# On the network of the opening, beside the first version and the best of your buckets:


# %%
class InTheOptimizer(nn.Module):
    """A module whose gradients are averaged by the optimizer that it brings along."""

    def __init__(self, module, comm, bucket_bytes):
        super().__init__()
        self.module = module
        self.optimizer = AveragingOptimizer(torch.optim.SGD(module.parameters(), lr=0.1), comm)

    def forward(self, *args):
        return self.module(*args)


def step_of_the_wrapper(ddp, optimizer, loss, max_norm):
    wrapped_step(ddp.optimizer, loss, max_norm)


if written(AveragingOptimizer, wrapped_step):
    steps["the optimizer"] = timeline(InTheOptimizer, step_of_the_wrapper, job)

# %% tags=["figure"]
shown = {"a block": "a bucket for each block", "the optimizer": "averaged in the optimizer"}
labkit.figures.ddp_timeline(
    {"one by one": one_by_one} | {shown[name]: steps[name] for name in shown if name in steps}
)

# %% [markdown]
# The weights are the same, and nothing overlaps: 164 ms, as with one bucket for everything. **In practice**
# `horovod.torch.DistributedOptimizer` has the same two methods. It also starts its all-reduces in hooks during the backward
# pass, and waits for them in `synchronize`, so it overlaps as your class `DDP` does.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Accumulate without communicating
#
# A batch that does not fit into memory is split into **micro-batches**, whose gradients add up in `.grad` (lab 04). DDP
# sends all gradients in every backward pass. It does not know that with four micro-batches three out of four of them will
# change again. So it sends four times as much as necessary, and nobody notices, because the *values are right*: an average
# of sums is a sum of averages.

# %% [markdown]
# **Predict:** a model of 7 billion parameters with 16-bit gradients accumulates over 8 micro-batches, on a ring of many
# ranks. How many GB does a rank send in a step if DDP sends in every backward pass?

# %% nbgrader={"grade": false, "grade_id": "15-predict-plain-loop", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sent by a plain loop", None, unit="GB")

# %% [markdown]
# [[exercise 15-no-sync]]
#
# The check gives you `ddp`, a wrapper that works like `OneByOne` above. Like PyTorch's, it looks *in its forward pass* at
# the attribute `ddp.require_backward_grad_sync`. If it is False, the backward pass that belongs to this forward pass sends
# nothing.
#
# - `no_sync(ddp)` is a context manager. Inside, the attribute is False; afterwards it has its earlier value again. That
#   also holds after an error, which passes through, and for nested uses.
# - `accumulate(ddp, batches, loss_of)` leaves in `.grad` the gradient of the mean over *all rows of all ranks*. `batches`
#   is a list of `(x, y)`; `loss_of(ddp, (x, y))` runs the forward pass and returns the mean loss of these rows.
#   Micro-batches may have different numbers of rows, but every rank has the same total. Run the backward pass of each
#   before the forward pass of the next. Only the last micro-batch sends.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The mean over all rows is not the mean of the micro-batches' means, unless they are equally large. And the wrapper
# decides in its forward pass: what has to be inside `no_sync`?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Write a generator with `@contextlib.contextmanager`: remember the attribute, set it to False, `yield`, and restore it
# in a `finally`. For the other function: multiply each loss by `len(x) / n_rows`, and run forward and backward of all but
# the last micro-batch inside `no_sync`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `context = no_sync(ddp) if number < len(batches) else contextlib.nullcontext()`, with `number` from
# `enumerate(batches, 1)`, and then `with context: (loss_of(ddp, (x, y)) * len(x) / n_rows).backward()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-no-sync", "locked": false, "schema_version": 3, "solution": true, "task": false}
@contextlib.contextmanager
def no_sync(ddp: nn.Module) -> Iterator[None]:
    """Inside, ddp.require_backward_grad_sync is False; afterwards it is what it was."""
    ### BEGIN SOLUTION
    before = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = before
    ### END SOLUTION


def accumulate(
    ddp: nn.Module,
    batches: Sequence[tuple[Tensor, Tensor]],
    loss_of: Callable[[nn.Module, tuple[Tensor, Tensor]], Tensor],
) -> None:
    """Leave the gradient of the mean over all rows in .grad; only the last micro-batch sends."""
    ### BEGIN SOLUTION
    n_rows = sum(len(x) for x, _ in batches)
    for number, (x, y) in enumerate(batches, 1):
        context = no_sync(ddp) if number < len(batches) else contextlib.nullcontext()
        with context:
            (loss_of(ddp, (x, y)) * len(x) / n_rows).backward()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-no-sync-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("15-no-sync", no_sync, accumulate)

# %% [markdown]
# PyTorch's class has the same attribute, so your two functions work with it, too. Two real ranks take one step of four
# micro-batches, with a plain loop and with `accumulate`:


# %%
def plain_loop(ddp: nn.Module, batches: Sequence[tuple[Tensor, Tensor]], loss_of: Callable) -> None:
    for batch in batches:
        (loss_of(ddp, batch) / len(batches)).backward()


ways = {"a plain loop": plain_loop}
if written(no_sync, accumulate):
    ways["accumulate"] = accumulate
micro = {
    name: run_ranks(partial(micro_batches_and_calls, accumulate=way), 2, backend="gloo")[0]
    for name, way in ways.items()
}
for name, (n_calls, n_bytes, norm) in micro.items():
    print(f"{name:14} calls {n_calls}, bytes {n_bytes:>7,}, norm of the gradient {norm}")

gradients_gb = 7e9 * 2 / 1e9
guesses.settle("sent by a plain loop", 8 * 2 * gradients_gb)

# %% [markdown]
# A quarter of the traffic, and the same gradient. **In practice** the context manager is the method `ddp.no_sync()`. The
# pitfall is the one that the check tries: the *forward* pass has to be inside, too.
#
# <details><summary>Check your prediction</summary>
#
# 224 GB (209 GiB). On a ring of many ranks, each rank sends nearly twice the gradients, $2 \cdot 14$ GB = 28 GB (26 GiB),
# in each all-reduce. A plain loop does 8 of them, and `accumulate` one.
#
# </details>

# %% [markdown]
# ## Let all ranks decide together
#
# With 16-bit floats the loss is multiplied by a scale, and a step whose gradient overflows is skipped (lab 03). If
# gradients are averaged first, the ranks agree without a message about it, because one rank's infinity is in everybody's
# average. That breaks as soon as a rank has parameters *of its own*. The embedding tables of a recommender do not fit on
# one GPU, so each rank owns a different table, while the dense layers are the same everywhere. Now rank 1 finds an infinity
# in its table, skips the step and halves its scale. The others see nothing and take the step, and from here on the replicas
# differ. Clipping has the same problem: it needs the norm of *all* parameters, and no rank sees them all.
#
# $$\|g\|^2 = \underbrace{\|\bar g_\text{shared}\|^2}_{\text{once}} + \sum_{r=0}^{n-1} \|g_{\text{own},\,r}\|^2$$

# %% [markdown]
# **Predict:** on 64 ranks, each rank's own gradient overflows in one step of 1000, independently of the others. If every
# rank decides for itself, how many steps does it take, on average, until the 64 replicas are no longer all equal?

# %% nbgrader={"grade": false, "grade_id": "15-predict-replicas-differ", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("steps until replicas differ", None)

# %% [markdown]
# [[exercise 15-amp-clip]]
#
# Write `amp_clip_step(comm, shared, own, optimizer, scale, max_norm)`, which returns the norm and the new scale.
#
# - `shared` are the parameters that all ranks hold, `own` those that only this rank has. Each `.grad` is already multiplied
#   by `scale`. Average the shared gradients. Leave the own ones as they are: the rows of all ranks look things up in each
#   table, so a table's gradient already has the contributions of all rows, divided by their number. `shared` and `own` have
#   at least one parameter each.
# - The norm is that of the whole unscaled gradient, as one process with all tables would compute it.
# - If it is not finite, no rank takes the step, and the new scale is half the old one, on all ranks. What is in `.grad` then
#   does not matter. Otherwise multiply the gradients by `max_norm / norm` if that is below 1, call `optimizer.step()`, and
#   keep the scale.
# - Besides the shared gradients, each rank sends at most two numbers: a flag and a sum, for instance, though one is enough.
#
# <details><summary>Hint 1: a nudge</summary>
#
# An infinity in a gradient makes its square infinite, and NaN stays NaN. Which single number tells the other ranks all
# that they need to know of a rank's own gradient?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Average the shared gradients, divide everything by the scale, add up the squares of the own gradients, and all-reduce
# that sum. Only then add the squares of the shared gradients, once: every rank knows them. The root is the same number on
# all ranks, and so is the decision.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `squares = sum(p.grad.square().sum() for p in own)`, `comm.all_reduce(squares)`,
# `norm = (squares + sum(p.grad.square().sum() for p in shared)).sqrt()`, and
# `if not norm.isfinite(): return norm, scale / 2`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-amp-clip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def amp_clip_step(
    comm: Comm,
    shared: Sequence[nn.Parameter],
    own: Sequence[nn.Parameter],
    optimizer: torch.optim.Optimizer,
    scale: float,
    max_norm: float,
) -> tuple[Tensor, float]:
    """Average, unscale, decide together, clip and step; the norm of the whole gradient, and the next scale."""
    ### BEGIN SOLUTION
    flat = torch.cat([p.grad.flatten() for p in shared])
    comm.all_reduce(flat, op="avg")
    for p, mean in zip(shared, flat.split([p.numel() for p in shared])):
        p.grad = mean.view_as(p)
    for p in (*shared, *own):
        p.grad /= scale
    squares = sum(p.grad.square().sum() for p in own)
    comm.all_reduce(squares)
    norm = (squares + sum(p.grad.square().sum() for p in shared)).sqrt()
    if not norm.isfinite():
        return norm, scale / 2
    for p in (*shared, *own):
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    optimizer.step()
    return norm, scale
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-amp-clip-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("15-amp-clip", amp_clip_step)

# %% [markdown]
# Three ranks take thirty steps. Their own gradients grow from step to step, like those of a loss that diverges, and
# overflow float16 on one rank or another:


# %%
def each_for_itself(comm, shared, own, optimizer, scale, max_norm):
    """Average, and then do what one process would do, whatever the other ranks find."""
    parameters = [*shared, *own]
    for parameter in shared:
        comm.all_reduce(parameter.grad, op="avg")
    finite = all(bool(parameter.grad.isfinite().all()) for parameter in parameters)
    for parameter in parameters:
        parameter.grad = parameter.grad / scale
    norm = nn.utils.clip_grad_norm_(parameters, max_norm)
    if finite:
        optimizer.step()
    return norm, scale if finite else scale / 2


ways = {"each for itself": each_for_itself}
if written(amp_clip_step):
    ways["together, yours"] = amp_clip_step
for name, step in ways.items():
    ranks = run_ranks(partial(overflowing_steps, step=step), 3)
    apart = max(float((one - ranks[0][1]).abs().max()) for _, one in ranks)
    ends = [f"2^{math.log2(scales[-1]):.0f}" for scales, _ in ranks]
    print(f"{name}: scales at the end {', '.join(ends)}; the replicas are {apart:.2g} apart")

skipped_by_someone = 1 - (1 - 1e-3) ** 64
guesses.settle("steps until replicas differ", 1 / skipped_by_someone)

# %% [markdown]
# If each rank decides for itself, the ranks end with different scales and with different versions of what should be one
# parameter. They also differ where nothing overflows, because each rank clips by a different norm. No error is raised.
#
# <details><summary>Check your prediction</summary>
#
# 16 steps. The chance that at least one of 64 ranks overflows in a step is $1 - 0.999^{64} = 6.2\,\%$. If the ranks decide
# together, 6.2 % of the steps are skipped.
#
# </details>
#
# **In practice** the calls have the same order as in one process, as long as all gradients are averaged *before*
# `scaler.unscale_`, where `GradScaler` looks for infinities. DDP averages in the backward pass, so this holds. Where ranks
# hold different parts (FSDP, lab 16), `ShardedGradScaler` communicates the decision, and `clip_grad_norm_` on a `DTensor`
# adds up squares as you did. bfloat16 needs no scale, but its norm has to be the same on all ranks just the same.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Give each rank its own samples
#
# All ranks can read the whole dataset. In each epoch exactly one of them should see each sample, in an order that is new in
# every epoch, and no message is sent about it: each rank works out its own share. This works if all ranks draw *the same*
# shuffled order and divide its places among them: rank $r$ takes, for instance, places $r, r + W, r + 2W, \dots$, where $W$
# is the number of ranks. If they draw different orders, nothing fails. The loss falls a little more slowly, and nobody knows
# why.

# %% [markdown]
# **Predict:** 1000 images, 8 ranks. Each rank shuffles with its own seed and takes the first eighth of its own order. What
# share of the images does no rank see in this epoch?

# %% nbgrader={"grade": false, "grade_id": "15-predict-never-seen", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("images never seen", None, unit="%")

# %%
n_images, n_ranks = 1000, 8
seen = set()
for rank in range(n_ranks):
    own_order = torch.randperm(n_images, generator=torch.Generator().manual_seed(rank))
    seen |= set(own_order[: n_images // n_ranks].tolist())
print(f"never seen: {1 - len(seen) / n_images:.0%}")
guesses.settle("images never seen", 100 * (1 - len(seen) / n_images))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About a third: an image is left out by all 8 ranks with probability $(1 - 1/8)^8 = 34\,\%$. Other images came twice or
# more in their place.
#
# </details>
#
# The *number* of samples also has to be the same on all ranks. A rank with one batch more than the others calls one
# all-reduce more, and waits forever. With $n$ samples, each rank gets
#
# $$\left\lceil \frac{n}{W} \right\rceil \text{ samples, some of them twice,} \qquad\text{or}\qquad
# \left\lfloor \frac{n}{W} \right\rfloor \text{ with }\texttt{drop\_last}\text{, and a few are left out.}$$
#
# [[exercise 15-sampler]]
#
# Write `ShardSampler`. Iterating it yields the indices of one rank for one epoch, as numbers from 0 to `n_samples - 1`.
#
# - Over all ranks, each sample comes once. Where $W$ does not divide `n_samples`, some samples are repeated so that all ranks
#   have the same number, none more often than necessary. There may be fewer samples than ranks. With `drop_last` none comes
#   twice, and a few are left out, different ones in each epoch.
# - The order depends only on the seed and on the epoch, which `set_epoch` sets. The global random state stays as it is.
#   Iterating twice in the same epoch gives the same order, also in a new process that resumes at this epoch. From epoch to
#   epoch each rank gets *different* samples, too.
# - `len` is the number of indices that one rank gets.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Only one thing is random: the order of *all* samples. Which places a rank takes of it is fixed. And the sampler must not
# use torch's global random generator.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In `__iter__`, make a `torch.Generator()`, seed it with a number from `seed` and `epoch`, and draw a permutation of all
# samples. Make it longer, by starting over, or shorter, to `len(self) * world_size`. Then take every `world_size`-th index,
# beginning with number `rank`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `generator = torch.Generator().manual_seed(self.seed + self.epoch)` and
# `order = torch.randperm(n, generator=generator).tolist()`. The list `[order[i % n] for i in range(total)]` starts over as
# often as it must. `dealt[rank::world_size]` is a rank's share. `math.ceil(n / world_size)`, or `n // world_size`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-sampler", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ShardSampler(Sampler[int]):
    """The indices that one rank gets in one epoch: every sample goes to one rank, in an order of the epoch's own."""

    def __init__(
        self, n_samples: int, rank: int, world_size: int, seed: int = 0, drop_last: bool = False
    ) -> None:
        ### BEGIN SOLUTION
        self.n_samples, self.rank, self.world_size = n_samples, rank, world_size
        self.seed, self.drop_last, self.epoch = seed, drop_last, 0
        ### END SOLUTION

    def set_epoch(self, epoch: int) -> None:
        """From now on the order is that of this epoch; without a call it is that of epoch 0."""
        ### BEGIN SOLUTION
        self.epoch = epoch
        ### END SOLUTION

    def __len__(self) -> int:
        """How many indices this rank gets in an epoch, the same on all ranks."""
        ### BEGIN SOLUTION
        if self.drop_last:
            return self.n_samples // self.world_size
        return math.ceil(self.n_samples / self.world_size)
        ### END SOLUTION

    def __iter__(self) -> Iterator[int]:
        """This rank's indices in the epoch."""
        ### BEGIN SOLUTION
        # Not torch.manual_seed: that would make all ranks drop the same units.
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.n_samples, generator=generator).tolist()
        dealt = [order[i % self.n_samples] for i in range(len(self) * self.world_size)]
        return iter(dealt[self.rank :: self.world_size])
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-sampler-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("15-sampler", ShardSampler)

# %% tags=["figure"]
labkit.figures.who_sees_what(ShardSampler)

# %% [markdown]
# A row is an epoch, a column is a sample, and a colour is a rank. Look for a pattern: there should be none. Every rank has
# twelve boxes in a row, and the colour of a sample (its rank) and the number in its box (its step) change from row to row. A
# white box would be a sample that no rank sees, a black one a sample that comes twice.
#
# **In practice** this is `torch.utils.data.DistributedSampler`, passed to the `DataLoader` in place of `shuffle=True`. Its
# generator is seeded with `seed + epoch`, so epoch 1 of seed 0 is epoch 0 of seed 1. And it cannot know the epoch: without
# `sampler.set_epoch(epoch)` at the start of each epoch, all epochs have the same order, and again nothing fails.


# %%
def dealt(samplers: list, n_samples: int) -> tuple[int, int, int]:
    """(indices of a rank, indices that come again, samples that never come)"""
    indices = [int(index) for sampler in samplers for index in sampler]
    n_seen = len(set(indices))
    return len(samplers[0]), len(indices) - n_seen, n_samples - n_seen


def torchs_own(n_samples: int, rank: int, world_size: int, drop_last: bool) -> DistributedSampler:
    return DistributedSampler(range(n_samples), world_size, rank, drop_last=drop_last)


kinds = {"DistributedSampler": torchs_own}
if written(ShardSampler):
    kinds["yours"] = ShardSampler
for name, kind in kinds.items():
    print(f"{name}\nsamples ranks drop_last   each  again  never")
    for n_samples, world_size in ((48, 4), (50, 4), (3, 8)):
        for drop_last in (False, True):
            samplers = [
                kind(n_samples, r, world_size, drop_last=drop_last) for r in range(world_size)
            ]
            each, again, never = dealt(samplers, n_samples)
            print(f"{n_samples:>7}{world_size:>6}{drop_last!s:>10}{each:>7}{again:>7}{never:>7}")

# %% [markdown]
# Samples that come twice hardly matter in training. In *validation* they count twice in the mean. Either drop the copies
# after gathering the results, or let the ranks have different numbers of samples and send nothing before the end.

# %% [markdown]
# ## Normalize over all ranks
#
# Batch normalization subtracts the mean of the batch and divides by its standard deviation. In data parallel training
# "the batch" is what one rank has. In detection and segmentation that may be two images per GPU, and the statistics of two
# rows are mostly noise: the network is trained as one function and used as another. **Synchronized batch normalization**
# takes mean and variance over the rows of all ranks. A gradient may arrive late, but these are needed in the middle of the
# forward pass, in every such layer, and nothing can be computed meanwhile.
#
# A rank with $m_r$ rows, mean $\mu_r$ and sum of squared distances $S_r = \sum_i (x_i - \mu_r)^2$ contributes
#
# $$m = \sum_r m_r, \qquad \mu = \frac{1}{m} \sum_r m_r\,\mu_r, \qquad
# \sigma^2 = \frac{1}{m} \sum_r \left( S_r + m_r\,(\mu_r - \mu)^2 \right) .$$
#
# An average of the variances would lack the last term, which measures how far the ranks' means lie apart. Take two ranks
# with the rows 0, 2 and 10, 12 of a single channel. Each has a variance of 1, and all four rows have a variance of 26.

# %% [markdown]
# Backward, with $\hat x = (x - \mu)/\sqrt{\sigma^2 + \epsilon}$ and $g = \partial L/\partial y$ the gradient of the output
# $y = w\,\hat x + b$, every row of every rank went into $\mu$ and $\sigma^2$:
#
# $$\frac{\partial L}{\partial x} = \frac{w}{\sqrt{\sigma^2 + \epsilon}} \left( g - \frac{1}{m} \sum g
# - \hat x\,\frac{1}{m} \sum g\,\hat x \right) ,$$
#
# with both sums over all rows of all ranks. They are two numbers per channel, so one all-reduce is enough. The gradients of
# $w$ and $b$ are the same two sums over the rank's *own* rows: DDP averages them later, like those of any other parameter.
#
# [[exercise 15-sync-bn]]
#
# Write `sync_batch_norm(comm, x, running_mean, running_var, weight, bias, momentum, eps)` for training mode. It returns the
# normalized rows of this rank, of shape (rows, channels), in float32.
#
# - Ranks have different numbers of rows. One may have none, and still takes part.
# - **One collective in the forward pass and one in the backward pass**, of a few numbers per channel.
# - Only `running_mean` and `running_var` change in place, `new = (1 - momentum) * old + momentum * measured`. Here the
#   variance is divided by $m - 1$, as in PyTorch.
# - The mean may be thousands of times the standard deviation, so $E[x^2] - E[x]^2$ in float32 loses all digits (lab 02).
#
# <details><summary>Hint 1: a nudge</summary>
#
# Autograd knows nothing of `comm`, so write one function with a backward pass of its own. What is the smallest set of
# numbers from which every rank can compute $m$, $\mu$ and $\sigma^2$?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In forward put $m_r$, $\mu_r$ and $S_r$ into one tensor of $1 + 2C$ numbers, `all_gather` it, and combine them by the
# formulas above. Save $\hat x$, the weight and $1/\sqrt{\sigma^2 + \epsilon}$. In backward put $\sum g$ and
# $\sum g\,\hat x$ over the own rows into one tensor, keep a copy for the gradients of bias and weight, and all-reduce it.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `told = torch.cat([n_rows, mean, spread])` with `n_rows = torch.full((1,), float(len(x)))`, and for an empty rank
# `x.sum(0) / n_rows.clamp(min=1)`. `everyone = [torch.empty_like(told) for _ in range(comm.world_size)]`,
# `comm.all_gather(everyone, told)`, `counts, means, spreads = torch.stack(everyone).split([1, C, C], dim=1)`.
# `backward` returns one value for each argument of `forward`, None for all but `x`, `weight` and `bias`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-sync-bn", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SyncBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, x, running_mean, running_var, weight, bias, momentum, eps) -> Tensor:
        """This rank's rows, normalized with the statistics of all ranks' rows."""
        ### BEGIN SOLUTION
        n_rows = torch.full((1,), float(len(x)))
        local_mean = x.sum(0) / n_rows.clamp(min=1)
        spread = (x - local_mean).square().sum(0)
        told = torch.cat([n_rows, local_mean, spread])
        everyone = [torch.empty_like(told) for _ in range(comm.world_size)]
        comm.all_gather(everyone, told)
        counts, means, spreads = torch.stack(everyone).split([1, x.shape[1], x.shape[1]], dim=1)
        n = counts.sum()
        mean = (counts * means).sum(0) / n
        spread = (spreads + counts * (means - mean).square()).sum(0)
        running_mean.lerp_(mean, momentum)
        running_var.lerp_(spread / (n - 1), momentum)
        scale = (spread / n + eps).rsqrt()
        x_hat = (x - mean) * scale
        ctx.comm, ctx.n = comm, n
        ctx.save_for_backward(x_hat, weight, scale)
        return x_hat * weight + bias
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_out: Tensor) -> tuple:
        """The gradients of forward's arguments: x's through all ranks' rows, weight's and bias's from this rank's."""
        ### BEGIN SOLUTION
        x_hat, weight, scale = ctx.saved_tensors
        bias_grad, weight_grad = grad_out.sum(0), (grad_out * x_hat).sum(0)
        sums = torch.cat([bias_grad, weight_grad])
        ctx.comm.all_reduce(sums)
        mean_g, mean_gx = (sums / ctx.n).chunk(2)
        x_grad = (grad_out - mean_g - x_hat * mean_gx) * weight * scale
        return None, x_grad, None, None, weight_grad, bias_grad, None, None
        ### END SOLUTION


def sync_batch_norm(
    comm: Comm,
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor,
    bias: Tensor,
    momentum: float,
    eps: float,
) -> Tensor:
    """Batch normalization of x (rows, channels) over the rows of all ranks, in training mode."""
    ### BEGIN SOLUTION
    return SyncBatchNorm.apply(comm, x, running_mean, running_var, weight, bias, momentum, eps)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-sync-bn-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("15-sync-bn", sync_batch_norm)

# %% [markdown]
# Now four ranks with 32 channels. How far are the normalized rows from those of one process with the whole batch?


# %%
def distance(n_rows: int, together: bool) -> float:
    """Root mean square distance from the whole batch's result, in standard deviations."""
    x = torch.randn(4, n_rows, 32, generator=torch.Generator().manual_seed(0))

    def normalized(comm: Comm) -> Tensor:
        zeros, ones = torch.zeros(32), torch.ones(32)
        if together:
            args = (zeros.clone(), ones.clone(), ones, zeros, 0.1, 1e-5)
            return sync_batch_norm(comm, x[comm.rank], *args)
        return F.batch_norm(x[comm.rank], None, None, training=True)

    whole = F.batch_norm(x.flatten(0, 1), None, None, training=True)
    return float((torch.cat(run_ranks(normalized, 4)) - whole).square().mean().sqrt())


normalized_by = labkit.each_written(
    {
        name: lambda together=together: {n: distance(n, together) for n in (2, 4, 8, 16, 32, 64)}
        for name, together in (("each rank its own rows", False), ("all ranks, yours", True))
    }
)

# %% tags=["figure"]
labkit.figures.normalization_error(normalized_by)

# %% [markdown]
# With two rows per rank every value becomes +1 or −1, whatever it was. The upper line falls slowly, with one over the
# square root of the number of rows. The lower line is the rounding of float32. With 64 rows per rank the difference is 0.14
# standard deviations. Most networks tolerate that, and then two collectives per layer are not worth their time.
#
# **In practice** `nn.SyncBatchNorm.convert_sync_batchnorm(model)` replaces all batch normalization layers before DDP
# wraps the model. It sends what you sent, on GPUs only. Layer normalization and RMSNorm (lab 00) take their statistics
# from a single row. That is one reason why transformers scale to many ranks without any of this.

# %% [markdown]
# ## Use gradients that come late
#
# Everything so far waits for the slowest rank. Why wait at all? In **asynchronous SGD**, every worker fetches the weights,
# computes a gradient, and sends it to a parameter server, which applies it at once. Nobody waits, but while one worker
# computes, the others have changed the weights. With $\tau + 1$ workers of equal speed, a gradient is $\tau$ steps old when
# it is applied:
#
# $$w_{t+1} = w_t - \eta\,\nabla L(w_{t-\tau})$$
#
# How much does this cost? Take the simplest loss, a valley of curvature $\lambda$ with its minimum at 0. Its gradient is
# $\lambda w$. Without a delay, a step multiplies $w$ by $1 - \eta\lambda$, so SGD is stable for $\eta < 2/\lambda$. With a
# delay, the weights overshoot before the gradient notices.

# %% [markdown]
# **Predict:** how many times smaller is the largest stable step size with $\tau = 8$ than without a delay?

# %% nbgrader={"grade": false, "grade_id": "15-predict-stale", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("stable step: 0 against 8 late", None, unit="times")

# %% [markdown]
# [[exercise 15-stale]]
#
# Write two functions.
#
# - `stale_sgd(gradient, weights, lr, delay, n_steps)` returns a list of the weights after each step. `gradient(w)`
#   returns the gradient at `w`; call it once in each step, on the weights of `delay` steps ago. As long as there are
#   no such weights, use the first ones. Leave `weights` as it is.
# - `largest_stable_lr(curvature, delay)` returns the step size $\eta$ up to which the weights converge to the minimum. An
#   error of 1 % is accepted. You can derive it, or find it by trying.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Keep all weights so far in a list. After step $t$, which entry is $\tau$ steps old? For the second function, first ask how
# the answer depends on $\lambda$: only the product $\eta\lambda$ appears.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# By trying: run `stale_sgd` with $\lambda = 1$ for a few thousand steps, check whether the weights shrink, and
# bisect. By theory: $w_t = z^t$ solves the recursion if $z^{\tau+1} - z^\tau + \eta\lambda = 0$. At the limit of
# stability a root has $|z| = 1$, so put $z = e^{i\varphi}$.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# $z^\tau (1 - z) = \eta\lambda$ is real and positive for $\varphi = \pi/(2\tau+1)$, and there $|1 - z| = 2\sin(\varphi/2)$.
# So the answer is `2 * math.sin(math.pi / (2 * (2 * delay + 1))) / curvature`. In the loop: `old = kept[max(len(kept) - 1 -
# delay, 0)]`, and `kept.append(kept[-1] - lr * gradient(old))`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-stale", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stale_sgd(
    gradient: Callable[[Tensor], Tensor], weights: Tensor, lr: float, delay: int, n_steps: int
) -> list[Tensor]:
    """The weights after each of n_steps steps, on gradients of the weights of delay steps ago."""
    ### BEGIN SOLUTION
    kept = [weights]
    for _ in range(n_steps):
        old = kept[max(len(kept) - 1 - delay, 0)]
        kept.append(kept[-1] - lr * gradient(old))
    return kept[1:]
    ### END SOLUTION


def largest_stable_lr(curvature: float, delay: int) -> float:
    """The step size up to which SGD with this delay converges on a quadratic of this curvature."""
    ### BEGIN SOLUTION
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / curvature
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-stale-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("15-stale", stale_sgd, largest_stable_lr)

# %%
if written(largest_stable_lr):
    without, late = largest_stable_lr(1.0, 0), largest_stable_lr(1.0, 8)
    guesses.settle("stable step: 0 against 8 late", without / late)

# %% tags=["figure"]
labkit.figures.late_gradients(stale_sgd, largest_stable_lr)

# %% [markdown]
# Left: three runs of your `stale_sgd` with the same step size of 0.25. A gradient that is 2 steps old converges as well as a
# new one, and one that is 8 steps old makes the weights swing farther each time. Right: the line is your second function.
# Dots are runs that converge, crosses are runs that diverge.
#
# <details><summary>Check your prediction</summary>
#
# 10.8 times: from 2 to 0.185. For large $\tau$ the limit is about $\pi / ((2\tau + 1)\lambda)$, so it falls like one over the
# number of workers. Nine workers do nine times as many steps, but each may be only about a tenth as long.
#
# </details>
#
# **In practice** this is why synchronous training won on GPUs: a step that waits uses a gradient of the present weights. Late
# gradients survive where they are only one step old (some pipelines, lab 18), or where most workers touch different
# parameters, as in huge embedding tables.

# %% [markdown]
# ## Find out which rank this process is
#
# Only the program that starts a process knows its rank, and it tells the process in environment variables. Each launcher has
# names of its own. A script that knows only torchrun's works on a workstation. On the cluster every process believes that
# it is rank 0 of 1, and 64 GPUs train the same model 64 times. No error is raised.
#
# | launcher, in the order in which to look | rank | local rank | world size |
# |---|---|---|---|
# | `torchrun` | `RANK` | `LOCAL_RANK` | `WORLD_SIZE` |
# | `mpirun` of Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_LOCAL_RANK` | `OMPI_COMM_WORLD_SIZE` |
# | `mpirun` of MPICH and Intel MPI (Hydra) | `PMI_RANK` | `MPI_LOCALRANKID` | `PMI_SIZE` |
# | `srun` of Slurm | `SLURM_PROCID` | `SLURM_LOCALID` | `SLURM_NTASKS` |
#
# The **rank** counts over all nodes, the **local rank** within the process's own node: it chooses the GPU. Launchers can be
# nested, as in `srun torchrun`, where Slurm starts one torchrun per node and its own variables are still visible. That is
# why the order matters.
#
# The ranks also need a place to meet, the **rendezvous**: one host and one port, the same for all. torchrun sets
# `MASTER_ADDR` and `MASTER_PORT`. With `mpirun` the user exports them. In a Slurm job you can work them out, because all its
# processes see the same two variables. `SLURM_JOB_NODELIST` lists the hosts, of which the first will do, and
# `SLURM_JOB_ID` gives a port that two jobs on one node are unlikely to share. Slurm writes node lists in a short form, and
# `first_host` of the next cell reads it:
#
# | list | its first host |
# |---|---|
# | `node[01-04,7]` | `node01` |
# | `gpu7,gpu[11-12]` | `gpu7` |
# | `a100-[08,10-12]-ib,login1` | `a100-08-ib` |

# %%
print(*map(first_host, ("node[01-04,7]", "gpu7,gpu[11-12]", "a100-[08,10-12]-ib,login1")), sep="\n")

# %% [markdown]
# **Predict:** a job of 2 nodes with 4 GPUs each is started by
# `srun --ntasks-per-node=1 torchrun --nproc-per-node=4 train.py`. What is `SLURM_NTASKS` in the processes that train?

# %% nbgrader={"grade": false, "grade_id": "15-predict-ntasks", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("SLURM_NTASKS", None, exact=True)

# %% [markdown]
# [[exercise 15-env]]
#
# Write `read_environment(env)`. `env` is a mapping from names to strings; do not look at `os.environ`. Return a dict with
# `rank`, `local_rank`, `world_size` and `master_port`, each an int, and `master_addr`.
#
# - The launcher is the first in the table for which *all three* variables are set. If there is none, it is the first for
#   which any is set. If there is none of these either, it is torchrun.
# - `MASTER_ADDR` and `MASTER_PORT` count wherever they are set, under every launcher. Otherwise the host is
#   `first_host(env["SLURM_JOB_NODELIST"])`, and the port is 15000 plus the last four digits of `SLURM_JOB_ID`.
# - If anything is missing, raise one `ValueError` whose text names every missing variable, and none that is set: those
#   of the launcher's three, and `MASTER_ADDR` or `MASTER_PORT` if they cannot be worked out.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The table is data: write it down as data, and one loop serves all launchers. First find out what is missing, and only
# then look things up.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Make three lists of rows of the table: those with all names in `env`, those with any, and torchrun's. The first row of
# their sum is the launcher. Put what the Slurm job tells into a dict with the keys `MASTER_ADDR` and `MASTER_PORT`, and
# `env` over it: `known = {**from_slurm, **env}`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `missing = [name for name in (*names, "MASTER_ADDR", "MASTER_PORT") if name not in known]`, and
# `raise ValueError(", ".join(missing))` if that is not empty. Then every name can be looked up in `known`, as a text, which
# `int` turns into a number.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-env", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_environment(env: Mapping[str, str]) -> dict[str, int | str]:
    """rank, local_rank, world_size, master_addr and master_port of the process with these variables."""
    ### BEGIN SOLUTION
    complete = [names for names in LAUNCHERS if all(name in env for name in names)]
    partly = [names for names in LAUNCHERS if any(name in env for name in names)]
    names = (complete + partly + LAUNCHERS)[0]
    # What a Slurm job lets us work out; whatever is set comes before it.
    known = {**rendezvous_of_job(env), **env}
    if missing := [name for name in (*names, "MASTER_ADDR", "MASTER_PORT") if name not in known]:
        raise ValueError(f"not set: {', '.join(missing)}")
    rank, local_rank, world_size = (int(env[name]) for name in names)
    return {
        "rank": rank,
        "local_rank": local_rank,
        "world_size": world_size,
        "master_addr": known["MASTER_ADDR"],
        "master_port": int(known["MASTER_PORT"]),
    }


LAUNCHERS = [
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
]


def rendezvous_of_job(env: Mapping[str, str]) -> dict[str, str]:
    """MASTER_ADDR and MASTER_PORT, as far as the variables of a Slurm job give them."""
    found = {}
    if "SLURM_JOB_NODELIST" in env:
        found["MASTER_ADDR"] = first_host(env["SLURM_JOB_NODELIST"])
    if "SLURM_JOB_ID" in env:
        found["MASTER_PORT"] = str(15_000 + int(env["SLURM_JOB_ID"]) % 10_000)
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-env-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("15-env", read_environment)

# %%
processes = {
    "torchrun": Launched("torchrun"),
    "mpirun (Open MPI)": Launched("openmpi", exported=True),
    "mpirun (Hydra)": Launched("hydra", exported=True),
    "srun": Launched("slurm"),
    "srun torchrun": Launched("torchrun", around="slurm"),
}
print(f"{'started by':22}{'rank':>5}{'local':>7}{'of':>4}   rendezvous")
for started_by, process in processes.items() if written(read_environment) else ():
    place = read_environment(variables(process))
    numbers = f"{place['rank']:>5}{place['local_rank']:>7}{place['world_size']:>4}"
    print(f"{started_by:22}{numbers}   {place['master_addr']}:{place['master_port']}")
guesses.settle("SLURM_NTASKS", int(variables(processes["srun torchrun"])["SLURM_NTASKS"]))

# %% [markdown]
# It is the same process each time, the third on the second node, seen through five launchers.
#
# <details><summary>Check your prediction</summary>
#
# 2, because Slurm started two tasks: one torchrun per node. (With `srun --ntasks-per-node=4 python train.py` it would be 8.)
# Many scripts look at `SLURM_NTASKS` first. Under `srun torchrun` they set up a job of two ranks, each of them four times.
#
# </details>
#
# **In practice** `torch.distributed.init_process_group()` reads `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`, and
# none of the other launchers' variables. Translate first, and choose the GPU before you put anything on it:
#
# ```python
# place = read_environment(os.environ)
# torch.cuda.set_device(place["local_rank"])
# rendezvous = f"tcp://{place['master_addr']}:{place['master_port']}"
# dist.init_process_group("nccl", rendezvous, rank=place["rank"], world_size=place["world_size"])
# ```
#
# Lightning, Accelerate and DeepSpeed each carry a function like yours.

# %% [markdown]
# ## Survive the loss of a rank
#
# Data parallel training has a weakness that a single process does not have: when one rank is gone, the next all-reduce fails
# on all others. Sixteen thousand GPUs trained Llama 3 405B for 54 days, and 419 times a part of the machine failed
# unexpectedly, once in three hours. No person restarts that by hand. The launcher notices that a process has ended, ends
# the others, and starts all ranks again. **The new processes know of the old ones only what was saved to disk.**
#
# | launcher | starts | after a rank died |
# |---|---|---|
# | `torchrun` | an agent on each node, which starts its ranks | the agents meet again and start all ranks anew, up to `--max-restarts` times; with `--nnodes=2:4` also with fewer nodes or with new ones (*elastic* training) |
# | Slurm's `srun` | all ranks of the job | the job ends; with `--requeue` it is put into the queue again |
# | MPI's `mpirun` | all ranks | all are ended; Horovod's elastic mode starts ranks again around it |
#
# None of them restores a variable. If a restarted training has another loss curve than one that was left alone, then
# something that belongs to the state of the training was not saved.
#
# **Before you read on:** SGD with momentum trains a model on shuffled batches with noise added, and a rank is killed after
# step 13. Write down what has to be saved besides the parameters so that step 14 gives the same loss. There are three
# things. (The script and its settings are still there.)

# %% [markdown]
# ### The job
#
# `torchrun` runs `python train.py FOLDER` on two ranks, without a GPU (backend `"gloo"`). `FOLDER/job.pt` is a dict, which
# you read with `torch.load`:
#
# | key | is |
# |---|---|
# | `x`, `y` | the dataset: (n, features) and (n, 1), float32 |
# | `model` | the state dict from which an `nn.Linear(features, 1)` starts |
# | `lr`, `momentum` | of `torch.optim.SGD` |
# | `n_epochs`, `batch` | epochs, and rows that **each rank** takes in a step; 2 × `batch` divides the number of rows |
# | `seed` | of the sampler; and `seed + rank` of each rank's own noise |
# | `noise` | the noise's standard deviation |
# | `every` | a checkpoint after each step whose number is a multiple of this |
#
# Each rank takes its rows from `DistributedSampler(job["x"], seed=job["seed"])` in that order, `batch` at a time. The
# epochs count from 0 and are set with `set_epoch`. A step adds `job["noise"] * torch.randn(x.shape, generator=generator)` to the
# rows' `x`, where `generator` is a `torch.Generator` that is seeded once, before the first step. The loss is
# `mse_loss` (a mean over the rows), and gradients are averaged over the ranks.
#
# The checkpoint is `FOLDER/checkpoint.pt`, a dict written with `torch.save`. What it holds is folded, because it gives away
# your list; the exercise needs it.
#
# <details><summary>Check your list, and see the keys of the checkpoint</summary>
#
# The momentum (the optimizer's state), the number of the step (epoch and place in it follow from it; the sampler's seed is
# in `job.pt`), and the state of each rank's noise generator. The losses are kept for the record.
#
# | key | is |
# |---|---|
# | `step` | the number of steps done, an int |
# | `model`, `optimizer` | the two state dicts (of the `nn.Linear` itself, not of a wrapper around it) |
# | `generators` | a list: the state of each rank's generator, by rank |
# | `losses` | a list: for each step done, the loss before its update, mean over both ranks |
#
# </details>
#
# If this file is there when the script starts, the training continues from it. At the end rank 0 saves `losses` and `model`
# to `FOLDER/result.pt`.
#
# A rank can also be killed *while* it writes. A half-written file must not replace the last good one.

# %% [markdown]
# **Predict:** checkpoints come every 10 steps. A rank dies after step 27. Later rank 0 dies while it writes the checkpoint
# of step 40. How many steps are computed twice in all?

# %% nbgrader={"grade": false, "grade_id": "15-predict-steps-twice", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("steps computed twice", None, exact=True)

# %% [markdown]
# [[exercise 15-launch]]
#
# Write the script. The check launches it and kills a rank twice: one after a step, and rank 0 in the middle of a save. It
# takes some seconds, because it really starts processes, and more than a minute if ranks wait for each other forever.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Step `s` lies in epoch `s // steps_per_epoch`, and `s % steps_per_epoch` batches of that epoch are done. If the loop
# depends on nothing but the step, a restart is a start with another step.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# One process writes the checkpoint, but only each rank itself knows the state of its generator: gather the states first, on
# all ranks. `os.replace(a, b)` renames a file in one go: a process that opens `b` sees either the old file or the new one.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `generator.get_state()` is a tensor of bytes: `dist.all_gather` takes it. Rank 0 saves to `folder / "checkpoint.tmp"`
# and then calls `os.replace(folder / "checkpoint.tmp", folder / "checkpoint.pt")`. At the start, on every rank:
# `model.load_state_dict(kept["model"])`, the same for the optimizer, `generator.set_state(kept["generators"][rank])`.
# Wrap the model in `DistributedDataParallel` after that, and keep the `nn.Linear` under its own name.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "15-launch", "locked": false, "schema_version": 3, "solution": true, "task": false}
# %%writefile train.py
"""Train on FOLDER/job.pt under torchrun, whatever happens to a rank: python train.py FOLDER"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def main(folder: Path) -> None:
    """Train, keep folder/checkpoint.pt, and leave folder/result.pt."""
    ### BEGIN SOLUTION
    dist.init_process_group("gloo")
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    job, checkpoint = torch.load(folder / "job.pt"), folder / "checkpoint.pt"
    model = torch.nn.Linear(job["x"].shape[1], 1)
    model.load_state_dict(job["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=job["lr"], momentum=job["momentum"])
    generator = torch.Generator().manual_seed(job["seed"] + rank)
    step, losses = 0, []
    if checkpoint.exists():
        kept = torch.load(checkpoint)
        step, losses = kept["step"], kept["losses"]
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        generator.set_state(kept["generators"][rank])

    replica = DistributedDataParallel(model)
    sampler = DistributedSampler(job["x"], seed=job["seed"])
    steps_per_epoch = len(sampler) // job["batch"]
    while step < job["n_epochs"] * steps_per_epoch:
        epoch, n_done = divmod(step, steps_per_epoch)
        sampler.set_epoch(epoch)
        rows = list(sampler)[n_done * job["batch"] : (n_done + 1) * job["batch"]]
        x = job["x"][rows]
        x = x + job["noise"] * torch.randn(x.shape, generator=generator)
        loss = mse_loss(replica(x), job["y"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / n_ranks)
        step += 1
        if step % job["every"] == 0:
            states = [torch.empty_like(generator.get_state()) for _ in range(n_ranks)]
            dist.all_gather(states, generator.get_state())
            if rank == 0:
                kept = {"step": step, "generators": states, "losses": losses}
                kept |= {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(kept, folder / "checkpoint.tmp")
                os.replace(folder / "checkpoint.tmp", checkpoint)

    if rank == 0:
        torch.save({"losses": losses, "model": model.state_dict()}, folder / "result.pt")
    dist.destroy_process_group()
    ### END SOLUTION


if __name__ == "__main__":
    main(Path(sys.argv[1]))

# %% nbgrader={"grade": true, "grade_id": "15-launch-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
script = Path("train.py").read_text()
check("15-launch", script)

# %% tags=["figure"]
undisturbed_and_killed = launch_twice(script) if written(script) else ()
for killed in undisturbed_and_killed[1:]:
    guesses.settle("steps computed twice", killed.n_twice)
labkit.figures.killed_run(*undisturbed_and_killed) if undisturbed_and_killed else None

# %% [markdown]
# Your own script, launched twice: once left alone (the line), once with two kills (the dots). Every dot has to lie on the
# line. The steps after the last complete checkpoint are shaded: they were computed twice.
#
# <details><summary>Check your prediction</summary>
#
# 17: the first kill costs the 7 steps since step 20. The second costs 10, because the checkpoint of step 40 is not complete
# and the training continues from step 30.
#
# </details>

# %% [markdown]
# How often should you save? If a checkpoint takes $C$ seconds, a failure comes every $M$ seconds on average, and a
# checkpoint is written every $T$ seconds, then the share of time lost is about $C/T + T/2M$. It is smallest at
# $T = \sqrt{2CM}$ (Young, 1974). For a failure every 3 hours and a checkpoint that takes 60 s:

# %%
checkpoint_s, failure_s = 60, 3 * 3600
best_s = math.sqrt(2 * checkpoint_s * failure_s)
lost = checkpoint_s / best_s + best_s / (2 * failure_s)
print(f"a checkpoint every {best_s / 60:.0f} min; {lost:.1%} of the time is lost")

# %% [markdown]
# ### What `torchrun` does for it
#
# This is what the check and the figure ran, without their kills:
#
# ```
# TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 torchrun --nproc-per-node=2 --max-restarts=3 \
#     --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:0 --local-addr=127.0.0.1 train.py FOLDER
# ```
#
# At the rendezvous the ranks find each other again after each start. Here they meet in a store that torchrun's agent keeps
# on a free port. The variable makes each start use a new store. Without it, gloo's ranks of the second start can find the
# addresses of the dead ones in the old store and fail to connect (PyTorch 2.13; issue 135712 of pytorch/pytorch reports the
# same for NCCL).
#
# ### In practice
#
# Your script does not scale in one respect: rank 0 holds the whole state and writes it alone, while the others wait. With a
# model of 405 billion parameters the state is several terabytes. With `torch.distributed.checkpoint` every rank writes what
# it holds. A *metadata* file, which is written last and renamed as you renamed yours, makes the checkpoint valid. Another
# number of ranks can read it (lab 16 does that by hand), and `async_save` writes from a copy while the training continues.

# %%
import torch.distributed.checkpoint as dcp

kept = {"step": 27, "model": nn.Linear(1000, 1000).state_dict()}
with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    # There is only one process here, and PyTorch warns about that each time.
    warnings.simplefilter("ignore")
    dcp.save(kept, checkpoint_id=folder, no_dist=True)
    for path in sorted(Path(folder).iterdir()):
        print(f"{path.name:14} {path.stat().st_size / 1e6:.3f} MB")
    read = {
        "step": 0,
        "model": {name: torch.empty_like(value) for name, value in kept["model"].items()},
    }
    dcp.load(read, checkpoint_id=folder, no_dist=True)
print(
    "read back: step",
    read["step"],
    "and equal weights:",
    read["model"]["weight"].equal(kept["model"]["weight"]),
)

# %% [markdown]
# ## What you measured
#
# One step of four ranks on the network of the opening: twelve blocks, 120 ms of backward pass.

# %%
rows = {"one by one": one_by_one}
for name, step in steps.items():
    rows[
        "averaged in the optimizer" if name == "the optimizer" else f"DDP, a bucket for {name}"
    ] = step
print(f"{'feature':36}{'calls':>7}{'step':>9}{'work of 4 ranks':>17}")
for name, step in rows.items():
    work = job.n_ranks * step.backward_s / step.step_s
    print(f"{name:36}{len(step.reduces):>7}{1e3 * step.step_s:>6.0f} ms{work:>17.2f}")
print(f"\n{'4 micro-batches':36}{'calls':>7}{'sent':>11}")
for name, (n_calls, n_bytes, _) in micro.items():
    print(f"{name:36}{n_calls:>7}{n_bytes / 1024:>7.0f} KiB")

# %% [markdown]
# | feature | speed | memory a rank | where it ends |
# |---|---|---|---|
# | data parallel | nearly $n$ times the work | saves nothing: a whole model per rank | the model has to fit; the batch grows with $n$ (lab 04) |
# | buckets | latency paid once per bucket | one more copy of the gradients | the last bucket is never hidden |
# | overlap | hides all but the last bucket | the buckets under way | a network slower than the backward pass |
# | accumulation without communication | one all-reduce for many micro-batches | activations of one micro-batch | the batch grows |
# | averaging in the optimizer | nothing is hidden | one copy of the gradients | simple; no wrapper around the model |
# | late gradients | nobody waits | a parameter server | the stable step shrinks with the number of workers |
# | synchronized batch normalization | two calls per layer that nothing hides | none | only worth it with few rows per rank |
#
# Every rank still holds a whole model, its gradients and its optimizer states. Lab 16 changes that.
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("15", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "15",
    "DDP with buckets, 4 ranks",
    speed=lambda: (
        f"{job.n_ranks * steps['a block'].backward_s / steps['a block'].step_s:.2f} x the work of one rank"
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) Two ranks train with DDP in float32. After a thousand steps the weights of the two ranks still have
# the same bits, but not the bits of a run in one process with the whole batch. Explain both. Name two mistakes in a
# training script after which the *ranks* would differ without any error.

# %% [markdown] nbgrader={"grade": true, "grade_id": "15-open-same-bits", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The ranks: an all-reduce hands the same bits to all of them (one order of additions, the result is passed on), they
# start from the same broadcast weights, and the optimizer is the same deterministic function of both. One process: it
# adds the rows' contributions in another order and divides elsewhere (mean of means against mean of all), and float
# addition is not associative (lab 02). The differences of 1e-7 grow with the steps.
#
# Mistakes: no broadcast (or different seeds with one's own wrapper); buffers that differ (batch norm's running
# statistics); clipping, skipping or scaling decided from local gradients; a learning rate from local losses
# (ReduceLROnPlateau on each rank's own loss); parameters changed outside of the optimizer on one rank; a parameter added
# after wrapping.
#
# Marks: 1/2 for the ranks (same result of the all-reduce and same start), 1/2 for the order of additions. 1/2 for each
# mistake that really makes replicas differ. "Different data" is not one: the gradients are averaged.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) A model has 1.3 billion parameters, gradients in bfloat16, and a backward pass of 0.25 s. You have 8
# GPUs in one node with 200 GB/s between any two, and you may add a second node, connected by one port of 25 GB/s. With
# a ring and perfect overlap: does the traffic of the gradients hide behind the backward pass on 8 GPUs, and on 16? If
# not, what do you change, and what does each change cost? Give seconds.

# %% [markdown] nbgrader={"grade": true, "grade_id": "15-open-second-node", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Gradients: 1.3e9 x 2 bytes = 2.6 GB. A ring sends 2 (n-1)/n of that over each wire. 8 cards: 2 x 7/8 x 2.6 = 4.55 GB at
# 200 GB/s = 0.023 s, hidden easily. 16 cards: 2 x 15/16 x 2.6 = 4.9 GB over the slowest wire, 25 GB/s: 0.195 s. It just
# fits into 0.25 s, if the port gives its full rate and the last bucket is small; with half the rate (0.39 s) it does not,
# and a step takes at least that.
#
# Changes: accumulate over k micro-batches without communication (traffic per work divided by k; the batch grows k
# times); a hierarchical all-reduce does not help a ring that crosses once (the ring in rank order already crosses each
# port once each way), but does if ranks are dealt badly; fewer bits (compressed gradients; noise); a larger
# batch a card (memory; batch size); more ports (money); a first bucket small and buckets not too large.
#
# Marks: 1 for 2.6 GB and the factor 2 (n-1)/n. 1 for both times (a factor of 2 is fine) compared with 0.25 s. 1/2 for
# saying that the slowest wire counts. 1/2 for a change with its price.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Shen Li and others, *PyTorch Distributed: Experiences on Accelerating Data Parallel Training* (VLDB 2020). Buckets,
#   overlap, unused parameters: what you have written, and how much it helped.
# - PyTorch's design note *Distributed Data Parallel*, with the life of a gradient from hook to bucket.
# - Priya Goyal and others, *Accurate, Large Minibatch SGD* (2017). What else has to change when $n$ times the rows go
#   into a step. Its section on pitfalls is a list of wrong answers to this lab.
# - *Torch Distributed Elastic* in PyTorch's documentation: what `torchrun` does when a rank dies.
#
# **Sources.** The texts above, and PyTorch's documentation of `DistributedDataParallel`, `DistributedSampler`,
# `SyncBatchNorm`, `GradScaler` and the generic `Join` context. Horovod: Alexander Sergeev and Mike Del Balso, *Horovod:
# fast and easy distributed deep learning in TensorFlow* (2018). Parameter servers: Mu Li and others, *Scaling Distributed
# Machine Learning with the Parameter Server* (OSDI 2014). Tables on different ranks: Maxim Naumov and others, *Deep
# Learning Recommendation Model for Personalization and Recommendation Systems* (2019). Batch normalization over several
# cards: Chao Peng and others, *MegDet: A Large Mini-Batch Object Detector* (2018). Combining means and variances: Tony
# Chan, Gene Golub and Randall LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing Sample Variances*
# (1979). The 419 failures: *The Llama 3 Herd of Models* (2024), section 3.3.4. Checkpoint intervals: John Young, *A First
# Order Approximation to the Optimum Checkpoint Interval* (1974). Limits of late gradients: Ioannis
# Mitliagkas and others, *Asynchrony Begets Momentum* (2016), and the standard stability condition of $x_{t+1} = x_t - a\,x_{t-k}$
# (Simon Levin and Robert May, *A Note on Difference-Delay Equations*, 1976).
