# %% [markdown]
# # Lab 15: Data parallel
#
# Your script takes 120 seconds for the backward pass of a step on one card. You rent four, give each its own rows, and
# average the gradients. The first version of everybody's script sends each gradient as soon as it is there and waits
# until it has arrived. Four cards should do four times the work; yours do that of one and a half. **Where have the
# others gone?**
#
# You will write PyTorch's `DistributedDataParallel` from hooks and buckets, accumulate gradients in silence, let ranks
# decide together, deal out the data, normalize over all ranks, and launch a job that survives the loss of a rank.
#
# [[time]]
#
# You need all-reduce (lab 14), autograd hooks, and for one section the loss scale of lab 03.

# %% nbgrader={"grade": false, "grade_id": "15-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import contextlib
import math
import re
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
from labkit import check, progress, run_ranks, track_comm
from labkit.exercises.lab15.ddp import Job
from labkit.exercises.lab15.env import Launched, variables
from labkit.material.lab15 import launch_twice, timeline
from labkit.ranks import Comm

# %% [markdown]
# Here is the question, measured: four simulated ranks on a virtual clock, and a network with 12 blocks, each of which
# takes 10 s of backward pass.


# %%
class OneByOne(nn.Module):
    """Averages every gradient in its hook, and waits for it there."""

    def __init__(self, module, comm, bucket_bytes):
        super().__init__()
        self.module = module
        for tensor in module.state_dict().values():
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
print(f"backward pass alone {one_by_one.backward_s:.0f} s, the step {one_by_one.step_s:.0f} s")
print(f"four ranks do the work of {work:.1f}")

# %% [markdown]
# No byte of this can be saved: every gradient has to travel, and with your class it will travel over the same network
# and hide almost completely.

# %% [markdown]
# ## One model, many copies
#
# Every rank holds the whole model and sees other rows. The loss is a mean over rows, and the gradient of a mean is the
# mean of the gradients. With $n$ ranks of equally many rows
#
# $$\nabla L = \frac{1}{n} \sum_{r=0}^{n-1} \nabla L_r ,$$
#
# so one all-reduce gives every rank the gradient that one process would have computed from all rows. If all copies
# start with the same weights and take the same step, they stay the same, *to the last bit*, without ever sending a
# weight again. Nothing else keeps them together: a rank that starts from other weights, or clips before the average,
# trains another network, and no error is raised.

# %% [markdown]
# ### What came before
#
# `torch.nn.DataParallel` is one line, and is on its way out. One process drives all cards with a thread each: it copies
# the model to every card in *every* forward pass, collects the outputs on the first one, and its threads share one
# Python interpreter lock. It cannot leave its machine. *Parameter servers* keep the weights on hosts of their own, whose
# network ports carry the gradients of all workers. *Horovod* (2017) brought the ring from high-performance computing:
# one process a card, started by `mpirun`, `hvd.allreduce` in the optimizer. `DistributedDataParallel` (DDP) does the same
# from inside of autograd, where it can begin before the backward pass is over.

# %% [markdown]
# ## Buckets that leave early
#
# The gradient of the last layer is ready first, and nothing will change it. It can travel while the other layers are
# still computing theirs. Two things stand in the way. A wait in the hook stops the backward pass. And each call costs
# its latency $\alpha$ anew: an all-reduce of $B$ bytes on a ring takes $2(n-1)\left(\alpha + \frac{B}{n\,b}\right)$
# seconds, with $b$ the bandwidth in bytes/s. So gradients share calls, in *buckets*. With a backward pass of $T$ seconds
# a step takes about
#
# $$T + 2(n-1)\left(\alpha + \frac{B_\text{last}}{n\,b}\right) ,$$
#
# as long as the network keeps up: only the last bucket, which holds the first layers, cannot hide behind anything.

# %% [markdown]
# **Predict:** the network above has 12 blocks of 10 s. An all-reduce of one block's gradients takes 9 s, and each call
# costs 6 s of these. Before the blocks stand an embedding and a layer that nobody calls: three parameters, 2 s of bytes
# in all, not complete until the backward pass is over. How long is a step with a bucket for each parameter (two a
# block), for each block, for three blocks, and for everything?
#
# [[exercise 15-ddp]]
#
# Write the class `DDP` and the function `train_step`. `comm` has `broadcast(tensor, src)` and
# `all_reduce(tensor, op="avg", async_op=True)`, which returns an object with a `wait()`.
#
# - **Start:** all parameters and buffers become those of rank 0.
# - **Buckets:** parameters are dealt from the last of `module.parameters()` to the first. A bucket closes when its
#   gradients reach `bucket_bytes`; what is left is the last bucket. Its all-reduce is one call.
# - **Overlap:** a bucket leaves in the hook of the gradient that completes it, and nobody waits there.
# - **Order:** every rank sends the buckets in the same order. Ranks may complete them in different orders, and a
#   parameter may get no gradient at all, on one rank or on all: it counts as zero.
# - **The end:** `finish()` sends what has not left, waits for all, and puts the averages into `.grad`.
# - `train_step` runs the backward pass, waits, clips the gradient to `max_norm`, steps, and clears the gradients.
#
# All parameters are float32. Two layers of the model share one weight.
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
# Keep the number of the next bucket to send. The hook takes one from its bucket's count; then, while the *next* bucket
# is complete, send that. A bucket that is complete early waits for those before it. `finish` sends the rest in order,
# with zeros where `.grad` is None, and then waits.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# To send: `flat = torch.cat([p.grad.flatten() for p in bucket])`, and keep `(flat, comm.all_reduce(flat, op="avg",
# async_op=True))` in a list; its length is the number of the next bucket. In `finish`, after `work.wait()`:
# `for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])): p.grad = mean.view_as(p)`. Do not forget to set
# the counts back.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "15-ddp", "locked": false, "schema_version": 3, "solution": true, "task": false}
class DDP(nn.Module):
    def __init__(self, module: nn.Module, comm: Comm, bucket_bytes: int) -> None:
        """Start all ranks from rank 0's weights, deal out the buckets, and set the hooks."""
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
# One step of your class on the network from the beginning, with four caps:

