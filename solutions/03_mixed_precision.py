# %% [markdown]
# # Lab 03: Mixed precision
#
# Half the bits should mean half the memory and twice the speed. So you call `model.half()`, train with the same AdamW as
# before, and read `nan` after the first step. **The gradients of that step were all finite. What broke?**
#
# There are four places where 16 bits are not enough: gradients that vanish, optimizer states that vanish, updates that
# vanish, and sums that lose digits. In this lab you find them and write what every training framework builds around
# them: the loss scale, the step that uses it, and the rules by which autocast picks a dtype for each operation. At the
# end you can say when mixed precision *costs* memory.
#
# [[time]]
#
# You need the limits of fp16 and bf16 from lab 02 and the bytes of a training step from lab 01. The last section,
# differences that are not bugs, is optional reading.

# %% nbgrader={"grade": false, "grade_id": "03-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import torch
from jaxtyping import Int64
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress, track_memory
from labkit.exercises.lab03.autocast_dtypes import BLOCKS
from labkit.exercises.lab03.autocast_ops import Op
from labkit.material import lab03

guesses = Predictions("03")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# The model of this lab is a small residual network that learns which of 512 symbols follows which. `lab03.Model()` has
# four blocks, each a layer norm and an MLP, and `model(x, y)` is the mean cross-entropy. It is small enough to train in
# seconds, and it fails in 16 bits for the same reasons as a large one.

# %%
torch.set_num_threads(1)  # for tensors as small as these, more threads only wait for each other


def train(dtype: torch.dtype, eps: float = 1e-8) -> tuple[list[float], torch.optim.Optimizer]:
    """61 steps with everything in one dtype: the losses, and the optimizer afterwards."""
    torch.manual_seed(0)
    model = lab03.Model().to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, eps=eps)
    losses = []
    for _ in range(61):
        loss = model(*lab03.batch())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, optimizer


plain = {
    "fp32": train(torch.float32)[0],
    "pure bf16": train(torch.bfloat16)[0],
    "pure fp16": train(torch.float16)[0],
}
runs = {}  # for the trainings in mixed precision
lab03.print_losses(plain)
print(f"pure fp16, loss at step 1: {plain['pure fp16'][1]}")

# %% [markdown]
# There are two failures in three lines. In fp16 the loss is NaN after one step. In bf16 training works but falls
# behind: at the end its loss is about twice that of fp32. This one you know from lab 02: an update smaller than half
# the gap between two bf16 numbers is lost.
#
# For the other, look at the first fp16 step. AdamW moves each weight by the learning rate times $m / (\sqrt{v} +
# \epsilon)$. Here $m$ and $v$ are running means of the gradient and of its square, and $\epsilon$ is $10^{-8}$. Which
# of these numbers became 0? The answer is folded below the cell.

# %%
torch.manual_seed(0)
model = lab03.Model().half()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
model(*lab03.batch()).backward()
print("all gradients finite:", all(bool(p.grad.isfinite().all()) for p in model.parameters()))
optimizer.step()
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
shares = (weights.isinf(), weights.isnan(), weights.isfinite())
infinite, nan, finite = (f"{100 * share.float().mean():.0f} %" for share in shares)
print(f"weights after the step: {infinite} infinite, {nan} NaN, {finite} finite")
# %% [markdown]
# <details><summary>Which numbers became 0?</summary>
#
# Two of them. The smallest positive number of fp16 is $6 \cdot 10^{-8}$, so $\epsilon$ becomes 0. After the first step
# $v$ is $0.001\,g^2$, which becomes 0 as well for every gradient $g$ below 0.005. What is left is a division by zero:
# $g / 0$ is infinite, and $0 / 0$ is NaN.
#
# </details>
#
# A popular remedy is a larger epsilon, one that fp16 can hold. It removes the NaN. But does it still train the same
# model with the same optimizer? To tell, we need a control: fp32 with the larger epsilon.

# %%
for name, dtype in (("fp32", torch.float32), ("pure fp16", torch.float16)):
    losses, optimizer = train(dtype, eps=1e-4)
    second_moments = torch.cat([s["exp_avg_sq"].flatten() for s in optimizer.state.values()])
    share = (second_moments == 0).float().mean()
    print(
        f"{name:10} with eps = 1e-4: last loss {losses[-1]:.3f}, v is 0 for {share:.1%} of the weights"
    )

# %% [markdown]
# In fp32 the larger epsilon changes little: the last loss is 0.141 instead of 0.116. In fp16 it is 0.002, lower than
# any other, but by another algorithm. For 90 % of the weights $v$ is still 0, so AdamW divides their momentum by
# $\epsilon$ alone. They are trained by plain momentum with a learning rate of $0.003 / 10^{-4} = 30$. On this small
# model that happens to train fast. Nobody has tuned it for yours.
#
# The lasting cure is **mixed precision** (Micikevicius and others, 2017). Weights and optimizer states stay in fp32,
# matrix products run in 16 bits, and each other operation runs in the lowest precision that it tolerates. This takes
# three things: gradients that do not vanish, a step that puts the pieces in order and updates fp32 weights, and a dtype
# for every operation, so that sums keep their digits. They are the next sections.

# %% [markdown]
# ## Keep small gradients from vanishing
#
# fp16 has 5 exponent bits: normal numbers from $2^{-14}$ up to 65504, and subnormal ones down to $2^{-24}$. Gradients
# are small because the loss is a mean over all tokens, and they shrink as the model gets better. Let us look at the
# gradients that mixed precision computes in 16 bits, early and late in training: the gradients of each linear layer's
# parameters and of its output.
#
# We count them by powers of two: a gradient $g$ with $2^k \le |g| < 2^{k+1}$ is in bin $k$. Gradients that are exactly 0
# are left out, because they lose nothing.

# %%
gradients, too_large = lab03.gradients_in_training(steps=(0, 120))
histograms = {step: lab03.histogram(values) for step, values in gradients.items()}
for step, (exponents, counts) in histograms.items():
    print(
        f"step {step:>3}: {counts.sum():,} gradients, sizes from 2^{exponents[0]} to 2^{exponents[-1] + 1}"
    )

# %% tags=["figure"]
labkit.figures.gradient_histogram(*histograms[120], at_start=histograms[0])

# %% [markdown]
# If the loss is multiplied by $S$ before `backward`, the chain rule multiplies *every* gradient by $S$: the histogram
# moves to the right by $\log_2 S$ and keeps its shape. Afterwards the gradients are divided by $S$ in fp32, so nothing
# changes except the rounding on the way. $S$ should be large, but not so large that anything exceeds 65504, because a
# single infinity spoils the whole step.
#
# **Predict:** without a scale, which is the highest bin $k$ of which everything becomes 0 in fp16?

# %% nbgrader={"grade": false, "grade_id": "03-predict-bin", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("highest bin that is lost", None, exact=True)

# %% [markdown]
# **Predict:** which share of the gradients of step 120 does fp16 turn into 0, in percent?

# %% nbgrader={"grade": false, "grade_id": "03-predict-lost", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("gradients lost at step 120", None, unit="%")

# %% [markdown]
# [[exercise 03-underflow]]
#
# Write two functions. `fraction_to_zero(exponents, counts, scale)` is the fraction of the gradients that become 0 in
# fp16 after multiplication by `scale`, a power of two. Treat each gradient as lying inside its bin, not exactly on its
# lower end. `largest_safe_scale(exponents, counts)` is the largest power of two, as a float, with which no gradient of
# the histogram can become infinite. `exponents` ascend. Bins may be empty, including the first and the last, but at
# least one is not.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Rounding goes to the nearest number. Which two fp16 numbers are nearest to $0.7 \cdot 2^{-24}$, and which of them is
# closer? And for $0.3 \cdot 2^{-24}$?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A scale of $2^s$ moves bin $k$ to $k + s$. The smallest subnormal is $2^{-24}$, and everything below half of it, that
# is below $2^{-25}$, becomes zero. At the other end fp16 stops at 65504, which is just below $2^{16}$. The bin from
# $2^{15}$ to $2^{16}$ holds numbers that fit and numbers that do not, so a safe scale leaves it empty.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `lost = exponents + math.log2(scale) < -25`, then the sum of `counts[lost]` divided by the sum of `counts`. For the
# scale, take the largest exponent among the bins with `counts > 0` and move it to 14.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "03-underflow", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fraction_to_zero(
    exponents: Int64[Tensor, "n_bins"], counts: Int64[Tensor, "n_bins"], scale: float
) -> float:
    """The fraction of the gradients that fp16 rounds to zero after multiplication by scale."""
    ### BEGIN SOLUTION
    half_of_smallest = -25  # 2^-24 is the smallest subnormal; below half of it, the nearest is 0
    lost = exponents + round(math.log2(scale)) < half_of_smallest
    return (counts[lost].sum() / counts.sum()).item()
    ### END SOLUTION


def largest_safe_scale(
    exponents: Int64[Tensor, "n_bins"], counts: Int64[Tensor, "n_bins"]
) -> float:
    """The largest power of two with which no gradient of the histogram becomes infinite in fp16."""
    ### BEGIN SOLUTION
    largest = exponents[counts > 0].max().item()
    return 2.0 ** (14 - largest)  # [2^15, 2^16) holds 65504 and also what rounds to infinity
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-underflow-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("03-underflow", fraction_to_zero, largest_safe_scale)

# %%
for step, (exponents, counts) in histograms.items():
    scale = largest_safe_scale(exponents, counts)
    values = gradients[step][gradients[step] != 0]
    print(
        f"step {step:>3}, your function: {fraction_to_zero(exponents, counts, 1.0):.2%} lost,",
        end=" ",
    )
    print(f"with scale 2^{math.log2(scale):.0f}: {fraction_to_zero(exponents, counts, scale):.3%}")
    print(f"          casting them all: {(values.half() == 0).float().mean():.2%} lost,", end=" ")
    print(f"scaled: {((values * scale).half() == 0).float().mean():.3%}")
    print(f"          a real fp16 step overflows from scale 2^{math.log2(too_large[step]):.0f} on")
one = torch.ones(1, dtype=torch.int64)
lost_bins = [k for k in range(-40, 17) if fraction_to_zero(k * one, one, 1.0) == 1]
guesses.settle("highest bin that is lost", max(lost_bins, default=None))
guesses.settle("gradients lost at step 120", 100 * fraction_to_zero(*histograms[120], 1.0))

# %% tags=["figure"]
labkit.figures.gradient_histogram(
    *histograms[120], fraction_to_zero, largest_safe_scale, at_start=histograms[0]
)

# %% [markdown]
# <details><summary>Check your predictions</summary>
#
# Bin −26, which ends at $2^{-25}$, half of the smallest subnormal. In bin −25 only the lower end, a tie, becomes 0;
# everything else in it rounds up to $2^{-24}$. At step 120 more than a fifth of the gradients is lost.
#
# </details>
#
# At the start (black outline) hardly anything is lost. 120 steps later the model is right about most symbols, and the
# gradients of what it already predicts correctly are tiny. Look at the orange bars as well: subnormal numbers survive,
# but the smaller they are, the fewer bits they keep. After scaling nearly everything is in the grey range of full
# precision.
#
# The real step overflows at four times your scale. Twice your scale would have fitted, but only by luck: it moves the
# last bin to the numbers from $2^{15}$ to $2^{16}$, and those above 65504 do not fit.
#
# **In practice** bf16 needs none of this, because it has the exponents of fp32. It has three mantissa bits fewer, 7
# instead of 10, so each rounding is 8 times coarser than in fp16.

# %% [markdown]
# ## Let the scale find itself
#
# The histogram moved in 120 steps, and it will keep moving. Nobody wants to look at it in every step, so the scale is
# found by trial and error. Start too high. Whenever a gradient overflows, skip the step and halve the scale; after
# many clean steps in a row, double it. The scale then stays just below the point where something overflows. This is
# how PyTorch's own scaler behaves on made-up gradients:

# %% tags=["figure"]
labkit.figures.loss_scale_trace(torch.amp.GradScaler)

# %% [markdown]
# | | what happens |
# |---|---|
# | `scale(loss)` | returns the loss times the scale |
# | `unscale_(optimizer)` | divides the gradients of the optimizer's parameters in place, and notes whether all of them are finite |
# | `step(optimizer)` | unscales unless `unscale_` was called in this step; then calls `optimizer.step()`, but only if all gradients are finite |
# | `update()` | after a skipped step: scale × `backoff_factor`. After `growth_interval` clean steps in a row: scale × `growth_factor`, and the count starts again |
#
# In a skipped step `optimizer.step()` must not run at all. Setting the gradients to zero is not enough: momentum would
# still move the weights, and AdamW would decay them, shrink its moments and count a step.
#
# **Predict:** the largest gradient is 0.5, in every step, and the initial scale is $2^{24}$. How many steps are skipped
# at the start?