# %% tags=["figure"]
CAPS = {
    "a bucket for each parameter": 0.01,
    "for each block": 1,
    "for 3 blocks": 3,
    "one bucket": 100,
}
steps = {
    name: timeline(DDP, train_step, replace(job, cap_blocks=cap)) for name, cap in CAPS.items()
}
labkit.figures.ddp_timeline(steps)

# %% [markdown]
# Look at what stands to the right of the dashed line: that is all you pay for.
#
# - A bucket for each parameter: 27 calls with 6 s of latency each last longer than the 120 s of the backward pass, so a
#   queue builds up.
# - For each block, for three: all but the end travels for free. 9 s or 15 s are left for the last blocks, and 8 s for
#   the embedding and the layer that nobody calls.
# - One bucket has nothing to hide behind: 6 s of latency, 3 s for each block, and 2 s for the rest.

# %% [markdown]
# Now the cap, and the number of ranks (for 8 blocks and a tenth of the latency). Nodes have 8 ranks; from 9 on the ring
# also crosses a wire that is 1.5 times as slow.

# %% tags=["figure"]
by_cap = {
    cap: timeline(DDP, train_step, replace(job, cap_blocks=cap)).step_s
    for cap in (CAPS["a bucket for each parameter"], 0.5, 1, 2, 4, 13)
}
small = replace(job, n_blocks=8)
by_ranks = {
    name: {
        n: timeline(DDP, train_step, replace(small, n_ranks=n, cap_blocks=CAPS[name]), 0.1).step_s
        for n in (1, 2, 4, 8, 16)
    }
    for name in ("for each block", "for 3 blocks", "one bucket")
}
labkit.figures.ddp_scaling(by_cap, one_by_one.backward_s, by_ranks)

# %% [markdown]
# Left: too small a cap pays latency, too large a cap pays the wait for the last bucket. PyTorch's default is 25 MiB (a
# first one of 1 MiB, so that something leaves early). Right: every rank has a batch of its own, so $n$ ranks do at most
# $n$ times the work (*weak scaling*). What bends the curves is not the bytes, of which a rank sends nearly the same for
# every $n$, but what the backward pass cannot cover.

# %% [markdown]
# ### Beside PyTorch's own
#
# Two real processes that talk over gloo, 32 rows each and three steps, once with your class and once with
# `DistributedDataParallel`. `track_comm` counts what each of them asks of the network.


# %%
def small_model() -> nn.Sequential:
    return nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)), nn.Linear(64, 1))


def train_three_steps(comm: Comm, wrap: str) -> tuple[list[float], int, int]:
    """(losses averaged over the ranks, all-reduce calls of the last step, of which inside of backward)."""
    torch.manual_seed(comm.rank)
    model = small_model()
    if wrap == "yours":
        ddp = DDP(model, comm, 64 * 65 * 4)
    else:
        ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=64 * 65 * 4 / 2**20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + comm.rank)
    losses = []
    for _ in range(3):
        x = torch.randn(32, 64)
        with track_comm() as log:
            loss = F.mse_loss(ddp(x), x[:, :1])
            step = train_step if wrap == "yours" else step_at_once
            step(ddp, optimizer, loss, max_norm=1.0)
        mean = loss.detach().clone()
        comm.all_reduce(mean, op="avg")
        losses.append(round(mean.item(), 5))
    reduces = [call for call in log.calls if call.name == "all_reduce"]
    return losses, len(reduces), sum(call.in_backward for call in reduces)


for wrap in ("yours", "DistributedDataParallel"):
    ranks = run_ranks(partial(train_three_steps, wrap=wrap), 2, backend="gloo")
    losses, n_calls, n_inside = ranks[0]
    print(f"{wrap:24} losses {losses}, calls a step: {n_calls}, inside of backward: {n_inside}")