# %% nbgrader={"grade": false, "grade_id": "03-predict-skipped", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("steps skipped at the start", None, exact=True)

# %% [markdown]
# [[exercise 03-loss-scaler]]
#
# Write `LossScaler` with the methods of the table and `get_scale()`, which returns a Python float. Names and meaning
# are those of `torch.amp.GradScaler`, and the check compares with it step by step: the scale, the weights, and the
# optimizer's state. There is one optimizer, which may have several groups of parameters. In some steps one of its
# parameters has no gradient (`p.grad is None`), never all of them. `unscale_` is called at most once in a step, and
# every step ends with one call of `update`. The initial scale and both factors are powers of two.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Three things must be remembered between calls: the scale, the number of clean steps in a row, and what `unscale_` found
# in this step. When is each of them reset?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The parameters are in `optimizer.param_groups`, a list of dicts with a list under `"params"`. Let one attribute have
# three values: not unscaled yet, all finite, not finite. Then `step` can tell whether it has to unscale, and `update` sets
# it back to the first. A skipped step sets the count of clean steps to 0, and so does growth.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In `unscale_`: `grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]`, then
# `grad.div_(self.current_scale)` for each, and `self.found_bad = not all(grad.isfinite().all() for grad in grads)`. In
# `update`, if `found_bad`: back off and reset the count; else count, and at `growth_interval` grow and reset. Last
# line: `self.found_bad = None`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "03-loss-scaler", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LossScaler:
    """Scales the loss, unscales the gradients, skips steps that are not finite, adapts the scale."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ) -> None:
        ### BEGIN SOLUTION
        self.current_scale = init_scale
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval = growth_interval
        self.n_clean_steps = 0
        self.found_bad: bool | None = None  # None: the gradients of this step are still scaled
        ### END SOLUTION

    def get_scale(self) -> float:
        """The current scale."""
        ### BEGIN SOLUTION
        return self.current_scale
        ### END SOLUTION

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the scale."""
        ### BEGIN SOLUTION
        return loss * self.current_scale
        ### END SOLUTION

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide the optimizer's gradients by the scale in place, and note whether all are finite."""
        ### BEGIN SOLUTION
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        grads = [p.grad for p in parameters if p.grad is not None]
        for grad in grads:
            grad.mul_(1 / self.current_scale)
        self.found_bad = not all(grad.isfinite().all() for grad in grads)
        ### END SOLUTION

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Unscale unless that is done; step the optimizer only if all gradients are finite."""
        ### BEGIN SOLUTION
        if self.found_bad is None:
            self.unscale_(optimizer)
        if not self.found_bad:
            optimizer.step()
        ### END SOLUTION

    def update(self) -> None:
        """Adapt the scale, once after every step."""
        ### BEGIN SOLUTION
        if self.found_bad:
            self.current_scale *= self.backoff_factor
            self.n_clean_steps = 0
        else:
            self.n_clean_steps += 1
            if self.n_clean_steps == self.growth_interval:
                self.current_scale *= self.growth_factor
                self.n_clean_steps = 0
        self.found_bad = None
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-loss-scaler-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("03-loss-scaler", LossScaler)

# %% tags=["figure"]
labkit.figures.loss_scale_trace(LossScaler)

# %%
n_skipped = lab03.n_skipped(LossScaler(init_scale=2.0**24), gradient=0.5)
guesses.settle("steps skipped at the start", n_skipped)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Eight. The scale has to come down to $2^{16}$, because $0.5 \cdot 2^{17} = 65536$ is still too large for fp16, and
# $0.5 \cdot 2^{16}$ is not.
#
# </details>
#
# Each grey dot is the largest scale at which that step would not have overflowed. Your line should lie on the dotted
# one. Every now and then it is too high for a gradient, and each time that costs one step. At step 180 a burst of large
# gradients, three steps long, pushes it down three times in a row, and it climbs back. If the check fails, look here
# for the first step in which the two lines part.
#
# **In practice** this is `torch.amp.GradScaler(device)`, with an initial scale of $2^{16}$ and a growth interval of
# 2000. It keeps the scale on the GPU, and the CPU waits only once per step, to learn whether to skip it. A few skipped
# steps at the start of an fp16 run are normal. If the scale keeps falling, below 1, then NaN comes from somewhere else.

# %% [markdown]
# ## Put one step in order
#
# The forward pass and the loss run under autocast, which computes matrix products in 16 bits and leaves the fp32 weights
# alone. They *are* the **master weights**, the ones that the optimizer updates. Everything after the loss is outside.

# %% tags=["figure"]
labkit.figures.amp_step()

# %% [markdown]
# One part of the step is missing from the figure: gradient clipping, where most home-made steps go wrong.
# `clip_grad_norm_` compares the norm of all gradients with `max_norm`, say 1. Scaled gradients have a norm that is
# thousands of times larger.
#
# **Predict:** `max_norm` is 1, the true norm of the gradients is 0.8, the scale is 4096. If you clip *before* unscaling,
# which norm reaches the optimizer?

# %% nbgrader={"grade": false, "grade_id": "03-predict-norm", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("norm after clipping too early", None)

# %%
parameter = nn.Parameter(torch.zeros(()))
parameter.grad = torch.tensor(0.8 * 4096)
nn.utils.clip_grad_norm_([parameter], 1.0)
guesses.settle("norm after clipping too early", parameter.grad / 4096)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 1 / 4096 = 0.00024. The scaled norm is 3277, so clipping shortens it to 1, and unscaling divides that by 4096. The right
# order leaves 0.8.
#
# </details>

# %% [markdown]
# [[exercise 03-train-step]]
#
# Write `train_step(model, x, y, optimizer, scaler, max_norm, dtype)`. `model(x, y)` is the loss, and `scaler` is a
# `torch.amp.GradScaler`. In bf16 runs it is switched off: then `scale` returns the loss unchanged, `step` calls
# `optimizer.step()`, and `unscale_` and `update` do nothing. Gradients of an earlier step may still be there. Return
# the loss, unscaled; the check accepts it detached or not. The check compares with a step in plain fp32. On some
# batches fp16 overflows, and these must leave the weights as they are.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write down which of these six belong inside autocast: zero_grad, forward, loss, backward, clip, step. Backward runs
# each operation in the dtype of its forward, so it needs no help.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# zero_grad; forward and loss under `torch.autocast(x.device.type, dtype=dtype)`; backward on the scaled loss; unscale;
# clip; scaler's step; scaler's update. The scaler keeps what `unscale_` found, so `clip_grad_norm_` on infinite
# gradients does no harm.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `scaler.scale(loss).backward()`, `scaler.unscale_(optimizer)`, `nn.utils.clip_grad_norm_(model.parameters(),
# max_norm)`, `scaler.step(optimizer)`, `scaler.update()`, in this order. Return `loss.detach()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "03-train-step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_step(
    model: nn.Module,
    x: Tensor,
    y: Int64[Tensor, "batch"],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    max_norm: float,
    dtype: torch.dtype,
) -> Tensor:
    """One step: forward under autocast, scaled backward, clipped gradients, a step if they are finite. The loss."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=dtype):
        loss = model(x, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-train-step-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("03-train-step", train_step)


# %%
def train_mixed(scaler, dtype: torch.dtype, eps: float = 1e-8) -> list[float]:
    """The losses of 61 steps."""
    torch.manual_seed(0)
    model = lab03.Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, eps=eps)
    scaler.scale(torch.zeros(()))  # one that has never scaled anything refuses to unscale
    return [
        float(train_step(model, *lab03.batch(), optimizer, scaler, 1.0, dtype)) for _ in range(61)
    ]


runs["fp16, GradScaler"] = train_mixed(torch.amp.GradScaler("cpu"), torch.float16)
runs["fp16, no scale"] = train_mixed(torch.amp.GradScaler("cpu", enabled=False), torch.float16)
runs["bf16, no scale"] = train_mixed(torch.amp.GradScaler("cpu", enabled=False), torch.bfloat16)
runs["fp16, your scaler"] = train_mixed(LossScaler(), torch.float16)
lab03.print_losses({"fp32": plain["fp32"], **runs})

# %% [markdown]
# Your step gives the same losses with your scaler and with PyTorch's, to the last digit shown, because both multiply and
# divide by the same powers of two. All runs end where fp32 does. That is the work of the master weights and of AdamW's
# states, which are fp32 again: no update is lost, and $\epsilon$ is not 0.
#
# **Detach what you log.** `backward` frees the saved activations, but a loss that you keep still holds the graph's
# nodes, several for each layer, and a list of such losses holds one graph per step. A loss that never goes through
# `backward`, as in validation, keeps every activation alive too: compute it under `torch.no_grad()`.
#
# And the loss scale? In this table it changes nothing. The losses of these 61 steps do not show that small gradients are
# missing, because the large ones decide. Now make *all* gradients small. A large model averages its loss over
# millions of tokens, cut into micro-batches: each micro-batch's loss is divided by their number before `backward`. Our
# batch has $2^9$ symbols. As one of $2^{16}$ micro-batches it would be part of a batch of $2^{25}$, 34 million.
#
# **Predict:** with the loss divided by $2^{16}$, how does fp16 without a loss scale train?

# %% nbgrader={"grade": false, "grade_id": "03-predict-unscaled", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("fp16 without a scale", None, among=("like fp32", "more slowly", "not at all"))

# %%
parts = {
    "fp32": lab03.train_divided(2**16, torch.float32, scaled=False),
    "fp16, no scale": lab03.train_divided(2**16, torch.float16, scaled=False),
    "fp16, GradScaler": lab03.train_divided(2**16, torch.float16, scaled=True),
}
lab03.print_losses(parts)
last = parts["fp16, no scale"][-1]
outcome = (
    "not at all" if last > 5 else "more slowly" if last > 2 * parts["fp32"][-1] else "like fp32"
)
guesses.settle("fp16 without a scale", outcome)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Not at all. Every gradient of a linear layer is rounded to zero. The loss stays at about 6.4, a little above $\ln 512
# = 6.24$, the loss of guessing blindly.
#
# </details>
#
# With the scale, fp16 follows fp32. bf16 needs none, because it has the exponents of fp32. (fp32 itself is slower here
# than in the table before, because $\epsilon$ is no longer small beside such gradients.) Gradients need not vanish all
# at once. With a division by only $2^{14}$, some are left:

# %%
fewer_parts = {
    "fp32": lab03.train_divided(2**14, torch.float32, scaled=False),
    "fp16, no scale": lab03.train_divided(2**14, torch.float16, scaled=False),
}
lab03.print_losses(fewer_parts)

# %% [markdown]
# Here fp16 learns, far more slowly than fp32, and nothing tells you why.
#
# Now the bug of the earlier prediction: clip, then unscale. The scale is $2^{16}$ here. The 16-bit format does not matter
# to this bug, and a CPU is faster in bf16.


# %%
class UnscalesLate(torch.amp.GradScaler):
    """GradScaler with a bug: it unscales only in `step`, so that your step clips scaled gradients."""

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        grads = [p.grad for p in optimizer.param_groups[0]["params"]]
        true_norms.append(nn.utils.get_total_norm(grads).item() / self.get_scale())

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        super().unscale_(optimizer)
        super().step(optimizer)


true_norms = []
bug = train_mixed(UnscalesLate("cpu"), torch.bfloat16)
if true_norms:
    print(f"true norms of the gradients: {min(true_norms):.2f} to {max(true_norms):.2f}")
else:
    print("Your step does not call scaler.unscale_, so this scaler could not spoil it.")
tiny_eps = train_mixed(UnscalesLate("cpu"), torch.bfloat16, eps=1e-15)
lab03.print_losses(
    {"fp32": plain["fp32"], "clipped too early": bug, "the same, epsilon 1e-15": tiny_eps}
)