# %% [markdown]
# The same losses from the same number of calls. **In practice** you write
#
# ```python
# torch.distributed.init_process_group("nccl")
# ddp = DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])
# ```
#
# and nothing else changes; backward itself waits at its end, so there is no `finish`. After the first step PyTorch deals
# the buckets anew, in the order in which the gradients came. Three of its arguments you now know from inside:
#
# - `bucket_cap_mb` is your `bucket_bytes`, in MiB.
# - `find_unused_parameters=True` walks through the graph after each forward pass and marks parameters without a gradient
#   as ready, so that their bucket does not have to wait for the end. Without it PyTorch stops with an error when one is
#   missing.
# - `static_graph=True` does that walk once.
#
# And `with ddp.join():` lets a rank that has run out of data answer the others' all-reduces with zeros.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Accumulate in silence
#
# A batch that does not fit into memory is taken in parts, *micro-batches*, whose gradients add up in `.grad` (lab 04).
# DDP sends all gradients in every backward pass, and does not know that three out of four will change again. On a slow
# network this makes accumulation four times as expensive as it has to be, and nobody notices, because the *values are
# right*: an average of sums is a sum of averages.
#
# **Predict:** a model of 7 billion parameters with 16-bit gradients accumulates over 8 micro-batches on a ring of many
# ranks. How many bytes does a rank send in a step, with and without silence?
#
# [[exercise 15-no-sync]]
#
# The check gives you `ddp`, a wrapper that works like `OneByOne` above, and like PyTorch's looks *in its forward pass*
# at the attribute `ddp.require_backward_grad_sync`: if it is False, the backward pass that belongs to it sends nothing.
#
# - `no_sync(ddp)` is a context manager. Inside, the attribute is False; afterwards it is what it was before, also after
#   an error, which it lets through, and also where two of them are nested.
# - `accumulate(ddp, batches, loss_of)` leaves in `.grad` the gradient of the mean over *all rows of all ranks*. `batches`
#   is a list of `(x, y)`; `loss_of(ddp, (x, y))` runs the forward pass and returns the mean loss of these rows.
#   Micro-batches may have different numbers of rows, in total every rank has the same number. Each goes backward before
#   the next goes forward, and only the last micro-step sends.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The mean over all rows is not the mean of the micro-batches' means, unless they are equally large. And the wrapper
# decides in forward: what has to be inside of `no_sync`?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A generator with `@contextlib.contextmanager`: remember the attribute, set it to False, `yield`, and put back what you
# remembered, in a `finally`. For the other: multiply each loss with `len(x) / n_rows`, and run forward and backward of
# all but the last inside of `no_sync`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `silent = no_sync(ddp) if number < len(batches) else contextlib.nullcontext()`, with `number` from
# `enumerate(batches, 1)`, and then `with silent: (loss_of(ddp, (x, y)) * len(x) / n_rows).backward()`.
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
    """Leave the gradient of the mean over all rows in .grad; only the last micro-step sends."""
    ### BEGIN SOLUTION
    n_rows = sum(len(x) for x, _ in batches)
    for number, (x, y) in enumerate(batches, 1):
        silent = no_sync(ddp) if number < len(batches) else contextlib.nullcontext()
        with silent:
            (loss_of(ddp, (x, y)) * len(x) / n_rows).backward()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-no-sync-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("15-no-sync", no_sync, accumulate)

# %% [markdown]
# PyTorch's class has the same attribute, so your two functions drive it, too. Two real ranks, one step of four
# micro-batches, with `accumulate` and with a plain loop:


# %%
def four_micro_batches(comm: Comm, quiet: bool) -> tuple[int, int, float]:
    """(all-reduce calls, their bytes, norm of the gradient) of one step on PyTorch's own class."""
    torch.manual_seed(comm.rank)
    ddp = nn.parallel.DistributedDataParallel(small_model())
    torch.manual_seed(100 + comm.rank)
    xs = torch.randn(4, 2, 64)
    batches = [(x, x[:, :1]) for x in xs]

    def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.mse_loss(model(batch[0]), batch[1])

    with track_comm() as log:
        if quiet:
            accumulate(ddp, batches, loss_of)
        else:
            for batch in batches:
                (loss_of(ddp, batch) / len(batches)).backward()
    norm = nn.utils.get_total_norm([p.grad for p in ddp.parameters()]).item()
    reduces = [call for call in log.calls if call.name == "all_reduce"]
    return len(reduces), sum(call.n_bytes for call in reduces), round(norm, 5)


micro = {}
for name, quiet in (("a plain loop", False), ("accumulate", True)):
    micro[name] = run_ranks(partial(four_micro_batches, quiet=quiet), 2, backend="gloo")[0]
    n_calls, n_bytes, norm = micro[name]
    print(f"{name:14} calls {n_calls}, bytes {n_bytes:>7,}, norm of the gradient {norm}")

# %% [markdown]
# A quarter of the traffic, the same gradient. **In practice** the context is the method `ddp.no_sync()`, and the
# pitfall is the one that the check tries: a forward pass outside of it sends, whatever is around backward. For the
# prediction: a ring sends nearly twice the gradients, $2 \cdot 14$ GB = 28 GB (26 GiB) a step, and eight times that,
# 224 GB (209 GiB), without silence.

# %% [markdown]
# ## One verdict for all ranks
#
# With 16-bit floats the loss is multiplied with a scale, and a step whose gradient overflows is skipped (lab 03). With
# gradients that are averaged first, the ranks agree without a word: one rank's infinity is in everybody's average. That
# breaks as soon as a rank holds something *of its own*. The embedding tables of a recommender do not fit onto one card,
# so each rank owns another table, while the dense layers are the same everywhere. Now rank 1 finds an infinity in its
# table, skips the step and halves its scale. The others see nothing and go on, and from here on the replicas differ.
# Clipping has the same trouble: the norm is that of *all* parameters, and no rank sees them all.
#
# $$\|g\|^2 = \underbrace{\|\bar g_\text{shared}\|^2}_{\text{once}} + \sum_{r=0}^{n-1} \|g_{\text{own},\,r}\|^2$$