# %% [markdown]
# The true norms never reach `max_norm` = 1, so a right step clips nothing. This one leaves a norm of $2^{-16}$ in every
# step. SGD would hardly move. AdamW divides by $\sqrt{v} + \epsilon$, and $\sqrt{v}$ shrinks with the gradients, so it
# does move. But spread over 200,000 weights, that norm is about $3 \cdot 10^{-8}$ for each, and $\epsilon = 10^{-8}$ is
# no longer small beside it. So the steps are too short: the curve falls smoothly and ends at 0.168 instead of 0.116.
# Without the fp32 row beside it you would not notice. The last row shows that $\epsilon$ does the harm. With a tiny one
# the loss even ends below fp32's, but by another algorithm again: gradients of every step are brought to the same norm.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Give every operation its dtype
#
# How does autocast choose the precision of an operation? It has lists. A matrix product rounds its
# inputs to 16 bits and adds in fp32 inside the tensor core, so it is cast down. Softmax, norms and sums exponentiate or
# add many terms, so they are cast up. All other operations run in the dtype of their inputs. On a GPU, for the operations
# of this lab:
#
# | list | operations | result |
# |---|---|---|
# | low dtype | `linear`, `matmul`, `conv1d`, `attention` (`scaled_dot_product_attention`) | the low dtype |
# | float32 | `softmax`, `log_softmax`, `cross_entropy`, `mse_loss`, `layer_norm`, `group_norm`, `sum`, `cumsum`, `norm`, `exp`, `log`, `pow`, `rsqrt`, `softplus` | float32 |
# | none | `add`, `mul`, `cat`, `where`, `relu`, `gelu`, `silu`, `sigmoid`, `tanh`, `sqrt`, `mean`, `amax`, `dropout`, `transpose`, `embedding`, `add_`, `float` | as without autocast |
#
# There are five special cases:
#
# - Autocast never casts a float64 tensor, whatever the list.
# - Without a list, inputs of different dtypes are promoted as usual (`torch.promote_types`).
# - Promotion makes float32 of float16 with bfloat16, because neither contains the other.
# - An in-place operation such as `add_` cannot change the dtype of the tensor that it writes into.
# - `float` is a cast written in the model itself, not by autocast, and always returns float32, even for a float64
#   input.
#
# So the result of a float32 operation *stays* float32 until the next matrix product.

# %%
for op in BLOCKS["llama"]:
    print(f"{op.result:10}= {op.function}({', '.join(op.inputs)})")

# %% [markdown]
# **Predict:** this is a Llama block's RMSNorm and MLP. Let `x` be bfloat16, as it comes out of a matrix product, and all
# weights float32. How many of its 12 results are 16 bits wide?

# %% nbgrader={"grade": false, "grade_id": "03-predict-results", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("results of 16 bits", None, exact=True)

# %% [markdown]
# [[exercise 03-autocast-dtypes]]
#
# Write `autocast_dtypes(ops, given, low)`. Each op has a `result` (a name), a `function` (a name from the table:
# `"attention"` for `scaled_dot_product_attention`) and `inputs` (names of earlier results or of given tensors). `given`
# maps the names of the given tensors to dtypes. int64 occurs only as the first input of an `embedding`. The inputs of
# `where` are the two tensors that it chooses from; its condition is not among them. `low` is the low dtype, float16 or
# bfloat16. Return the dtype of every result by its name. The check runs the blocks, public ones and others, on *fake
# CUDA tensors*: PyTorch's real rules, without a GPU.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Go through the ops in order and keep a dict from names to dtypes. For each op there are at most five questions. In
# which order do you have to ask them?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# First the two that no list decides: `float` is float32, `add_` keeps its first input's dtype. Then promote all
# *floating* inputs to their widest. If that is float64, it stays. Otherwise the list decides, and without a list it is
# the widest.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `widest = functools.reduce(torch.promote_types, [d for d in inputs if d.is_floating_point])`. An embedding has an
# int64 index and a table, so the table's dtype is the only one left. `promote_types` also has the answer for
# float16 with bfloat16.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "03-autocast-dtypes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def autocast_dtypes(
    ops: Sequence[Op], given: Mapping[str, torch.dtype], low: torch.dtype
) -> dict[str, torch.dtype]:
    """The dtype of every op's result on a GPU under autocast to `low`, by the result's name."""
    ### BEGIN SOLUTION
    to_low = {"linear", "matmul", "conv1d", "attention"}
    to_float32 = {"layer_norm", "group_norm", "softmax", "log_softmax", "cross_entropy", "mse_loss"}
    to_float32 |= {"sum", "cumsum", "norm", "exp", "log", "pow", "rsqrt", "softplus"}
    dtypes = dict(given)
    for op in ops:
        inputs = [dtypes[name] for name in op.inputs]
        widest = functools.reduce(torch.promote_types, [d for d in inputs if d.is_floating_point])
        if op.function == "float":
            dtypes[op.result] = torch.float32
        elif op.function == "add_":
            dtypes[op.result] = inputs[0]
        elif widest == torch.float64:
            dtypes[op.result] = torch.float64
        elif op.function in to_low:
            dtypes[op.result] = low
        elif op.function in to_float32:
            dtypes[op.result] = torch.float32
        else:
            dtypes[op.result] = widest
    return {op.result: dtypes[op.result] for op in ops}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-autocast-dtypes-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("03-autocast-dtypes", autocast_dtypes)

# %%
given = {name: torch.float32 for op in BLOCKS["llama"] for name in op.inputs}
dtypes = autocast_dtypes(BLOCKS["llama"], {**given, "x": torch.bfloat16}, torch.bfloat16)
guesses.settle("results of 16 bits", sum(dtype.itemsize == 2 for dtype in dtypes.values()))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Seven: `gate`, `up`, `act`, `product`, `down`, `y` and `y_kept`. The whole RMSNorm is float32 although `x` is not: `pow`
# and `rsqrt` return float32, and promotion does the rest. `y` is the sum of two bf16 tensors, and `add` is on no list;
# with `x` in float32 it would be float32.
#
# </details>
#
# The lists depend on the device: PyTorch keeps a separate, shorter one for the CPU. The next cell *runs* a GPT block on
# this machine's CPU under autocast and puts what it got beside your result for a GPU. Lines in red differ.

# %% tags=["figure"]
block = BLOCKS["gpt"]
names = {name for op in block for name in op.inputs} - {op.result for op in block}
given = {name: torch.float32 for name in sorted(names)} | {"x": torch.bfloat16}
labkit.figures.dtype_map(
    block,
    given,
    torch.bfloat16,
    {"GPU, by your rules": autocast_dtypes, "this CPU, measured": lab03.measured_on_cpu},
)

# %%
given = {"index": torch.int64, "w_table": torch.float32, "w_out": torch.float32}
on_gpu = autocast_dtypes(BLOCKS["head"], given, torch.bfloat16)
on_cpu = lab03.measured_on_cpu(BLOCKS["head"], given, torch.bfloat16)
for op in BLOCKS["head"]:
    if on_gpu[op.result] != on_cpu[op.result]:
        print(f"{op.function:12} GPU {on_gpu[op.result]}   CPU {on_cpu[op.result]}")

# %% [markdown]
# On the CPU softmax, log-softmax, layer norm, sums and norms stay in bf16; only losses such as `cross_entropy` go to
# fp32. So a run on a CPU does not test whether training is stable on a GPU. Three habits follow from the GPU's list:
#
# - Where a sum matters, do not write it as a `mean`: `mean` is on no list, so its result is rounded to 16 bits.
# - Where a piece of a model needs fp32, wrap it in `torch.autocast(device, enabled=False)` and call `.float()` on its
#   inputs.
# - Use `binary_cross_entropy_with_logits`. On a GPU `binary_cross_entropy` raises an error under autocast, because its
#   backward pass overflows in fp16.

# %% [markdown]
# ## Know when mixed precision saves memory
#
# Does mixed precision save memory? Hugging Face's guide to training on a single GPU says "maybe". Let us count.
#
# Take a chain of linear layers without bias, each with a width of its own, and a GELU between any two of them. The
# figure shows the tensors of two layers under autocast, in the colour of their dtype. Which of them are alive at the
# end of the forward pass, while we are still inside the autocast block, in inference and in training?

# %% tags=["figure"]
labkit.figures.amp_layers()

# %% [markdown]
# **Predict:** how many bytes per parameter are alive then, in inference under autocast, with a single row?

# %% nbgrader={"grade": false, "grade_id": "03-predict-inference", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("inference under autocast", None, unit="bytes per parameter")

# %% [markdown]
# **Predict:** and in training with AdamW under autocast, also with a single row, when the gradients of the previous
# micro-batch are still there?

# %% nbgrader={"grade": false, "grade_id": "03-predict-training", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("training under autocast", None, unit="bytes per parameter")

# %% [markdown]
# Autocast leaves the fp32 weights where they are and makes a 16-bit copy of each. It keeps the copy until the autocast
# block ends, so that a weight that is used twice is cast once. In training, autograd also keeps the copies of all
# layers but the first until the backward pass, which needs them for the gradients with respect to the layers' inputs.
# What autocast saves is the *activations*: the result of a linear layer takes 2 bytes per element instead of 4. So
# these are alive:
#
# - *inference* (no autograd): at the end of the forward pass the weights, the input, which is fp32, and the output. The
#   copies are alive too, as long as we are inside the block;
# - *training*: also AdamW's two moments and the gradients of the previous micro-batch (all fp32), and what the backward
#   pass needs: the input of every linear layer, in the dtype in which the layer computes, and the input of every GELU.
#   For the first layer under autocast that is a 16-bit copy of the fp32 input.

# %% [markdown]
# [[exercise 03-amp-memory]]
#
# Write two functions.
#
# - `bytes_after_forward(widths, n_rows, training=..., autocast=...)`: the bytes that are alive at the end of the forward
#   pass, before the autocast block is left. `widths` has the input's width $d_0$ first, then the width of each linear
#   layer's result: the hidden widths, whose sum is $H$, and at the end $d_L$.
# - `break_even_rows(widths)`: the smallest number of rows with which autocast leaves *fewer* bytes alive in training.
#   In the check there always is such a number.
#
# The check measures both on hidden models. You may leave out AdamW's step counters, 4 bytes for each weight matrix.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Make a table with a row for each tensor: its elements, its bytes under fp32, its bytes under autocast. GELU's result
# and the next layer's input are the same tensor; GELU's own input is another.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# For each parameter: weight 4, in training gradient 4 and moments 8, under autocast a copy 2. For each row: the input 4
# per element; every hidden width twice in training, the last width once, each with 4 or 2 bytes. Under autocast the
# first layer keeps a 16-bit copy of the input for backward.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With $P$ parameters and $n$ rows: in training $16P + 4n(d_0 + 2H + d_L)$ in fp32 and $18P + 6nd_0 + 2n(2H + d_L)$ under
# autocast. The two are equal where $2P$ equals what the rows save, and autocast takes less from the next row on. In
# inference leave out $12P$, $H$, and the copy of the input.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "03-amp-memory", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_after_forward(
    widths: Sequence[int], n_rows: int, *, training: bool, autocast: bool
) -> int:
    """Bytes alive at the end of the forward pass, inside the autocast block if there is one."""
    ### BEGIN SOLUTION
    n_parameters = sum(n_in * n_out for n_in, n_out in itertools.pairwise(widths))
    width = 2 if autocast else 4  # bytes of each activation that a layer makes
    n_bytes = 4 * n_parameters + 4 * n_rows * widths[0] + width * n_rows * widths[-1]
    if autocast:
        n_bytes += 2 * n_parameters  # the cast copies
    if training:
        n_bytes += (4 + 8) * n_parameters  # gradients, two moments
        # What goes into each GELU, and what comes out of it.
        n_bytes += 2 * width * n_rows * sum(widths[1:-1])
        if autocast:
            n_bytes += 2 * n_rows * widths[0]  # the input's cast copy, kept for backward
    return n_bytes
    ### END SOLUTION


def break_even_rows(widths: Sequence[int]) -> int:
    """The smallest number of rows with which autocast leaves fewer bytes alive in training."""

    ### BEGIN SOLUTION
    def more_under_autocast(n_rows: int) -> int:
        return bytes_after_forward(
            widths, n_rows, training=True, autocast=True
        ) - bytes_after_forward(widths, n_rows, training=True, autocast=False)

    copies = more_under_autocast(0)
    saved_by_a_row = copies - more_under_autocast(1)
    return copies // saved_by_a_row + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-amp-memory-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("03-amp-memory", bytes_after_forward, break_even_rows)