# %% [markdown]
# **Predict:** in one run of 1000 steps on 64 ranks, each rank's own gradient overflows in one step of a thousand,
# independently. How many steps are skipped if the ranks decide together? How many steps does it take until two replicas
# differ, if they do not?
#
# [[exercise 15-amp-clip]]
#
# Write `amp_clip_step(comm, shared, own, optimizer, scale, max_norm)`, which returns the norm and the new scale.
#
# - `shared` are the parameters that all ranks hold, `own` those that only this rank has; each `.grad` is multiplied with
#   `scale` already. Shared gradients are to be averaged. Own ones are complete: they already come from all rows.
# - The norm is that of the whole unscaled gradient, as one process with all tables would have it.
# - If it is not finite, nobody steps, and the new scale is half the old one, on all ranks. Otherwise the gradients are
#   multiplied with `max_norm / norm` where that is below 1, `optimizer.step()` is called, and the scale stays.
# - Besides the shared gradients, at most two numbers from each rank are sent.
#
# <details><summary>Hint 1: a nudge</summary>
#
# An infinity in a gradient makes its square infinite, and NaN stays NaN. Which one number from each rank tells the
# others all that they need to know?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Average the shared gradients, divide everything by the scale, add up the squares of the own tables, and all-reduce
# that sum. Only then add the squares of the shared gradients, which every rank knows, once. The root is the same number
# on all ranks, and so is the verdict.
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
# Three ranks, thirty steps. The own gradients grow from step to step as those of a loss that runs away, and overflow
# float16 on one rank or another:


# %%
def run_away(comm: Comm, together: bool) -> tuple[list[float], Tensor]:
    """(the scale after each step, the shared parameter at the end) of one rank."""
    generator = torch.Generator().manual_seed(comm.rank)
    shared, own = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([shared, own], lr=0.1)
    scale, scales = 2.0**14, []
    for step in range(30):
        for parameter, size in ((shared, 0.01), (own, 0.02 * 1.3**step)):
            grad = torch.randn(4, generator=generator) * size * scale
            parameter.grad = grad.half().float()
        if together:
            _, scale = amp_clip_step(comm, [shared], [own], optimizer, scale, 1.0)
        else:
            comm.all_reduce(shared.grad, op="avg")
            finite = bool((shared.grad.isfinite() & own.grad.isfinite()).all())
            shared.grad, own.grad = shared.grad / scale, own.grad / scale
            nn.utils.clip_grad_norm_([shared, own], 1.0)
            if finite:
                optimizer.step()
            else:
                scale /= 2
        scales.append(scale)
    return scales, shared.detach()


for name, together in (("each for itself", False), ("together, yours", True)):
    ranks = run_ranks(partial(run_away, together=together), 3)
    apart = max(float((one - ranks[0][1]).abs().max()) for _, one in ranks)
    ends = [f"2^{math.log2(scales[-1]):.0f}" for scales, _ in ranks]
    print(f"{name}: scales at the end {', '.join(ends)}; the replicas are {apart:.2g} apart")

# %% [markdown]
# Each for itself, the ranks end with different scales and with different versions of what should be one parameter: the
# norms differ, so the clipping does, also where nothing is infinite. No error is raised. For the prediction:
# together, a step is skipped with a chance of $1 - 0.999^{64} = 6.2\,\%$, 62 steps of 1000; alone, the replicas differ
# after 16 steps on average.
#
# **In practice** the order of the calls is the same as in one process, as long as all gradients are averaged *before*
# `scaler.unscale_`, which is where `GradScaler` looks for infinities: DDP does that in backward. Where ranks hold
# different parts (FSDP, lab 16), `ShardedGradScaler` sends the verdict around, and `clip_grad_norm_` on a `DTensor`
# adds up squares as you did. bfloat16 needs no scale, but its norm has to be the same on all ranks just as well.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Who sees which sample
#
# All ranks can read the whole dataset. In each epoch every sample should be seen by exactly one of them, in an order that
# nobody has seen before, and no message is sent about it: each rank works out its own share. It works if all of them draw
# *the same* shuffled order and rank $r$ takes places $r, r + W, r + 2W, \dots$ of it, with $W$ the number of ranks. If
# they do not draw the same order, nothing fails. The loss falls, a little slower, and nobody knows why.
#
# **Predict:** 1000 images, 8 ranks. Each shuffles with its own seed and takes the first eighth of its own order. What
# share of the images does no rank see in this epoch?

# %%
n_images, n_ranks = 1000, 8
seen = set()
for rank in range(n_ranks):
    own_order = torch.randperm(n_images, generator=torch.Generator().manual_seed(rank))
    seen |= set(own_order[: n_images // n_ranks].tolist())
print(f"never seen: {1 - len(seen) / n_images:.0%}")

# %% [markdown]
# About a third: $(1 - 1/8)^8 = 34\,\%$. As many places in the batches went to images that came twice or more.
#
# One more thing has to be the same on all ranks, the *number* of samples. A rank with one batch more than the others calls
# one all-reduce more, and waits for ever. With $n$ samples, each rank gets
#
# $$\left\lceil \frac{n}{W} \right\rceil \text{ samples, some of them twice,} \qquad\text{or}\qquad
# \left\lfloor \frac{n}{W} \right\rfloor \text{ with \texttt{drop\_last}, and a few are left out.}$$
#
# [[exercise 15-sampler]]
#
# Write `ShardSampler`. Iterating it yields the indices of one rank for one epoch, as numbers from 0 to `n_samples - 1`.
#
# - Over all ranks each sample comes once. Where the ranks do not divide `n_samples`, some samples come again so that all
#   ranks have the same number, none more often than it must. There may be fewer samples than ranks. With `drop_last` none
#   comes twice, and a few are left out, not the same in each epoch.
# - The order depends on the seed and on the epoch, which `set_epoch` tells, and on nothing else, and global random numbers
#   stay as they are. Iterated twice in the same epoch, or in a new process that resumes at this epoch, it is the same.
#   From epoch to epoch each rank gets *other* samples, too.
# - `len` is the number of indices that one rank gets.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Where is chance allowed to enter? In one place: the order of *all* samples. What a rank takes of it is no matter of
# chance, and torch's global random numbers are not the sampler's to use.
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
# A row is an epoch, a column a sample. Look for a pattern, and find none: every box has one colour, every rank has twelve
# boxes, and a sample's colour and step change from row to row. White boxes would be samples that nobody sees, black ones
# samples that come twice.
#
# **In practice** this is `torch.utils.data.DistributedSampler`, handed to the `DataLoader` in place of `shuffle=True`. Its
# generator is seeded with `seed + epoch`, so epoch 1 of seed 0 is epoch 0 of seed 1. And it cannot know the epoch: without
# `sampler.set_epoch(epoch)` at the start of each, every epoch has the same order, and again nothing fails.


# %%
def dealt(samplers: list, n_samples: int) -> tuple[int, int, int]:
    """(indices of a rank, indices that come again, samples that never come)"""
    indices = [int(index) for sampler in samplers for index in sampler]
    n_seen = len(set(indices))
    return len(samplers[0]), len(indices) - n_seen, n_samples - n_seen


print(f"{'':24}{'yours':^24}{'DistributedSampler':^24}")
print("samples ranks drop_last " + 2 * f"{'each':>6}{'again':>8}{'never':>8}  ")
for n_samples, world_size in ((48, 4), (50, 4), (3, 8)):
    for drop_last in (False, True):
        yours, torchs = [], []
        for r in range(world_size):
            yours.append(ShardSampler(n_samples, r, world_size, drop_last=drop_last))
            samples = range(n_samples)
            torchs.append(DistributedSampler(samples, world_size, r, drop_last=drop_last))
        line = f"{n_samples:>7}{world_size:>6}{drop_last!s:>10} "
        for each, again, never in (dealt(yours, n_samples), dealt(torchs, n_samples)):
            line += f"{each:>6}{again:>8}{never:>8}  "
        print(line)

# %% [markdown]
# Samples that come twice hardly matter in training. In *validation* they count twice in the mean: either drop the copies
# after gathering the results, or let ranks have different numbers and send nothing before the end.

# %% [markdown]
# ## Normalize over all ranks
#
# Batch normalization subtracts the mean of the batch and divides by its standard deviation. With data parallel training
# "the batch" is what one rank has. In detection and segmentation that may be two images a card, and the statistics of
# two rows are mostly noise: the network trains on one function and is used as another. *Synchronized* batch
# normalization takes mean and variance over the rows of all ranks. Unlike a gradient, which may come late, these are
# needed in the middle of the forward pass, in every such layer, and nothing can be computed meanwhile.
#
# A rank with $m_r$ rows, mean $\mu_r$ and sum of squared distances $S_r = \sum_i (x_i - \mu_r)^2$ contributes
#
# $$m = \sum_r m_r, \qquad \mu = \frac{1}{m} \sum_r m_r\,\mu_r, \qquad
# \sigma^2 = \frac{1}{m} \sum_r \left( S_r + m_r\,(\mu_r - \mu)^2 \right) .$$
#
# The last term is what an average of variances loses: how far the ranks' means lie apart.

# %% [markdown]
# Backward, with $\hat x = (x - \mu)/\sqrt{\sigma^2 + \epsilon}$ and $g = \partial L/\partial y$ the gradient of the output
# $y = w\,\hat x + b$, every row of every rank went into $\mu$ and $\sigma^2$:
#
# $$\frac{\partial L}{\partial x} = \frac{w}{\sqrt{\sigma^2 + \epsilon}} \left( g - \frac{1}{m} \sum g
# - \hat x\,\frac{1}{m} \sum g\,\hat x \right) ,$$
#
# both sums over all rows of all ranks. They are two numbers a channel, so one all-reduce is enough. The gradients of $w$
# and $b$ are the same two sums over the rank's *own* rows: DDP averages them later, as those of any other parameter.
#
# **Predict:** two ranks have rows 0, 2 and rows 10, 12 of a single channel. What is the variance of all four, and what
# is the average of the two variances?
#
# [[exercise 15-sync-bn]]
#
# Write `sync_batch_norm(comm, x, running_mean, running_var, weight, bias, momentum, eps)` for training mode: the
# normalized rows of this rank, of shape (rows, channels), float32.
#
# - Ranks have different numbers of rows. One may have none, and takes part all the same.
# - **One collective in forward and one in backward**, of a few numbers for each channel.
# - Only `running_mean` and `running_var` change in place, `new = (1 - momentum) * old + momentum * measured`, the
#   variance divided by $m - 1$ there, as PyTorch does.
# - The mean may be thousands of times the standard deviation, so $E[x^2] - E[x]^2$ in float32 leaves nothing (lab 02).
#
# <details><summary>Hint 1: a nudge</summary>
#
# What autograd sees must be one function with a backward of its own: it knows nothing of `comm`. What is the smallest
# set of numbers from which every rank can compute $m$, $\mu$ and $\sigma^2$?
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
# The variance of 0, 2, 10 and 12 is 26; each rank alone sees 1. Now four ranks with 32 channels: how far are the
# normalized rows from what one process with the whole batch computes?


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


normalized_by = {
    name: {n_rows: distance(n_rows, together) for n_rows in (2, 4, 8, 16, 32, 64)}
    for name, together in (("each rank its own rows", False), ("all ranks, yours", True))
}

# %% tags=["figure"]
labkit.figures.normalization_error(normalized_by)

# %% [markdown]
# With two rows a rank every value becomes +1 or −1, whatever it was, and the upper line falls slowly, with one over the
# root of the number of rows. The lower one is the rounding of float32. At 64 rows a rank the difference is 0.14
# standard deviations, which most networks bear, and then nobody pays two collectives a layer for it.
#
# **In practice** `nn.SyncBatchNorm.convert_sync_batchnorm(model)` replaces all batch normalization layers before DDP
# wraps the model. It sends what you sent, on GPUs only. Layer normalization and RMSNorm (lab 00) take their statistics
# from a single row, which is one reason why transformers scale over many ranks without any of this.

# %% [markdown]
# ## Which rank am I?
#
# Nobody tells a process its rank but the program that started it, and that program has only one way to tell: environment
# variables. Each launcher has names of its own. A script that knows only torchrun's works on a workstation; on the cluster
# every process takes itself for rank 0 of one, and 64 GPUs train the same model 64 times. No error is raised.
#
# | launcher, in the order in which to look | rank | local rank | world size |
# |---|---|---|---|
# | `torchrun` | `RANK` | `LOCAL_RANK` | `WORLD_SIZE` |
# | `mpirun` of Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_LOCAL_RANK` | `OMPI_COMM_WORLD_SIZE` |
# | `mpirun` of MPICH and Intel MPI (Hydra) | `PMI_RANK` | `MPI_LOCALRANKID` | `PMI_SIZE` |
# | `srun` of Slurm | `SLURM_PROCID` | `SLURM_LOCALID` | `SLURM_NTASKS` |
#
# The *rank* counts over all nodes, the *local rank* on the process's own node: it chooses the GPU. Launchers can be nested,
# for instance `srun torchrun`, where Slurm starts one torchrun a node and its variables are still there. Hence the order.

# %% [markdown]
# The ranks also need a place to meet, the *rendezvous*: one host and one port, the same for all. torchrun sets `MASTER_ADDR`
# and `MASTER_PORT`. With `mpirun` the user exports them. In a Slurm job they can be worked out, because all its processes
# see the same two variables: `SLURM_JOB_NODELIST`, of which the first host will do, and `SLURM_JOB_ID`, which gives a port
# that two jobs on one node are unlikely to share. Slurm writes node lists in a short form:
#
# | list | its first host |
# |---|---|
# | `node[01-04,7]` | `node01` |
# | `gpu7,gpu[11-12]` | `gpu7` |
# | `a100-[08,10-12]-ib,login1` | `a100-08-ib` |

# %% [markdown]
# **Predict:** the same job of 2 nodes with 4 GPUs each is started by `srun --ntasks-per-node=4 python train.py`, or by
# `srun --ntasks-per-node=1 torchrun --nproc-per-node=4 train.py`. What is `SLURM_NTASKS` in the processes that train?
#
# [[exercise 15-env]]
#
# Write `read_environment(env)`. `env` is a mapping from names to strings; do not look at `os.environ`. Return a dict with
# `rank`, `local_rank`, `world_size` and `master_port` (each an int) and `master_addr`.
#
# - The launcher is the first in the table of which *all three* variables are there. If there is none, it is the first of
#   which any is there, or torchrun.
# - `MASTER_ADDR` and `MASTER_PORT` count wherever they are set, under each launcher. Otherwise the host is the first of
#   `SLURM_JOB_NODELIST`, and the port 15000 plus `SLURM_JOB_ID` modulo 10000.
# - If anything is missing, raise one `ValueError` whose text names each missing variable, and none that is set:
#   those of the launcher's three, and `MASTER_ADDR` or `MASTER_PORT` where nothing can replace them.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The table is data: write it down as data, and one loop serves all launchers. For the error, first find out what is
# missing, and look up afterwards.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Make three lists of rows of the table: those with all names in `env`, those with any, and torchrun's. The first row of
# their sum is the launcher. Of a node list, first cut off what follows the first comma that is *outside* of brackets; then
# put, in place of each bracket, the text in it up to the first comma or hyphen.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `re.match(r"([^,\[]|\[[^\]]*\])+", nodelist)[0]` is the first entry: any number of characters that are neither comma nor
# bracket, or whole brackets. `re.sub(r"\[([^],-]+)[^]]*\]", r"\1", entry)` replaces the brackets. The zeros in `01` stay if it
# stays text. Collect the names that are not there in a list, and raise `ValueError(", ".join(...))` if it is not empty.
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
        first = re.match(r"([^,\[]|\[[^\]]*\])+", env["SLURM_JOB_NODELIST"])[0]
        found["MASTER_ADDR"] = re.sub(r"\[([^],-]+)[^]]*\]", r"\1", first)
    if "SLURM_JOB_ID" in env:
        found["MASTER_PORT"] = str(15_000 + int(env["SLURM_JOB_ID"]) % 10_000)
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "15-env-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("15-env", read_environment)

# %%
print(f"{'started by':22}{'rank':>5}{'local':>7}{'of':>4}   rendezvous")
for started_by, process in {
    "torchrun": Launched("torchrun"),
    "mpirun (Open MPI)": Launched("openmpi", exported=True),
    "mpirun (Hydra)": Launched("hydra", exported=True),
    "srun": Launched("slurm"),
    "srun torchrun": Launched("torchrun", around="slurm"),
}.items():
    place = read_environment(variables(process))
    where = f"{place['master_addr']}:{place['master_port']}"
    print(
        f"{started_by:22}{place['rank']:>5}{place['local_rank']:>7}{place['world_size']:>4}   {where}"
    )

# %% [markdown]
# It is the same process each time, the third on the second node, seen through five launchers. The prediction: 8 where
# `srun` started the ranks, and 2 where it started one torchrun a node. Whoever reads `SLURM_NTASKS` first, as many
# scripts do, gets a job of two ranks there, each of them four times.
#
# **In practice** `torch.distributed.init_process_group()` reads `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`, and
# nothing of the other launchers. Translate first, and choose the GPU before anything is put there:
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
# ## A rank dies
#
# Data parallel training has a weakness that one process does not have: when one rank is gone, the next all-reduce fails
# on all others. Sixteen thousand GPUs trained Llama 3 405B for 54 days, and 419 times a part of them failed
# unexpectedly: once in three hours. Nobody sits there at night. The launcher notices that a process has ended, ends the
# others, and starts all ranks again. **What the new processes know of the old ones is what lies on the disk.**
#
# | launcher | starts | after a rank died |
# |---|---|---|
# | `torchrun` | an agent on each node, which starts its ranks | the agents meet again and start all ranks anew, up to `--max-restarts` times; with `--nnodes=2:4` also with fewer nodes or with new ones (*elastic* training) |
# | Slurm's `srun` | all ranks of the job | the job ends; with `--requeue` it is put into the queue again |
# | MPI's `mpirun` | all ranks | all are ended; Horovod's elastic mode starts ranks again around it |
#
# None of them restores a variable. If a restart gives another loss curve than a training that nobody disturbed, then
# something that belongs to the training's state was not on the disk.
#
# **Before you read on:** momentum SGD trains a model on shuffled batches with noise added, and after step 13 a rank is
# killed. Write down all that the process needs besides the parameters so that step 14 comes out the same, bit for bit or
# nearly so. There are five things.

# %% [markdown]
# ### The job
#
# `python train.py FOLDER` is run by `torchrun` on two ranks, without a GPU (backend `"gloo"`). `FOLDER/job.pt` is a dict
# to be read with `torch.load`:
#
# | key | is |
# |---|---|
# | `x`, `y` | the data set: (n, features) and (n, 1), float32 |
# | `model` | the state dict with which an `nn.Linear(features, 1)` begins |
# | `lr`, `momentum` | of `torch.optim.SGD` |
# | `n_epochs`, `batch` | epochs, and rows that **each rank** takes in a step; they divide the data evenly |
# | `seed` | of the sampler; and `seed + rank` of each rank's own noise |
# | `noise` | the noise's standard deviation |
# | `every` | a checkpoint after each step whose number is a multiple of this |
#
# Each rank takes its rows from `DistributedSampler(job["x"], seed=job["seed"])` in that order, `batch` at a time; the
# epoch, from 0, is set with `set_epoch`. A step adds `job["noise"] * torch.randn(x.shape, generator=generator)` to the
# rows' `x`, where `generator` is a `torch.Generator` that was seeded once, before the first step. The loss is
# `mse_loss` (a mean over the rows), and gradients are averaged over the ranks.
#
# `FOLDER/checkpoint.pt`, written with `torch.save`, holds
#
# | key | is |
# |---|---|
# | `step` | the number of steps done, an int |
# | `model`, `optimizer` | the two state dicts (of the `nn.Linear` itself, not of a wrapper around it) |
# | `generators` | a list: the state of each rank's generator, by rank |
# | `losses` | a list: for each step done, the loss before its update, mean over both ranks |
#
# If it is there when the script starts, the training goes on from it. At the end rank 0 saves `losses` and `model` to
# `FOLDER/result.pt`.
#
# A rank can also be killed *while* it writes. A file that was half written must not have taken the place of the last
# good one.
#
# [[exercise 15-launch]]
#
# Write the script. The check launches it and kills a rank twice: one after a step, and rank 0 in the middle of a save.
# It takes some seconds, because processes are really started, and over a minute where ranks wait for each other for ever.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Step `s` lies in epoch `s // steps_per_epoch`, and `s % steps_per_epoch` batches of that epoch are done. If the loop
# asks for nothing but the step, a restart is a start with another step.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# One process writes the checkpoint, but each rank's generator is known to that rank only: gather the states first, on
# all ranks. `os.replace(a, b)` gives a file another name at once: whoever opens `b` sees the old file or the new one.
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

# %% [markdown]
# **Predict:** checkpoints come every 10 steps, a rank dies after step 27, and later rank 0 dies while it writes the
# checkpoint of step 40. How many steps are computed twice? (A dying rank costs the work since the last whole
# checkpoint.)

# %% tags=["figure"]
undisturbed, killed = launch_twice(script)
labkit.figures.killed_run(undisturbed, killed)

# %% [markdown]
# Your own script, launched twice: once left alone (the line), once with two kills (the dots). Every dot has to lie on
# the line. The shaded steps were done twice, because they came after the last whole checkpoint: 7 and 10 of them.
#
# The five things on your list: the momentum, the epoch and the place in it (both follow from the step), the sampler's
# seed (it lies in `job.pt`), and the state of each rank's noise generator.

# %% [markdown]
# That is the whole trade. A checkpoint costs $C$ seconds, a failure comes every $M$ seconds on average, and with a
# checkpoint every $T$ seconds the share of time lost is about $C/T + T/2M$, which is least at $T = \sqrt{2CM}$ (Young,
# 1974). **Predict** both for a failure every 3 hours and a checkpoint that takes 60 s.

# %%
checkpoint_s, failure_s = 60, 3 * 3600
best_s = math.sqrt(2 * checkpoint_s * failure_s)
lost = checkpoint_s / best_s + best_s / (2 * failure_s)
print(f"a checkpoint every {best_s / 60:.0f} min; {lost:.1%} of the time is lost")

# %% [markdown]
# ### What `torchrun` does for it
#
# What the check and the figure ran, without their kills:
#
# ```
# TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 torchrun --nproc-per-node=2 --max-restarts=3 \
#     --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:0 --local-addr=127.0.0.1 train.py FOLDER
# ```
#
# Rendezvous is how the ranks find one another again after each start; here its store is the agent's own, on a free port.
# The variable makes each start use a store of its own: without it, gloo's ranks of the second start can find the
# addresses of the dead ones in the agent's store and fail to connect (PyTorch 2.13; issue 135712 of pytorch/pytorch
# tells the same of NCCL).
#
# ### In practice
#
# Two lines of your script do not scale: rank 0 holds the whole state and writes it alone, while the others wait. With a
# model of 405 billion parameters that state is several terabytes. `torch.distributed.checkpoint` lets every rank write
# what it holds, and a *metadata* file, written last and renamed as you renamed yours, makes the checkpoint valid. It can
# be read by another number of ranks (lab 16 does that by hand), and `async_save` writes from a copy while the training
# goes on.

# %%
import torch.distributed.checkpoint as dcp

kept = {"step": 27, "model": nn.Linear(1000, 1000).state_dict()}
with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    # One process here, which it says each time.
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
# A step of four ranks on the network from the beginning, with your class; twelve blocks, 120 s of backward pass.

# %%
rows = {"one by one, as it began": one_by_one}
rows |= {f"DDP, {name}": step for name, step in steps.items()}
print(f"{'feature':36}{'calls':>7}{'step':>9}{'work of 4 ranks':>17}")
for name, step in rows.items():
    work = job.n_ranks * step.backward_s / step.step_s
    print(f"{name:36}{len(step.reduces):>7}{step.step_s:>7.0f} s{work:>17.2f}")
print(f"\n{'4 micro-batches':36}{'calls':>7}{'sent':>11}")
for name, (n_calls, n_bytes, _) in micro.items():
    print(f"{name:36}{n_calls:>7}{n_bytes / 1024:>7.0f} KiB")

# %% [markdown]
# | feature | speed | memory a rank | where it ends |
# |---|---|---|---|
# | data parallel | nearly $n$ times the work | nothing saved: a whole model each | the model has to fit; the batch grows with $n$ (lab 04) |
# | buckets | latency paid once a bucket | one more copy of the gradients | the last bucket is never hidden |
# | overlap | hides all but the last bucket | the buckets that are under way | a network slower than the backward pass |
# | accumulation in silence | one all-reduce for many micro-batches | activations of one micro-batch | the batch grows |
# | synchronized batch normalization | two calls a layer that nothing hides | nothing | few rows a rank only |
#
# That every rank holds a whole model, its gradients and its optimizer states is the subject of lab 16.

# %%
progress("15", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "15",
    "DDP with buckets, 4 ranks",
    speed=lambda: (
        f"{job.n_ranks * steps['for 3 blocks'].backward_s / steps['for 3 blocks'].step_s:.2f} x the work of one rank"
    ),
)

# %% [markdown]
# ## Open questions
#
# Two questions, 2 + 3 points. A person reads them, so no check answers at once, and `progress` does not count them. A
# few sentences each; numbers count more than words.
#
# **A.** (2 points, read by a person) Two ranks train with DDP on float32. After a thousand steps the weights of the
# ranks are still the same bits, but they are not the bits of a run in one process with the whole batch. Why the one and
# why the other? Name two mistakes in a training script after which the *ranks* would differ without any error.

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
# **B.** (3 points, read by a person) A model has 1.3 billion parameters, gradients in bfloat16, and a backward pass of
# 0.25 s. You have 8 cards in one node with 200 GB/s between any two, and you may take a second node, joined by one port
# of 25 GB/s. With a ring and perfect overlap: does the gradients' traffic hide behind the backward pass on 8 cards, on
# 16? What do you change if not, and what does each change cost? Give seconds.

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
#   overlap, unused parameters: what you have written, and what it gained.
# - PyTorch's design note *Distributed Data Parallel*, with the life of a gradient from hook to bucket.
# - Priya Goyal and others, *Accurate, Large Minibatch SGD* (2017). What else has to change when $n$ times the rows go
#   into a step; its section on pitfalls is a list of wrong answers to this lab.
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
# Order Approximation to the Optimum Checkpoint Interval* (1974).