# %%
def bytes_measured(widths: Sequence[int], n_rows: int, training: bool, autocast: bool) -> int:
    """The same, by running it: what the meter finds alive."""
    pairs = itertools.pairwise(widths)
    layers = [part for a, b in pairs for part in (nn.Linear(a, b, bias=False), nn.GELU())]
    model, x, optimizer = nn.Sequential(*layers[:-1]), torch.randn(n_rows, widths[0]), None
    if training:
        optimizer = torch.optim.AdamW(model.parameters())
        model(x).sum().backward()
        optimizer.step()  # the gradients stay, as while they accumulate
    precision = torch.autocast("cpu", dtype=torch.bfloat16) if autocast else nullcontext()
    with track_memory(model, optimizer, x) as profile, precision, torch.set_grad_enabled(training):
        result = model(x)
        return profile.live_bytes


widths = (256, 512, 512, 256)
n_parameters = sum(a * b for a, b in itertools.pairwise(widths))
for training, autocast in itertools.product((False, True), (False, True)):
    name = f"{'training' if training else 'inference'}, {'autocast' if autocast else 'fp32'}"
    found = [bytes_measured(widths, n, training, autocast) / n_parameters for n in (1, 4096)]
    print(f"{name:20} {found[0]:6.2f} bytes per parameter with 1 row, {found[1]:6.2f} with 4096")
    if autocast:
        guesses.settle(f"{'training' if training else 'inference'} under autocast", found[0])

# %% tags=["figure"]
rows = (1, 150, 300, 450)
labkit.figures.amp_memory(
    bytes_after_forward,
    break_even_rows,
    widths,
    {
        autocast: {n: bytes_measured(widths, n, training=True, autocast=autocast) for n in rows}
        for autocast in (False, True)
    },
)

# %% [markdown]
# <details><summary>Check your predictions</summary>
#
# 6 in inference, against 4 in fp32, and 18 in training, against 16: the 16-bit copies come on top of the fp32 weights.
#
# </details>
#
# So autocast costs memory with one row and saves memory with many, because then the activations outweigh the copies. That
# is the "maybe". Where the lines cross depends on $P$ and on the widths: a small model on large batches gains, a large
# model on a few tokens loses.
#
# Two remarks for real models. On a GPU softmax and layer norm return float32 under autocast, and the next layer casts
# their results down, so a transformer saves less than this stack. And for inference on a few tokens autocast is the wrong
# tool: load the weights in bf16 (`dtype=torch.bfloat16`), at 2 bytes per parameter.

# %%
n_parameters = 8.03e9
for name, width in (("fp32", 4), ("autocast over fp32", 6), ("bf16 weights", 2)):
    n_bytes = width * n_parameters
    print(f"Llama-3-8B, inference, {name:20}{n_bytes / 1e9:>6.1f} GB {n_bytes / 2**30:>6.1f} GiB")

# %% [markdown]
# ## What you measured
#
# Each line is a training of the same model for 61 steps; trainings that you have not run are left out. The bytes are
# computed: weights, gradients, AdamW's states and cast copies. The loss is measured.

# %%
print(f"{'recipe':28}{'last loss':>10}{'bytes per parameter':>22}")
recipes = [(name, losses, 16 if name == "fp32" else 8) for name, losses in plain.items()]
recipes += [(f"autocast {name}", losses, 18) for name, losses in runs.items()]
for name, losses, n_bytes in recipes:
    print(f"{name:28}{losses[-1]:>10.3f}{n_bytes:>22}")

# %% [markdown]
# Is it twice as fast? Autocast can speed up only the products. The optimizer takes as long as before, and the casts come
# on top. The next cell times this model and one that is four times as wide.

# %% tags=["figure"]
timed = {
    "fp32": (torch.float32, False),
    "autocast to bf16": (torch.float32, True),
    "pure bf16": (torch.bfloat16, False),
}
labkit.figures.mixed_precision.step_times(
    {
        width: {name: lab03.best_ms(width, *recipe) for name, recipe in timed.items()}
        for width in (64, 256)
    }
)

# %% [markdown]
# A CPU with instructions for 16-bit matrix products is faster on the wide model. A CPU without them is slower under
# autocast than in fp32: it casts every weight in every step and gets nothing in return. None of this tells you about
# a GPU: an A100 multiplies matrices at 19.5 TFLOP/s in fp32, 156 in TF32 and 312 in fp16 or bf16.

# %%
guesses.score()

# %%
progress("03", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.


# %% tags=["figure"]
def autocast_share(n_rows: int) -> float:
    """Bytes after the forward pass of a training step, under autocast, divided by those in float32."""
    under, plain = (bytes_measured(widths, n_rows, True, autocast) for autocast in (True, False))
    return under / plain


labkit.feature_row(
    "03",
    "autocast to bfloat16",
    memory=lambda: (
        f"{autocast_share(1):.0%} of float32's with 1 row, {autocast_share(450):.0%} with 450"
    ),
)

# %% [markdown]
# ## Open question
#
# This question is worth 3 points. A person reads your answer, so no check responds at once, and `progress` does not
# count it. Write 150 to 250 words; numbers count more than words.
#
# A team runs the released checkpoints of one family of language models in fp16 and in bf16, for inference only. For
# most families the two are alike. For this family bf16 is clearly worse on a benchmark, and fp16 does not overflow. Why
# might that be, and what would you check first? Use numbers from this lab, and say what each outcome of your check
# would mean. Answer before you read the optional section below, which looks at such differences.

# %% [markdown] nbgrader={"grade": true, "grade_id": "03-open-bf16", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# bf16 rounds 8 times more coarsely than fp16 (8 against 11 significant bits; the KV-cache differences below, 0.125
# against 0.02, show it; casting fp16 weights to bf16 changes 87 % of them, by 0.17 % in all). Its only advantage is
# range, which does not matter where nothing overflows. Likely reasons: the checkpoint was trained or stored in fp16, so
# that fp16 reproduces it exactly and the cast to bf16 drops 3 bits of every weight; large logits or large activations,
# where a gap of bf16 is 0.06 to 0.125 and decides between close candidates; positions or rotary angles computed in
# bf16, which cannot tell 257 from 256; a cache or a softmax kept in bf16.
#
# First check: in which dtype were the weights saved (config and tensors), and does casting fp16 -> bf16 -> fp16 change
# them? Then run bf16-rounded weights with fp32 arithmetic: if the score is as bad, the weights are the cause; if it
# is good, the arithmetic is, and switching single parts (rotary embedding, norms, softmax, lm_head, cache) to fp32 finds
# which. Compare logits, not only scores, with fp32 as the reference, and run the benchmark with two seeds or batch sizes to
# see how much of the difference is noise.
#
# Marks: 1 for precision against range with a number (8 times, 3 bits, or a gap at a given size). 1 for one concrete reason
# that fits "one family" (dtype of training or storage, positions, large logits). 1 for a check with both outcomes read.
# "bf16 is less precise" alone earns 1/2.
# ### END SOLUTION

# %% [markdown]
# ## Differences that are not bugs (optional reading)
#
# No exercise needs this section, but answer the open question first. Here are four short stories about two runs that
# should agree and do not: with and without a KV cache, the same file loaded twice, a GPU against a CPU, and the same
# step twice.
#
# **A KV cache.** A bug report: generating with a key-value cache gives other logits than running the whole text at
# once. In exact arithmetic the two are the same. The reporter found differences of up to 0.125 in bf16 and 0.0195 in
# fp16, and concluded that one of the two was broken. Neither is. bf16 has 7 mantissa bits and fp16 has 10, so a gap
# between neighbouring bf16 numbers is 8 times as wide.
#
# The cell needs `transformers`. The weights are random; those of the head are multiplied by 10, so that the logits
# reach 13, as they do in trained models.

# %%
errors = {}
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    errors[dtype], largest = lab03.cache_error(dtype)
    gap = torch.finfo(dtype).eps * 2.0 ** math.floor(math.log2(largest))
    print(
        f"{dtype!s:16} largest difference {errors[dtype]:.2g}, logits up to {largest:.1f},"
        f" where the gap is {gap:.2g}"
    )
ratio = errors[torch.bfloat16] / errors[torch.float16]
print(f"bf16 divided by fp16: {ratio:.1f}; in the report: {0.125 / 0.0195:.1f}")

# %% [markdown]
# The order of the sums differs: a matrix product over 48 rows is cut into other blocks than one over a single row
# (lab 02). That shows as rounding, and in 16 bits the largest difference is one to a few gaps. Your ratio above and
# the report's 6.4 are as close to 8 as you can expect from two maxima. This is not a bug. But where the two best
# tokens are closer than 0.1, the generated text may change.
#
# **A checkpoint** meets the same gaps when it was stored in one format and is loaded in the other:

# %%
weights = 0.02 * torch.randn(1_000_000, generator=torch.Generator().manual_seed(0))
for stored, loaded in ((torch.float16, torch.bfloat16), (torch.bfloat16, torch.float16)):
    before = weights.to(stored).double()
    after = weights.to(stored).to(loaded).double()
    error, changed = (after - before).norm() / before.norm(), (after != before).double().mean()
    print(f"{stored} to {loaded}: {changed:.2%} of the weights change, relative error {error:.1e}")

# %% [markdown]
# **TF32.** On NVIDIA GPUs from Ampere on there is a third way to save bits in a product: the tensor core rounds fp32
# inputs to 10 mantissa bits and adds their products in fp32. No dtype changes, so nothing in your program shows it.


# %%
def to_tf32(x: Tensor) -> Tensor:
    """float32 values with 10 mantissa bits, rounded to nearest even (lab 02)."""
    pattern = x.view(torch.int32).long() & 0xFFFFFFFF
    return ((pattern + 0xFFF + (pattern >> 13 & 1)) >> 13 << 13).int().view(torch.float32)


generator = torch.Generator().manual_seed(0)
a, b = torch.randn(2, 512, 512, generator=generator)
exact = a.double() @ b.double()
rounding = {
    "fp32": lambda x: x,
    "tf32": to_tf32,
    "fp16": lambda x: x.half().float(),
    "bf16": lambda x: x.bfloat16().float(),
}
for name, rounded in rounding.items():
    error = (rounded(a) @ rounded(b) - exact).norm() / exact.norm()
    print(f"inputs in {name}: relative error of the product {error:.1e}")
print("matrix products may use TF32:", torch.backends.cuda.matmul.allow_tf32)
print("convolutions may use TF32:   ", torch.backends.cudnn.allow_tf32)

# %% [markdown]
# TF32 has the precision of fp16 and the range of bf16. The two switches have different defaults: convolutions use TF32
# unless told otherwise, matrix products do not. `torch.set_float32_matmul_precision("high")` allows it for products and
# is the first thing to try when fp32 training is slow on a GPU. Switch both off when you compare a GPU with a CPU in
# fp32, or a difference of $10^{-3}$ will cost you an afternoon.
#
# **Determinism.** The same step can give other bits on the same GPU: sums by atomic additions end in any order, and
# cuDNN times several algorithms and keeps the one that was fastest this time. For a run that repeats bit by bit you need
# all of these:

# %%
torch.manual_seed(0)  # and the seeds of random, numpy and the data loader's workers
torch.backends.cudnn.benchmark = False  # no choice of algorithms by timing
torch.use_deterministic_algorithms(True)  # an error where an operation has no deterministic way
# and, before the program starts, in the environment: CUBLAS_WORKSPACE_CONFIG=:4096:8

print("torch.empty(3) is now", torch.empty(3).tolist())
try:
    torch.zeros(4).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))
except RuntimeError as error:
    print(str(error).split(",")[0])
torch.use_deterministic_algorithms(False)

# %% [markdown]
# Uninitialized memory is filled with NaN, so that you notice when it is used, and operations whose result depends on an
# order raise an error. All of this costs speed. Use it to find a bug, then switch it off again.

# %% [markdown]
# ## Where to read on
#
# - Paulius Micikevicius and others, *Mixed Precision Training* (ICLR 2018, arXiv 1710.03740): master weights, loss
#   scaling, and the histogram of gradients that this lab redraws.
# - PyTorch documentation, *Automatic Mixed Precision package*: the complete lists for CUDA, XPU and CPU; *Automatic
#   Mixed Precision examples*: gradient accumulation, penalties, several models.
# - Dhiraj Kalamkar and others, *A Study of BFLOAT16 for Deep Learning Training* (arXiv 1905.12322).
#
# **Sources.** The texts above. Dynamic loss scaling as in NVIDIA, *Train With Mixed Precision* (user's guide), and
# `torch.amp.GradScaler`. "Maybe" for memory: Hugging Face, *Methods and tools for efficient training on a single GPU*,
# and the table of features in the deck called Efficiency. The differences of 0.125 and 0.0195: a discussion in the issues
# of `transformers` (number 25420). TF32 and its switches, determinism: PyTorch documentation, *CUDA semantics* and
# *Reproducibility*.
