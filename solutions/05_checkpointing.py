# %% [markdown]
# # Lab 05: Recomputation and offloading
#
# GPT-2 medium has 0.355 billion parameters, 1.3 GiB (1.4 GB) in float32. One forward and backward pass over 8 texts
# of 1024 tokens needs 27 GiB (29 GB), before there is any optimizer. **What are the other 26?** And how can the same
# pass run in 7 GiB, with the same gradients to the last bit?
#
# You will write six ways to save that memory, and each has its price: recompute what you threw away, cut the model
# into segments, keep only the input, keep only what was expensive to compute, move activations or weights to the
# host, and compute the loss in pieces. At the end you can tell from a model's shape which one pays.
#
# [[time]]
#
# You should know what a `torch.autograd.Function` is: it has a `forward` and a `backward`, and passes things from one
# to the other on `ctx`. The figures of memory are those of lab 01. The exercises on offloading use streams, which one
# cell below introduces and lab 09 treats in full; you can leave them for later.

# %% nbgrader={"grade": false, "grade_id": "05-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import contextlib
import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

import labkit.figures
from labkit import Predictions, check, has_gpu, measure_step, progress, track_memory, track_ops
from labkit.material.lab05 import NeverEnds, calls_limited
from labkit.meters import measure_memory, measure_saved
from labkit.simdevice import Machine, run_traced
from labkit.units import in_bytes

guesses = Predictions("05")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# First the 27 GiB, measured. `measure_step` runs the real program on tensors that have a shape but no memory, and
# adds up what would be alive after each operation.

# %%
import warnings

from transformers import GPT2Config, GPT2LMHeadModel, logging

logging.set_verbosity_error()
no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
config = GPT2Config(n_layer=24, n_embd=1024, n_head=16, use_cache=False, **no_dropout)
tokens = torch.zeros(8, 1024, dtype=torch.int64)


def gpt2_pass(checkpointed: bool):
    def build():
        model = GPT2LMHeadModel(config).train()
        if checkpointed:
            # transformers warns that this method will get another name.
            with warnings.catch_warnings(action="ignore"):
                model.gradient_checkpointing_enable()
        return model

    return measure_step(build, {"input_ids": tokens, "labels": tokens}, n_steps=1)


regular_gpt2, checkpointed_gpt2 = gpt2_pass(False), gpt2_pass(True)
print(regular_gpt2.report(n_tensors=3))

# %% tags=["figure"]
labkit.figures.memory_timeline(
    {"as it is": regular_gpt2, "with gradient_checkpointing_enable()": checkpointed_gpt2}
)

# %% [markdown]
# The parameters are the small part. Most of the memory is **activations**: what the forward pass computed and the
# backward pass will need. They grow with the batch and with the length of the text, which the parameters do not. The
# second line shows what one method call makes of it. You will write the core of that method now, and at the end of
# the lab remove the peak that it leaves.

# %% [markdown]
# ## Forget, and compute again
#
# Backpropagation goes through the layers in reverse, so the first layer comes last. To multiply the incoming gradient
# by a layer's derivative, it needs the values inside that layer, and these wait in memory from the forward pass on.
# But you can compute them again, because the functions are still there. A **checkpoint** around a part of the model
# keeps only the arguments of that part, throws away everything inside, and runs the part again when its gradient is
# needed.
#
# For a part $f$ whose arguments take $a$ bytes and whose inside, without the arguments, takes $I$ bytes:
#
# | | kept after the forward pass | held during its backward pass | runs of $f$ |
# |---|---|---|---|
# | as usual | $a + I$ | $a + I$ | 1 |
# | checkpoint | $a$ | $a + I$ | 2 |
#
# A backward pass costs about as much as two forward passes, so the second run turns a step of 3 units into one of 4.
# The figure shows one feed-forward block; the length of each bar is the bytes of a tensor.

# %% tags=["figure"]
labkit.figures.kept_and_dropped()

# %% [markdown]
# One thing can go wrong without any error. If $f$ contains dropout, the second run draws other random numbers, and
# the gradient belongs to a network that was never run. So the state of the random number generator has to be kept,
# like an argument.
#
# **Predict:** a dropout layer drops 25 % of its units, and draws new random numbers in the second run. What share of
# the units is dropped in exactly one of the two runs? (In the next cell, as in all cells of this kind, replace `None`
# with your answer and run the cell. A choice from `among` is written exactly as it stands there, in quotes.)

# %% nbgrader={"grade": false, "grade_id": "05-predict-redrawn", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("units that differ", None, unit="%")

# %% [markdown]
# [[exercise 05-checkpoint]]
#
# Write `checkpoint(fn, *args)`. It returns `fn(*args)`, a single tensor, and keeps nothing but the arguments for the
# backward pass. Some arguments are not tensors, and some tensors need no gradient, but at least one does. `fn` may
# use parameters of its own, as a module does; they get their gradients too. `fn` runs exactly twice and draws the
# same random numbers both times. After the backward pass the generator has the state that it would have without a
# checkpoint.
#
# The check counts the bytes that are alive after the forward pass, wherever you keep them.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The `forward` of an autograd Function runs with gradients off, so whatever `fn` does there leaves no graph, and
# everything inside is freed at once. `backward` has to build the graph that `forward` did not build, for this part
# alone.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In `backward`: make detached copies of the tensors, with the `requires_grad` of the originals. Restore the state of
# the generator and run `fn` under `torch.enable_grad()`. Then `torch.autograd.backward(out, grad_out)` fills the
# `.grad` of the copies and of all parameters that `fn` used. Return the copies' `.grad`: one value for each argument
# of `forward`, None where there is no gradient.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `ctx.save_for_backward(*tensors)` takes tensors only. Keep `fn`, the other arguments and `torch.get_rng_state()`
# (read *before* `fn` runs) as attributes of `ctx`. `with torch.random.fork_rng(), torch.enable_grad():` puts the
# generator back when it ends; inside, call `torch.set_rng_state(...)` and then `fn`. A detached copy is
# `tensor.detach().requires_grad_(tensor.requires_grad)`. A GPU has a second generator: `torch.cuda.get_rng_state()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-checkpoint", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn: Callable[..., Tensor], *args) -> Tensor:
        """fn(*args), with what the second run will need on ctx."""
        ### BEGIN SOLUTION
        ctx.fn, ctx.states = fn, generator_states()
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*(arg if isinstance(arg, Tensor) else None for arg in args))
        return fn(*args)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_out: Tensor) -> tuple:
        """The gradients of fn and of each of args: None for what has none."""
        ### BEGIN SOLUTION
        args = [
            other if saved is None else saved.detach().requires_grad_(saved.requires_grad)
            for other, saved in zip(ctx.others, ctx.saved_tensors)
        ]
        with torch.random.fork_rng(), torch.enable_grad():
            restore_generators(ctx.states)
            out = ctx.fn(*args)
        torch.autograd.backward(out, grad_out)
        return None, *(arg.grad if isinstance(arg, Tensor) else None for arg in args)
        ### END SOLUTION


def checkpoint(fn: Callable[..., Tensor], *args) -> Tensor:
    """fn(*args), which keeps only args for the backward pass and runs fn once more there."""
    ### BEGIN SOLUTION
    return Checkpoint.apply(fn, *args)


def generator_states() -> tuple:
    return torch.get_rng_state(), torch.cuda.get_rng_state() if torch.cuda.is_available() else None


def restore_generators(states: tuple) -> None:
    torch.set_rng_state(states[0])
    if states[1] is not None:
        torch.cuda.set_rng_state(states[1])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-checkpoint-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("05-checkpoint", checkpoint)

# %% [markdown]
# Now run it on a feed-forward block as in a transformer, whose inside is four times as wide, next to PyTorch's own
# checkpoint.

# %%
from torch.utils.checkpoint import checkpoint as torch_checkpoint


def feed_forward(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(width),
        nn.Linear(width, 4 * width),
        nn.GELU(),
        nn.Dropout(0.1),
        nn.Linear(4 * width, width),
    )


def kept_and_gradient(call) -> tuple[int, Tensor]:
    torch.manual_seed(0)
    model, x = feed_forward(64), torch.randn(1024, 64, requires_grad=True)
    measured: dict[str, float] = {}
    with measure_saved(measured):
        out = call(model, x)
    out.square().mean().backward()
    return measured["saved_bytes"], x.grad


first, second = torch.rand(2, 1_000_000) >= 0.25
guesses.settle("units that differ", 100 * (first != second).float().mean())

no_checkpoint = kept_and_gradient(lambda model, x: model(x))
for name, call in {
    "no checkpoint": lambda model, x: model(x),
    "yours": checkpoint,
    "torch.utils.checkpoint": lambda model, x: torch_checkpoint(model, x, use_reentrant=False),
}.items():
    kept, gradient = kept_and_gradient(call)
    print(
        f"{name:24}{in_bytes(kept):>12} kept, same gradient: {torch.equal(gradient, no_checkpoint[1])}"
    )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Kept and then dropped, or the other way round: $2 \cdot 0.75 \cdot 0.25 = 37.5\,\%$.
#
# </details>
#
# Both checkpoints keep `x`, which was there before, and the output of 256 KiB. The state of the generator is another
# 5 KB, but PyTorch allocates it where the meter does not see it.
#
# **In practice** use PyTorch's checkpoint with `use_reentrant=False`. Yours is of the *reentrant* kind, the older one:
# its backward starts a backward pass inside a backward pass. It has a trap. If no argument needs a gradient, the output
# of the Function needs none either, and the parameters inside get no gradient. Take a model whose embedding is frozen,
# as with the adapters of lab 08. The input of its first layer needs no gradient, so neither does the output, which is
# the input of the second layer, and so on: **no** checkpointed layer gets a gradient. PyTorch's reentrant kind warns
# about it, yours does not. The newer kind replaces the saved tensors by placeholders, and recomputes when the first
# placeholder is used.

# %% [markdown]
# ## How many segments?
#
# A checkpoint around the whole model saves nothing, because everything is there at once while it is recomputed. A
# checkpoint around every layer keeps one input per layer. Between these two ends, cut $L$ layers into $k$ segments
# and put a checkpoint around each. While a segment is recomputed, two things are held: the outputs of all segments,
# and the inside of one segment, which is $L/k$ layers. Take the output of a layer as the unit, and let the inside of
# one layer take $c$ units. Then the peak is
#
# $$P(k) = k + c\,\frac{L}{k} \quad \text{outputs of a layer}$$
#
# The price is one more forward pass, whatever $k$ is: every layer runs twice.

# %% [markdown]
# **Predict:** for $L = 36$ and $c = 4$, which number of segments has the lowest peak?

# %% nbgrader={"grade": false, "grade_id": "05-predict-segments", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("best number of segments", None, among=("6", "12", "36"))

# %% [markdown]
# [[exercise 05-segments]]
#
# Write two functions.
#
# - `best_segments(n_layers, cost)` returns the whole number $k$ from 1 to $L$ for which $k + cL/k$ is smallest, and
#   either one of two that are equally good. `cost` is $c$, a float, which may be larger than $L$. Use $L/k$ as it is,
#   also where $k$ does not divide $L$.
# - `run_in_segments(layers, x, n_segments, checkpoint)` calls the functions of the list `layers` one after the other
#   and returns the last output. It uses at most `n_segments` segments, each inside `checkpoint(fn, x)`, and no
#   segment has more than $\lceil L / k \rceil$ layers. The last segment may do without its checkpoint.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Set the derivative of $P$ with respect to $k$ to zero. The root is rarely a whole number, and may lie outside of 1
# to $L$.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# $P$ falls up to $k = \sqrt{cL}$ and rises after it, so the best whole number is one of the two next to the root, or
# an end of the range. For the second function, cut at `round(i * len(layers) / n_segments)` for i from 0 to k.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `min(candidates, key=lambda k: k + cost * n_layers / k)`, with the candidates clamped to 1 and `n_layers`.
# `checkpoint` gets a function of one segment, and calls it again much later. `functools.partial(run, first, last)`
# stores the two numbers; a lambda in the loop looks them up when it is called, which is after the loop.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-segments", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_segments(n_layers: int, cost: float) -> int:
    """The number of segments with the smallest peak; cost: the inside of a layer, in outputs of a layer."""
    ### BEGIN SOLUTION
    root = math.sqrt(cost * n_layers)
    candidates = {min(max(k, 1), n_layers) for k in (math.floor(root), math.ceil(root))}
    return min(candidates, key=lambda k: k + cost * n_layers / k)
    ### END SOLUTION


def run_in_segments(
    layers: Sequence[Callable[[Tensor], Tensor]],
    x: Tensor,
    n_segments: int,
    checkpoint: Callable[..., Tensor],
) -> Tensor:
    """The output of all layers, run in at most n_segments segments, each inside checkpoint(fn, x)."""

    ### BEGIN SOLUTION
    def run(first: int, last: int, x: Tensor) -> Tensor:
        for layer in layers[first:last]:
            x = layer(x)
        return x

    cuts = [round(i * len(layers) / n_segments) for i in range(n_segments + 1)]
    for first, last in itertools.pairwise(cuts):
        x = checkpoint(partial(run, first, last), x)
    return x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-segments-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("05-segments", best_segments, run_in_segments)

# %% tags=["figure"]
labkit.figures.segment_tradeoff(run_in_segments, checkpoint, best_segments)

# %%
guesses.settle("best number of segments", str(best_segments(36, 4)))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 12, the root of $4 \cdot 36 = 144$: a peak of $12 + 144/12 = 24$ outputs. 6 and 36 segments take 30 and 40.
#
# </details>
#
# On the left are 36 layers with $c = 4$, run with your two functions and measured. The dots follow the dashed formula.
# They lie two outputs above it where $k$ divides 36, because the gradients on their way through a layer need room too.
# Elsewhere they lie higher, because the longest segment counts. At the left end, one big segment saves nothing at all
# and still costs the extra pass. The right panel shows that the price does not depend on $k$. If your check fails, look
# here: segments that are cut wrongly move the dots off the line.
#
# Many texts recommend $\sqrt{L}$ segments, which is the case $c = 1$. A real layer keeps much more. For a GPT in
# 16-bit floats, with dropout and with an attention that does not keep its scores, Korthikanti and others count 34
# bytes per token and unit of width. An output takes 2 bytes, so $c = 17$. The Llama-3-8B of lab 01 keeps 49, so $c =
# 24.5$. With $c = 17$ and $L = 32$ the root is 23, and $P$ is so flat there that 32 segments, one per layer, take 49
# outputs where 23 take 47. With $c = 24.5$ the root is 28, and 28 segments take 56 outputs where 32 take 56.5. That
# is why libraries put a checkpoint around every layer and leave it at that.

# %%
for k in (1, 6, best_segments(32, 17), 32):
    print(f"{k:>3} segments of a 32-layer transformer: {k + 17 * 32 / k:6.1f} outputs of a layer")

# %% [markdown]
# **In practice** `torch.utils.checkpoint.checkpoint_sequential(model, segments, x)` does this for an `nn.Sequential`.
# It puts no checkpoint around the last segment, because its backward pass comes at once and nothing would be saved.

# %%
from torch.utils.checkpoint import checkpoint_sequential

x = torch.randn(64, 16, requires_grad=True)
model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(12)))
(by_torch,) = torch.autograd.grad(checkpoint_sequential(model, 4, x, use_reentrant=False).sum(), x)
run_in_segments(list(model), x, 4, checkpoint).sum().backward()
print("same gradient as checkpoint_sequential:", torch.allclose(by_torch, x.grad))

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Keep only the input
#
# How far can we push this? All the way: keep the input $x$ and nothing else. For the gradient of the last layer, run
# all layers before it from $x$, then this one with a graph. For the layer before, start from $x$ again. The memory no
# longer depends on the depth $n$. Layer $k$ needs $k - 1$ runs to get its input and one more that is differentiated,
# so there are
#
# $$1 + 2 + \dots + n = \frac{n(n+1)}{2} \quad \text{runs of a layer}$$
#
# instead of $n$. The last layer returns the loss, so its value is known after the first pass through all layers.

# %% [markdown]
# **Predict:** a model of 24 layers is trained this way. By what factor does a step get slower, if a layer's backward
# pass costs two forward runs?

# %% nbgrader={"grade": false, "grade_id": "05-predict-only-input", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("slowdown with 24 layers", None)

# %% [markdown]
# [[exercise 05-low-memory]]
#
# Write `low_memory_backward(layers, x)`. `layers` is a list of functions of one tensor, the last of which returns the
# loss, a scalar. Return the loss, without a graph, and its gradient with respect to `x`. The gradients of the
# parameters are added to their `.grad`, as `backward()` does. No layer draws random numbers, so there is no generator
# to restore. Run exactly $n(n+1)/2$ layers. The check counts them, and the bytes at the peak.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Backpropagation through one layer needs that layer's input and the gradient with respect to its output. The step
# before has left the second; the first is only a forward pass away.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Count down over the layers. Under `torch.no_grad()` run those before layer k, from `x`. Detach the result, let it
# require a gradient, run layer k with a graph, and call `torch.autograd.backward(out, gradient)`; for the last layer
# the gradient is None, because a scalar needs none. The `.grad` of the detached input is the next gradient.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `for k in reversed(range(len(layers))):` start with `inner = x`; with no_grad, `for layer in layers[:k]: inner =
# layer(inner)`; then `inner = inner.detach().requires_grad_()`, `out = layers[k](inner)`,
# `torch.autograd.backward(out, gradient)`, `gradient = inner.grad`. In the first turn, `out.detach()` is the loss.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-low-memory", "locked": false, "schema_version": 3, "solution": true, "task": false}
def low_memory_backward(
    layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor
) -> tuple[Tensor, Tensor]:
    """(loss, its gradient with respect to x); parameters get their .grad. Of all activations only x is kept."""
    ### BEGIN SOLUTION
    gradient = None
    for k in reversed(range(len(layers))):
        inner = x
        with torch.no_grad():
            for layer in layers[:k]:
                inner = layer(inner)
        inner = inner.detach().requires_grad_()
        out = layers[k](inner)
        if gradient is None:
            loss = out.detach()
        torch.autograd.backward(out, gradient)
        gradient = inner.grad
    return loss, gradient
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-low-memory-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("05-low-memory", low_memory_backward)

# %% tags=["figure"]
labkit.figures.backpropagation_memory(low_memory_backward, run_in_segments, checkpoint)

# %%
runs_of_a_layer = 0


def counting(x: Tensor) -> Tensor:
    global runs_of_a_layer
    runs_of_a_layer += 1
    return x.sin()


low_memory_backward([counting] * 23 + [lambda x: counting(x).mean()], torch.randn(4))
print(f"{runs_of_a_layer} runs of a layer instead of 24")
guesses.settle("slowdown with 24 layers", (runs_of_a_layer + 2 * 24) / (24 + 2 * 24))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# As usual, a step costs $24 + 2 \cdot 24 = 72$ runs of a layer. This way it costs $24 \cdot 25 / 2 + 2 \cdot 24 =
# 348$, 4.8 times as many.
#
# </details>
#
# Three ways to the same gradient, all with your functions: 16 layers that keep two outputs each ($c = 2$, for which
# `best_segments` says 6). The red line climbs during the forward pass and comes down during the backward pass. The
# blue one climbs slowly and has a tooth for each segment that is recomputed. The grey one stays below a low ceiling
# that does not depend on the depth, apart from the weights' gradients. It pays in operations: 790 instead of 277.
#
# **In practice** nobody trains this way. But it is one end of a line: with room for $m$ activations, there is a best
# plan for every $m$ between 1 and $n$ (Griewank and Walther's *revolve*). Reversible networks go another way and
# compute the input of a layer from its output.

# %% [markdown]
# ## Keep what is expensive, recompute what is cheap
#
# A checkpoint throws away everything, matrix products and additions alike. Yet almost all FLOPs of a block are in a
# few matrix products, and much of its memory is between them: normalizations, activation functions, dropout masks,
# residual sums. Every byte of a product's result that you keep saves $2h/4 = h/2$ FLOP (inner width $h$, float32),
# which is 2048 for $h = 4096$. A byte of a GELU's result saves a handful. So keep the results of the products and
# recompute the rest. PyTorch asks a **policy** about every operation in a checkpointed part, and keeps or drops its
# result.

# %% [markdown]
# **Predict:** the feed-forward block above keeps 3.51 MiB in a plain forward pass. What share of that are results of
# matrix products?

# %% nbgrader={"grade": false, "grade_id": "05-predict-products", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("share of the products", None, unit="%")

# %% [markdown]
# [[exercise 05-selective]]
#
# Write `policy(ctx, op, *args, **kwargs)`. It returns `CheckpointPolicy.MUST_SAVE` for matrix products and
# `CheckpointPolicy.PREFER_RECOMPUTE` for everything else. `op` is an operator as PyTorch dispatches it. There are
# four products: `mm` and `bmm`, and two that add something to the product, `addmm` (a linear layer with a bias) and
# `baddbmm`. Forward and backward together must take as many FLOPs as a step without any checkpoint. (`MUST_...` is
# binding; `PREFER_...` may be overruled, for example by a compiler. Without one they do the same, and the check takes
# either. PyTorch reads True as `MUST_SAVE` and False as `PREFER_RECOMPUTE`, and so does the check.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# Let the policy print `op` once, on a small block, and look at what it prints.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Operators have **overloads**. The policy gets one of them, such as `torch.ops.aten.mm.default`. `torch.ops.aten.mm`
# is the packet of all overloads, and no overload is equal to it.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# A set of the four `torch.ops.aten.NAME.default`, and `op in` that set.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-selective", "locked": false, "schema_version": 3, "solution": true, "task": false}
def policy(ctx, op, *args, **kwargs) -> CheckpointPolicy:
    """Whether the result of op is kept: those of matrix products are."""
    ### BEGIN SOLUTION
    aten = torch.ops.aten
    products = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
    return CheckpointPolicy.MUST_SAVE if op in products else CheckpointPolicy.PREFER_RECOMPUTE
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-selective-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("05-selective", policy)


# %%
def kept_and_flops(call) -> tuple[int, int]:
    model, x = feed_forward(64), torch.randn(1024, 64, requires_grad=True)
    measured: dict[str, float] = {}
    with track_ops() as operations:
        with measure_saved(measured):
            out = call(model, x)
        out.square().mean().backward()
    return measured["saved_bytes"], operations.flops


contexts = partial(create_selective_checkpoint_contexts, policy)
three_ways = {
    "no checkpoint": lambda model, x: model(x),
    "your policy": lambda model, x: torch_checkpoint(
        model, x, use_reentrant=False, context_fn=contexts
    ),
    "everything recomputed": checkpoint,
}
selective_rows = {name: kept_and_flops(call) for name, call in three_ways.items()}
for name, (kept, flops) in selective_rows.items():
    print(f"{name:24}{in_bytes(kept):>12} kept, {flops / 1e6:6.0f} MFLOP in products")
products_kept, all_kept = selective_rows["your policy"][0], selective_rows["no checkpoint"][0]
guesses.settle("share of the products", 100 * products_kept / all_kept)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# The 3.51 MiB are the layer norm's output (0.25), the GELU's input (1), the dropout mask (1: float32 on a CPU, a
# quarter of that on a GPU), the second product's input (1), its output (0.25), and a few KiB of means and variances.
# Results of products are the GELU's input and the output: 1.25 MiB, or 36 %.
#
# </details>
#
# The rest is computed again, which moves bytes but costs hardly any FLOPs. So your policy saves about two thirds of
# the memory without a single extra product.
#
# **In practice** be careful with one product, that of queries and keys. Its result has $s^2$ entries per head, which
# are cheap to compute and expensive to keep. Megatron's *selective recomputation* recomputes exactly the inside of
# the attention, and fused attention kernels do that by themselves. Compilers choose such a policy on their own: you
# set a budget with `torch._functorch.config.activation_memory_budget`, and a solver picks what to keep.

# %% [markdown]
# ## Streams, in one cell
#
# Recomputation pays for memory with FLOPs. The next two exercises pay with traffic: what the device does not need now
# waits in the memory of the host, which is ten times larger and far away. PCIe 4.0 with sixteen lanes moves about 25
# GB/s, the memory of a data-centre GPU 2000 GB/s and more. So such a copy is affordable only if the device computes
# in the meantime.
#
# A GPU works through **streams**. A stream is a queue. Work launched on it runs in order, and the launch returns at
# once, long before the work is done. Two streams run side by side, and nothing orders them unless you say so:
#
# | call | meaning |
# |---|---|
# | `cuda.Stream()`, `cuda.current_stream()` | a new stream; the stream that work is launched on now |
# | `with cuda.stream(side):` | work launched in this block goes to the stream `side` |
# | `event = side.record_event()` | a mark after the work that is queued on `side` now |
# | `stream.wait_event(event)` | work queued on `stream` from now on starts after the mark; the *host* continues at once |
# | `stream.wait_stream(other)` | the same, with a mark at the end of `other` |
# | `x.to(device, non_blocking=True)` | a copy that does not block the host, if the host's memory is **pinned** (locked, so that the operating system cannot move it) |
# | `torch.empty(shape, dtype=dtype, pin_memory=True)` | pinned host memory, for `host.copy_(x, non_blocking=True)` |

# %% [markdown]
# Without a GPU, `cuda` below is a **simulated device** with the names of `torch.cuda`. The CPU computes every
# operation at once, so all values are real. *When* it would have run follows from a machine's rates, on a virtual
# clock. The simulator also reports every missing wait, which a real GPU does not. With a GPU the same cells run on
# the GPU.
#
# **Predict:** on the simulated device a copy takes 2.6 ms, and three matrix products take 2.1 ms each; copy and
# products do not need each other. A fourth product of 8.4 ms needs both. The program launches the copy first, then
# the products. How long does it all take with two streams, if the host's memory is pinned, and if it is not? (A real
# GPU ignores the machine `SLOW` below, and takes other times.)

# %% nbgrader={"grade": false, "grade_id": "05-predict-streams", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("two streams, pinned", None, unit="ms")
guesses.take("two streams, not pinned", None, unit="ms")

# %%
SIZE = 4096 if has_gpu() else 128
SLOW = Machine(
    "a device slow enough to watch",
    flops_per_s=2e9,
    memory_bytes_per_s=20e9,
    to_device_bytes_per_s=0.1e9,
    to_host_bytes_per_s=0.1e9,
)


def copy_and_compute(n_streams: int, pinned: bool, wait: bool = True):
    """A program for `run_traced`: three products, a copy beside them, and a product that needs both."""

    def prepare(cuda, device):
        weight = torch.randn(SIZE, SIZE).to(device)
        batch = torch.randn(4 * SIZE, SIZE)
        batch = batch.pin_memory() if pinned else batch

        def program():
            side = cuda.Stream() if n_streams == 2 else cuda.current_stream()
            with cuda.stream(side):
                incoming = batch.to(device, non_blocking=True)
            y = weight @ weight
            y = y @ weight
            y = y @ weight
            if wait:
                cuda.current_stream().wait_stream(side)
            return incoming @ y, incoming

        return program

    return prepare


traced = {
    "one stream": run_traced(copy_and_compute(1, pinned=True), SLOW),
    "two streams, not pinned": run_traced(copy_and_compute(2, pinned=False), SLOW),
    "two streams, pinned": run_traced(copy_and_compute(2, pinned=True), SLOW),
}
guesses.settle("two streams, pinned", traced["two streams, pinned"].duration_s * 1e3)
guesses.settle("two streams, not pinned", traced["two streams, not pinned"].duration_s * 1e3)

# %% tags=["figure"]
labkit.figures.gantt({name: one.spans for name, one in traced.items()})

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# On the simulated device: 14.7 ms if it is pinned, because the copy hides behind the products. 17.3 ms if it is not,
# as long as with one stream.
#
# </details>
#
# The middle chart is the trap: two streams, `non_blocking=True`, and no gain. The operating system may move memory
# that is not pinned, so the host has to wait until the copy is done, and launches nothing in the meantime.
#
# Leave out the wait, and nothing looks different: the same 14.7 ms, because the copy happens to be done in time. It
# is still wrong. On a slower link, or with fewer products before it, the last product would read memory that is not
# filled yet. The simulator names the two operations that collide:

# %%
for race in run_traced(copy_and_compute(2, pinned=True, wait=False), SLOW, simulate=True).races:
    print(race)
no_wait = run_traced(copy_and_compute(2, pinned=True, wait=False), SLOW)
print(f"{no_wait.duration_s * 1e3:.1f} ms")

# %% [markdown]
# ## Offload the activations
#
# An activation is computed in the forward pass and is not used again before the backward pass. For a layer in the
# middle of the model, that is half a step later. `torch.autograd.graph.saved_tensors_hooks(pack, unpack)` lets you
# move it in between. Autograd calls `pack(x)` for every tensor that it saves, and keeps what you return. Before the
# backward function of that operation runs, autograd calls `unpack` on it and expects the tensor.
#
# A layer $\text{silu}(x W^T)$ on $T$ tokens of width $h$ saves its input and the argument of silu. With $b$ bytes per
# number, a link of $BW$ bytes per second and a device of $F$ FLOP/s, the copies of a layer and its forward pass take
#
# $$t_\text{copy} = \frac{2 \, b \, T h}{BW} \qquad\qquad t_\text{forward} = \frac{2 \, T h^2}{F}$$
#
# seconds.

# %% [markdown]
# **Predict:** from which width on does the forward pass hide the copies, on the device above (float32, 2 GFLOP/s, 0.1
# GB/s)? Does it help to take more tokens?

# %% nbgrader={"grade": false, "grade_id": "05-predict-width", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("width that hides the copies", None)

# %% [markdown]
# The hard part of the exercise is to know when memory may be freed. The moment Python drops a tensor, its bytes can
# go to the next tensor of the stream on which it was allocated, even if the device has not finished with them. The
# copy on the other stream may still be reading them. So before you drop the last reference to `x`, let the stream
# that will reuse its memory wait for an event after that copy. (PyTorch's `x.record_stream(side)` is safe too, but
# it keeps the memory until the *host* sees that the copy is done. The host is far ahead of the device, so too many
# activations stay, and the check fails.)

# %% tags=["figure"]
labkit.figures.who_may_reuse()

# %% [markdown]
# [[exercise 05-offload]]
#
# Write `offload_hooks(cuda, parameters, n_in_flight)`, which returns the two functions `pack` and `unpack`. `cuda` is
# `torch.cuda` or the simulated device; `x.device` is the device that a tensor is on.
#
# - Every activation goes to **pinned** host memory and comes back, once, bit by bit the same. What is still on its
#   way out when the backward pass begins may be used as it is.
# - `parameters` are on the device anyway. Return them from `pack` as they are, also when autograd saves a transposed
#   view of one.
# - Copies run **beside** kernels, for at least three quarters of their time in both directions.
# - The device holds at most `n_in_flight` activations that are on their way, out or in, besides those in use. The
#   check leaves room for four more, so a queue that is one longer is fine.
# - No race: nothing is read before it has arrived, and no memory is freed while something still reads it.
#
# You may rely on one thing: no operation here saves more than one activation.
#
# <details><summary>Hint 1: a nudge</summary>
#
# First make it right in one stream: a new pinned tensor, `copy_`, and back with `to`. Recognize parameters by
# `x.untyped_storage().data_ptr()`, which a view shares. Only then add the second stream, first in `pack`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In `pack` the side stream waits for the current one, copies, and records an event. Put `(x, event)` into a queue.
# When the queue has more than `n_in_flight` entries, take out the oldest pair: the *current* stream waits for its
# event, and then `x` may be dropped. In `unpack` the roles are swapped. The tensor is allocated on the side stream
# and read by kernels of the current one, so it is the *side* stream that has to wait before the memory is used again.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# When `unpack` is called, the kernels that read the tensor returned *last time* are already queued, because no
# operation saves more than one activation. So put `(last, current_stream.record_event())` into a second queue. When
# that holds `n_in_flight` pairs, take out the oldest and let the side stream wait for its event. Then make the new
# tensor with `host.to(device, non_blocking=True)` on the side stream, let the current stream wait for the side
# stream, remember the tensor as `last`, and return it. At the first `unpack` you can clear the queue of `pack`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-offload", "locked": false, "schema_version": 3, "solution": true, "task": false}
def offload_hooks(cuda, parameters: list[Tensor], n_in_flight: int) -> tuple[Callable, Callable]:
    """The functions (pack, unpack) for saved_tensors_hooks: activations wait in pinned memory of the host."""
    ### BEGIN SOLUTION
    stay = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    side = cuda.Stream()
    leaving, used = deque(), deque()  # of (tensor, event): the memory is free again after the event
    last = None

    def pack(x):
        if x.untyped_storage().data_ptr() in stay:
            return x
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
        side.wait_stream(cuda.current_stream())  # x is not computed yet
        with cuda.stream(side):
            host.copy_(x, non_blocking=True)
        leaving.append((x, side.record_event()))
        if len(leaving) > n_in_flight:
            _, copied = leaving.popleft()
            cuda.current_stream().wait_event(copied)
        return x.device, host

    def unpack(packed):
        nonlocal last
        if isinstance(packed, Tensor):
            return packed
        leaving.clear()
        device, host = packed
        compute = cuda.current_stream()
        if last is not None:
            used.append((last, compute.record_event()))  # behind the kernels that read it
        if len(used) == n_in_flight:
            _, read = used.popleft()
            side.wait_event(read)
        with cuda.stream(side):
            last = host.to(device, non_blocking=True)
        compute.wait_stream(side)
        return last

    return pack, unpack
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-offload-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("05-offload", offload_hooks)


# %% [markdown]
# Here are your hooks on a model of twelve layers, next to autograd as it is and to PyTorch's own `save_on_cpu`:


# %%
def training_step(method: str, n_layers: int = 12, width: int = SIZE, n_tokens: int = 4 * SIZE):
    """A program for `run_traced`: forward and backward through the layers."""

    def prepare(cuda, device):
        weights = [
            (1.5 * torch.randn(width, width) / width**0.5).to(device) for _ in range(n_layers)
        ]
        weights = [weight.requires_grad_() for weight in weights]
        x, grad = (torch.randn(n_tokens, width).to(device) for _ in range(2))

        def program():
            if method == "yours":
                hooks = torch.autograd.graph.saved_tensors_hooks(*offload_hooks(cuda, weights, 3))
            elif method == "save_on_cpu":
                hooks = torch.autograd.graph.save_on_cpu(pin_memory=has_gpu())
            else:
                hooks = contextlib.nullcontext()
            with hooks:
                y = x
                for weight in weights:
                    y = F.silu(F.linear(y, weight))
            return torch.autograd.grad(y, weights, grad)

        return program

    return prepare


steps = {
    name: run_traced(training_step(name), SLOW) for name in ("all kept", "save_on_cpu", "yours")
}
print(f"{'saved activations':18}{'device peak':>12}{'host peak':>12}{'time':>10}")
for name, step in steps.items():
    host = "" if step.host_bytes is None else in_bytes(step.host_bytes)
    print(f"{name:18}{in_bytes(step.device_bytes):>12}{host:>12}{step.duration_s * 1e3:>7.1f} ms")

# %% tags=["figure"]
labkit.figures.gantt({name: steps[name].spans for name in ("save_on_cpu", "yours")})

# %% [markdown]
# Look at the gaps between the blue bars. `save_on_cpu` copies in the stream of the kernels and waits for every copy
# (without a GPU it also runs unpinned here). It also sends the weights out and back, because nobody told it which
# tensors are weights. In your trace the copies run beside the kernels. The overlap has a price: the tensors on their
# way take some 0.4 MiB more than with `save_on_cpu`. If one gap is left in the middle, it is because the last
# activations go out and come straight back; it would be better to keep those.
#
# Two activations per layer, 24 of 256 KiB, are 6 MiB on the host. The device keeps the weights and their gradients
# (12 times 64 KiB each), the input, the output's gradient, and a handful of activations that does *not* grow with the
# number of layers. Now some widths around the one that you predicted:

# %%
b, rate, link = 4, SLOW.flops_per_s, SLOW.to_host_bytes_per_s
print(f"b F / BW = {b * rate / link:.0f}")
guesses.settle("width that hides the copies", b * rate / link)
for width in (40, 80, 160, 320):
    kept, moved = (
        run_traced(training_step(name, width=width, n_tokens=64), SLOW, simulate=True)
        for name in ("all kept", "yours")
    )
    print(
        f"width {width:>3}: {moved.duration_s / kept.duration_s:.2f} times as long as with all kept"
    )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# $t_\text{copy} = t_\text{forward}$ at $h = b F / BW$, which is 80 here. The tokens cancel, because a larger batch
# needs more copies *and* more FLOPs.
#
# </details>
#
# At width 40 the step is only 1.4 times as long, because the backward pass has twice the FLOPs and still hides its
# copies. In bfloat16 an RTX 3090 (71 TFLOP/s) on 25 GB/s needs $h = 2 \cdot 71 \cdot 10^{12} / (25 \cdot 10^9)$ =
# 5680, and an H100 (989 TFLOP/s) on 55 GB/s needs 36,000, wider than any model. The faster the device, the harder it
# is to hide the link: on an H100 you offload *some* tensors and recompute what is cheap.
#
# **In practice** `torchtune` offloads activations as you do, with a side stream and by default at most five tensors
# on their way; what is still on the device when the backward pass begins stays there. An operation may save several
# tensors, as $z \cdot \sigma(z)$ does. Then the next call of `unpack` comes *before* the kernels that read the last
# tensor are queued, so `torchtune` records its event in a hook that autograd calls after the operation.
# `save_on_cpu(pin_memory=True)` is the simple version, without overlap. Both are context managers around the forward
# pass or a part of it.

# %% [markdown]
# ## Weights from the host, layer by layer
#
# Now suppose the model does not fit at all. 70 billion parameters in bfloat16 are 140 GB (130 GiB), and the card in
# your basement has 24 GiB. But the layers run one after the other. So keep the weights on the host and bring each
# layer just before its turn. Two layers on the device are enough: the one that computes and the one that arrives.
# Running one layer on *all* micro-batches before the next layer is called **layer-to-layer** execution: the weights
# cross the link once, however many tokens there are.
#
# A parameter of $b$ bytes takes $b / BW$ seconds on the link. With $T$ tokens it takes $2T / F$ seconds of computing,
# because each token costs a multiplication and an addition.

# %% [markdown]
# **Predict:** an RTX 3090 computes 71 TFLOP/s in bfloat16. Assume an old motherboard in the basement that gives it
# four lanes of PCIe 3.0, 3.9 GB/s (our assumption; look yours up with `nvidia-smi -q`). How many tokens must be
# processed together so that the link does not matter?

# %% nbgrader={"grade": false, "grade_id": "05-predict-tokens", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("tokens in the basement", None, unit="tokens")

# %% [markdown]
# [[exercise 05-stream-weights]]
#
# Write `stream_layers(cuda, layer, weights, xs)`, which returns the results of the last layer, one for each
# micro-batch in `xs`. `weights` are pinned host tensors in the order of the layers; `layer(weight, x)` runs one layer
# on the device, where `xs` are. No gradients are needed. Each weight crosses the link once, at most two are on the
# device at any moment, the next one arrives while the current one computes, and nothing races.
#
# Write `tokens_to_hide(bytes_per_param, flops_per_s, link_bytes_per_s)`: the number of tokens at which computing
# takes as long as copying. A float, not rounded.
#
# <details><summary>Hint 1: a nudge</summary>
#
# While the device computes layer i, layer i + 1 must be on its way, on a side stream. Whose memory is it about to
# take?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A copy of layer i + 1 takes the memory of layer i − 1. So it must wait for the kernels of layer i − 1, and for
# nothing later: record an event after each layer's kernels and let the side stream wait for that one. The kernels of
# a layer wait for the event after its copy.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Write an inner function `fetch(i)`: if `i >= 2`, `side.wait_event(used[i - 2])`; then, on the side stream,
# `weights[i].to(device, non_blocking=True)`; it returns the tensor and `side.record_event()`. Call `fetch(0)` before
# the loop. In the loop, take what has arrived, call `fetch(i + 1)`, let the current stream wait for the event of `i`,
# run the layer on every micro-batch, and append `compute.record_event()` to `used`. Make sure that no variable still
# holds the weights of layer i − 1 when `fetch(i + 1)` is called.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-stream-weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stream_layers(cuda, layer: Callable, weights: list[Tensor], xs: list[Tensor]) -> list[Tensor]:
    """The results of all layers on the micro-batches xs; weights come one layer ahead, at most two on the device."""
    ### BEGIN SOLUTION
    compute, side = cuda.current_stream(), cuda.Stream()
    device, used = xs[0].device, []  # used[i]: an event behind the kernels of layer i

    def fetch(i):
        if i >= 2:
            side.wait_event(used[i - 2])  # whose memory the copy may take
        with cuda.stream(side):
            return weights[i].to(device, non_blocking=True), side.record_event()

    coming = fetch(0)
    for i in range(len(weights)):
        weight, copied = coming
        if i + 1 < len(weights):
            coming = fetch(i + 1)
        compute.wait_event(copied)
        xs = [layer(weight, x) for x in xs]
        used.append(compute.record_event())
    return xs
    ### END SOLUTION


def tokens_to_hide(bytes_per_param: float, flops_per_s: float, link_bytes_per_s: float) -> float:
    """The number of tokens at which computing with a layer takes as long as copying its weights. Not rounded."""
    ### BEGIN SOLUTION
    return bytes_per_param * flops_per_s / (2 * link_bytes_per_s)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-stream-weights-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("05-stream-weights", stream_layers, tokens_to_hide)

# %%
RIGS = {
    "RTX 3090, PCIe 3.0 x4": (2, 71e12, 3.9e9),
    "RTX 3090, PCIe 4.0 x16": (2, 71e12, 25e9),
    "H100, PCIe 5.0 x16": (2, 989e12, 55e9),
    "H100, fp8 weights": (1, 989e12, 55e9),
    "GH200, NVLink-C2C": (2, 989e12, 400e9),
}
for name, rig in RIGS.items():
    print(f"{name:24}{tokens_to_hide(*rig):>8,.0f} tokens")
guesses.settle("tokens in the basement", tokens_to_hide(*RIGS["RTX 3090, PCIe 3.0 x4"]))


# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# $bF / (2 \cdot BW)$ = 18,205 tokens.
#
# </details>
#
# The basement and the server need the same 18,000 tokens: the H100 is 14 times faster, and so is its link. For a chat
# with one user, which has *one* token per step, streaming weights is hopeless on either. For a training batch, or for
# ten thousand documents overnight, it costs nothing. In a backward pass the weights come again, the gradients go out,
# and each parameter does 4 FLOPs per token.
#
# Now your function on the slow device, with eight layers and two micro-batches. This device needs 40 tokens.


# %%
def streamed(n_tokens: int, n_layers: int = 8, n_batches: int = 2):
    """A program for `run_traced`: the layers on n_tokens in all, weights from the host."""

    def prepare(cuda, device):
        weights = [(torch.randn(SIZE, SIZE) / SIZE**0.5).pin_memory() for _ in range(n_layers)]
        xs = [torch.randn(n_tokens // n_batches, SIZE).to(device) for _ in range(n_batches)]

        @torch.no_grad()
        def program():
            return stream_layers(cuda, lambda weight, x: F.silu(F.linear(x, weight)), weights, xs)

        return program

    return prepare


enough = tokens_to_hide(4, SLOW.flops_per_s, SLOW.to_device_bytes_per_s)
runs = {
    f"{n:,} tokens": run_traced(streamed(n), SLOW)
    for n in ((10, 40, 160) if not has_gpu() else (512, 2048, 8192))
}
print(f"enough on the slow device: {enough:.0f} tokens")
for name, one in runs.items():
    print(f"{name:>14}: {one.duration_s * 1e3:6.1f} ms, device peak {in_bytes(one.device_bytes)}")

# %% tags=["figure"]
labkit.figures.gantt({name: one.spans for name, one in runs.items()})

# %% [markdown]
# With 10 tokens the row of kernels is mostly empty, and four times as many tokens take hardly longer. At 40 both rows
# are full. Beyond that the link idles, and the time grows with the tokens. All eight layers are 512 KiB; the device
# never held more than two of them, 128 KiB, and the activations.
#
# **In practice** this is `cpu_offload` in `accelerate`, `CPUOffloadPolicy` of PyTorch's `fully_shard`, and
# ZeRO-Infinity in DeepSpeed, which can also use the disk. All of them ask the same question as you: are there enough
# tokens to hide the link?

# %% [markdown]
# ## Three leaks
#
# So far memory had a price. Now it is lost by mistake: a run starts at 9 GiB, needs 12 an hour later, and dies at
# night. On a GPU many people first try `torch.cuda.empty_cache()`, which gives back memory that PyTorch holds in
# reserve. It cannot free a tensor that something still refers to, and a leak is a reference that nobody remembers.
#
# The script below has three common leaks. A loss that you keep is the end of a *graph*, and before `backward` the
# graph refers to everything that the backward pass would need. Gradients that are never cleared stay and, worse, add
# up. And a hook is a function that lives as long as its module, and keeps everything its closure captures.

# %% [markdown]
# The script trains a model of three modules. After every step it records the loss on a validation batch; it also
# returns the mean magnitude of the hidden layer in every step.


# %%
def leaky_train(model, optimizer, batches, validation):
    x_val, y_val = validation
    losses, outputs = [], []

    def keep(layer, args, output):
        if layer.training:
            outputs.append(output)

    model[1].register_forward_hook(keep)
    for x, y in batches:
        model.train(True)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        model.eval()
        losses.append(F.mse_loss(model(x_val), y_val))
    return losses, [output.abs().mean() for output in outputs]


def training_profile(train, n_steps: int = 8):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = [(torch.randn(512, 64), torch.randn(512, 64)) for _ in range(n_steps + 1)]

    def marked(profile):
        for number, batch in enumerate(data[1:], 1):
            if number % 2:
                profile.mark(f"step {number}")
            yield batch

    with track_memory(model, optimizer, data) as profile:
        losses, _ = train(model, optimizer, marked(profile), data[0])
    return profile, [loss.item() if isinstance(loss, Tensor) else loss for loss in losses]


leaking, leaky_losses = training_profile(leaky_train)

# %% tags=["figure"]
labkit.figures.memory_by_category(leaking, "the script as it is, eight steps")

# %% [markdown]
# This is a staircase: every step leaves something behind.
#
# **Predict:** how many MiB does each step leave behind? A hidden activation is 512 × 512 float32, 1 MiB.

# %% nbgrader={"grade": false, "grade_id": "05-predict-leak", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("left behind by each step", None, unit="MiB")

# %% [markdown]
# The profile lists which tensors are alive at the peak and which line made each of them. Lines that appear once for
# every step are the suspects.

# %%
n_bytes, n_tensors = Counter(), Counter()
for tensor in leaking.at_peak:
    if tensor.category == "activations":
        n_bytes[tensor.op, str(tensor.site)] += tensor.nbytes
        n_tensors[tensor.op, str(tensor.site)] += 1
for (op, site), total in n_bytes.most_common(4):
    print(f"{n_tensors[op, site]:>3} tensors, {in_bytes(total)}, by {op:8} in {site}")

# %% [markdown]
# [[exercise 05-find-the-leak]]
#
# Copy the script into the next cell under the name `train` and repair it. It returns two lists of Python numbers, one
# number per step: the validation losses, and the mean magnitudes of the hidden layer *in the training passes*.
# Training and validation each run in their own mode, and gradients belong to one step (the model comes without any).
# When `train` returns, the model has the hooks that it had before.
#
# <details><summary>Hint 1: a nudge</summary>
#
# For every name that outlives a step (a list, a parameter's `.grad`, a closure), ask what it refers to, and what that
# refers to.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Validation needs no graph. Only one number of the hidden layer is wanted, and the hook can compute it. A hook is
# removed with the handle that its registration returned.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `with torch.no_grad():` around validation and `.item()` on its loss; `output.detach().abs().mean().item()` in the hook;
# `handle = model[1].register_forward_hook(record)` and `handle.remove()` at the end; `optimizer.zero_grad()` before
# `backward()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-find-the-leak", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(
    model: nn.Module, optimizer, batches, validation: tuple[Tensor, Tensor]
) -> tuple[list[float], list[float]]:
    """(validation losses, mean magnitudes of the hidden layer in training), a number for each step."""
    ### BEGIN SOLUTION
    losses, sizes = [], []
    x_val, y_val = validation

    def record(module, args, output):
        if module.training:
            sizes.append(output.detach().abs().mean().item())

    handle = model[1].register_forward_hook(record)
    for x, y in batches:
        model.train()
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            losses.append(F.mse_loss(model(x_val), y_val).item())
    handle.remove()
    return losses, sizes
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-find-the-leak-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("05-find-the-leak", train)

# %% tags=["figure"]
labkit.figures.memory_timeline({"as it was": leaking, "repaired": training_profile(train)[0]})

# %%
shorter, _ = training_profile(leaky_train, n_steps=4)
held, held_after_4 = (one.peak_by_category["activations"] for one in (leaking, shorter))
guesses.settle("left behind by each step", (held - held_after_4) / 4 / 2**20)

_, losses = training_profile(train)
print("validation loss, as it was:", *(f"{loss:.4f}" for loss in leaky_losses))
print("validation loss, repaired: ", *(f"{loss:.4f}" for loss in losses))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 3.25 MiB. The validation graph has 2.25 of them: input and output of the GELU are 1 MiB each, and the model's output
# is 128 KiB. Another 128 KiB belong to the loss itself: on the CPU its storage keeps the size of the squared
# differences. So use `.item()`, not `.detach()`. The hook's closure holds the last MiB.
#
# </details>
#
# Now it is a flat comb: every step looks like the one before.
#
# The gradients took memory only once, because each step adds to the same tensors. This mistake shows in the losses,
# and raises no error. The script as it was even gets ahead, because the sum of all gradients so far makes a longer
# step than the learning rate asks for. If you clear gradients *after* `step`, with `set_to_none=True` (the default),
# they take no memory in the next forward pass either.
#
# **In practice** on a GPU: call `torch.cuda.memory._record_memory_history()`, run a few steps, call
# `torch.cuda.memory._dump_snapshot("file.pickle")`, and open the file at pytorch.org/memory_viz. It shows the same
# picture, with a stack trace for every block.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## The largest tensor of all
#
# Look again at the lower line of the first figure. With every layer checkpointed, the peak of 6.7 GiB is not in any
# layer. It is one needle in the first two operations of the backward pass, right after 8192 hidden vectors have become
# *logits*, one number for each of the 50257 words of the vocabulary. In float32 that is 1.5 GiB (1.6 GB), and
# cross-entropy needs three such tensors: the logits or their log-probabilities, and two gradients. It gets worse with
# longer texts and larger vocabularies: 32768 tokens and a vocabulary of 128256 make 15.7 GiB (16.8 GB) of logits,
# three times over.

# %%
print(checkpointed_gpt2.report(n_tensors=3))

# %% [markdown]
# The loss of a token needs only its own logits, so we can take the tokens in chunks, and hold the logits of one chunk
# at a time. Under autograd that alone does not help, because the graph keeps the logits of all chunks. But the
# gradient with respect to the logits $z$ of a token with label $y$ needs nothing that comes later:
#
# $$\ell = \log \sum_v e^{z_v} - z_y, \qquad \frac{\partial \ell}{\partial z_v} = p_v - [v = y],
# \qquad p_v = \frac{e^{z_v}}{\sum_w e^{z_w}}$$
#
# where $[v = y]$ is 1 if $v$ is the label and 0 otherwise. So each chunk can add its part to the gradients with
# respect to $x$ and to the weight $W$ right there, in the *forward* pass, and free its logits. The incoming
# gradient of the backward pass is one scalar that multiplies everything.

# %% [markdown]
# **Work it out:** 8192 tokens of width 1024, a vocabulary of 50257, chunks of 512. How many MiB are the logits of a
# chunk, and how many are the gradients with respect to $x$ and $W$?
#
# [[exercise 05-chunked-loss]]
#
# Write `chunked_loss(x, weight, labels, chunk_size, ignore_index)`. It is `F.cross_entropy(x @ weight.T, labels,
# ignore_index=ignore_index)`, loss and gradients, with the logits of only `chunk_size` tokens at a time. `x` is (N,
# h), `weight` (V, h), `labels` (N); all floats are float32. The loss is the mean over the tokens whose label is not
# `ignore_index`, which can be any number; at least one token counts. The last chunk may be shorter. A second backward
# pass through the same graph (`retain_graph=True`) gives the same gradients. Besides `x` and $W$, which are there
# before, hold no more than
#
# $$dx + 2\,dW + \max(4 \cdot \text{chunk} \cdot V,\; dx) \;\text{bytes} \;+\; 32\;\text{KiB},$$
#
# where $dx$ and $dW$ are the bytes of these gradients, and the last term has room for a chunk's maxima, sums and
# labels. So in the forward pass there is room for *one* buffer of chunk × V float32 numbers, and in the backward
# pass for both gradients twice.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write an autograd Function whose `forward` computes the loss *and* the gradients, and whose `backward` multiplies.
# In `forward`, gradients are off: nothing is kept that you do not keep. First compare it with `F.cross_entropy`, then
# look at the memory.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In each chunk the logits turn, in place, into exponentials (subtract the row's maximum first), probabilities, and
# gradients: `-= 1` at the label, rows of ignored tokens times 0, all divided by the number of tokens that count. Then
# `torch.mm(grad, weight, out=dx[part])` and `dw.addmm_(grad.T, x[part])`. Add up sums, divide once.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In the loop: `logits = rows @ weight.T`; `logits -= logits.amax(1, keepdim=True)`; `picked = logits.gather(1,
# index)`; `sums = logits.exp_().sum(1, keepdim=True)`; the losses are `sums.log() - picked`; `logits /= sums`;
# `logits.scatter_add_(1, index, -torch.ones_like(picked))`. For an ignored label use any valid index, say 0. `del
# logits` at the end of a turn, or the next chunk is allocated while the last one is still there.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "05-chunked-loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chunked_loss(
    x: Tensor, weight: Tensor, labels: Tensor, chunk_size: int, ignore_index: int = -100
) -> Tensor:
    """The mean cross-entropy of x @ weight.T against labels, chunk_size tokens at a time; differentiable."""
    ### BEGIN SOLUTION
    return ChunkedLoss.apply(x, weight, labels, chunk_size, ignore_index)


class ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, labels, chunk_size, ignore_index):
        counts = labels != ignore_index
        n_counted = counts.sum()
        dx, dw = torch.empty_like(x), torch.zeros_like(weight)
        loss = torch.zeros((), device=x.device)
        for start in range(0, len(x), chunk_size):
            part = slice(start, start + chunk_size)
            rows = x[part]
            index = labels[part].where(counts[part], 0).unsqueeze(1)
            logits = rows @ weight.T
            logits -= logits.amax(1, keepdim=True)
            picked = logits.gather(1, index)
            sums = logits.exp_().sum(1, keepdim=True)
            loss += ((sums.log() - picked).squeeze(1) * counts[part]).sum()
            # From here on the same memory holds probabilities, then the gradient with respect to the logits.
            logits /= sums
            logits.scatter_add_(1, index, -torch.ones_like(picked))
            logits *= counts[part].unsqueeze(1) / n_counted
            torch.mm(logits, weight, out=dx[part])
            dw.addmm_(logits.T, rows)
            del logits
        ctx.save_for_backward(dx, dw)
        return loss / n_counted

    @staticmethod
    def backward(ctx, grad_loss):
        dx, dw = ctx.saved_tensors
        return dx * grad_loss, dw * grad_loss, None, None, None

    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-chunked-loss-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("05-chunked-loss", chunked_loss)


# %% tags=["varies"]
def head_cost(
    loss_of, n_tokens: int = 1024, width: int = 64, n_vocab: int = 4096
) -> tuple[int, int]:
    """(peak bytes beyond the inputs, FLOPs) of the loss and the gradients of a small head."""
    x = torch.randn(n_tokens, width, requires_grad=True)
    weight = (torch.randn(n_vocab, width) * width**-0.5).requires_grad_()
    labels = torch.randint(n_vocab, (n_tokens,))
    measured: dict[str, float] = {}
    with track_ops() as operations, measure_memory(measured):
        loss_of(x, weight, labels).backward()
    return measured["peak_bytes"], operations.flops


at_once = head_cost(lambda x, weight, labels: F.cross_entropy(x @ weight.T, labels))
in_chunks = {
    size: head_cost(partial(chunked_loss, chunk_size=size)) for size in (16, 64, 256, 1024)
}
print(f"all at once      {in_bytes(at_once[0])}")
for size, (peak, _) in in_chunks.items():
    print(f"chunks of {size:>5}  {in_bytes(peak)}")

# %% [markdown]
# <details><summary>Check your sum</summary>
#
# A chunk of 512 takes 98 MiB (103 MB), $dx$ 32 MiB and $dW$ 196 MiB, where 1570 MiB were held three times over.
#
# </details>
#
# Even a single chunk of all 1024 tokens takes a third of the memory, because the gradient overwrites the logits.
# Below some size the chunks no longer matter. What is left is each gradient twice, as the forward pass made it and
# multiplied by the incoming scalar. (Liger Kernel multiplies in place instead. That saves the second copy, and makes
# a second backward pass wrong.) No product is computed twice, so all this costs is the launches of smaller kernels.
#
# With the layers checkpointed and the loss in chunks, only the body of the model still grows with the number of
# tokens. Here it is measured on GPT-2 medium without its head, with a checkpoint around every layer:

# %%
from transformers import GPT2Model


def body_peak(n_texts: int) -> int:
    """The bytes at the peak of a forward and backward pass through the layers, without the output head."""

    def build():
        model = GPT2Model(config).train()
        with warnings.catch_warnings(action="ignore"):
            model.gradient_checkpointing_enable()
        return model

    def step(model, optimizer, batch):
        model(**batch).last_hidden_state.sum().backward()

    texts = torch.zeros(n_texts, 1024, dtype=torch.int64)
    return measure_step(build, {"input_ids": texts}, step=step, n_steps=1).peak_bytes


per_token = (body_peak(32) - body_peak(16)) / (16 * 1024)
print(
    f"{per_token / 1024:.0f} KiB per token, {24 * 4 * 1024 / 1024:.0f} of them the layers' inputs"
)

# %% [markdown]
# The inputs of the layers are $24 \cdot 4 \cdot 1024$ bytes, 96 KiB, per token; the rest is the inside of the one
# layer that is being recomputed. A *context* of a hundred thousand tokens takes 25 GB (23 GiB) this way, in addition
# to the weights. Beyond that, the sequence itself is split over several cards (lab 19).

# %% [markdown]
# **In practice** PyTorch has `F.linear_cross_entropy` from version 2.13 on, and Liger Kernel and Cut Cross-Entropy
# have fused kernels with the same idea.

# %% tags=["varies"]
if hasattr(F, "linear_cross_entropy"):
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=64, chunking_method=None)
    peak, _ = head_cost(partial(F.linear_cross_entropy, options=options))
    yours, _ = in_chunks[64]
    print(f"F.linear_cross_entropy, chunks of 64: {in_bytes(peak)}, yours: {in_bytes(yours)}")

# %% [markdown]
# ## What you measured
#
# The table shows memory and price of each technique, with your functions: a chain of 48 feed-forward blocks for the
# first five lines, the small head for the last two. A block keeps 3.5 MiB where its output takes 0.25, so $c = 14$.


# %% tags=["varies"]
N_BLOCKS = 48


def chain_row(run) -> tuple[int, int] | None:
    """(peak bytes beyond parameters and input, FLOPs) of a pass through the feed-forward blocks."""
    torch.manual_seed(0)
    layers = [feed_forward(32) for _ in range(N_BLOCKS)]
    x = torch.randn(512, 32, requires_grad=True)
    layers.append(lambda x: x.square().mean())
    measured: dict[str, float] = {}
    try:
        with track_ops() as operations, measure_memory(measured):
            run(layers, x)
    except NeverEnds as error:
        print("Left out here:", error)
        return None
    return measured["peak_bytes"], operations.flops


def chain(layers, x: Tensor, call=lambda layer, x: layer(x)) -> None:
    for layer in calls_limited(layers):
        x = call(layer, x)
    x.backward()


def in_best_segments(layers, x: Tensor) -> None:
    n_segments = best_segments(N_BLOCKS, 14)
    run_in_segments(calls_limited(layers), x, n_segments, checkpoint).backward()


def selective(layer, x: Tensor) -> Tensor:
    contexts = partial(create_selective_checkpoint_contexts, policy)
    return torch_checkpoint(layer, x, use_reentrant=False, context_fn=contexts)


rows = {
    "regular": chain,
    "checkpoint, every layer": partial(chain, call=checkpoint),
    "checkpoint, best segments": in_best_segments,
    "selective checkpoint": partial(chain, call=selective),
    "only the input kept": lambda layers, x: low_memory_backward(layers, x.detach()),
}
found_rows = labkit.each_written({name: partial(chain_row, run) for name, run in rows.items()})
measured_rows = {name: row for name, row in found_rows.items() if row}
heads = {"loss at once": lambda: at_once, "loss in chunks of 64": lambda: in_chunks[64]}
_, regular_flops = measured_rows["regular"]
print(f"{'technique':28}{'peak memory':>14}{'FLOPs':>10}")
for name, (peak, flops) in measured_rows.items():
    print(f"{name:28}{in_bytes(peak):>14}{flops / regular_flops:>9.2f}x")
for name, (peak, flops) in labkit.each_written(heads).items():
    print(f"{name:28}{in_bytes(peak):>14}{flops / at_once[1]:>9.2f}x")

# %% [markdown]
# FLOPs are those of matrix products. Offloading and streamed weights pay with traffic, not with FLOPs; their figures
# are in their sections. Ask first what your memory grows with:
#
# | your memory grows with | use | and pay |
# |---|---|---|
# | the tokens times the vocabulary | the loss in chunks | nothing but smaller kernels |
# | the depth: everything inside the layers | a checkpoint around every layer, or around the best $k$ segments | a third more FLOPs |
# | the same, with room for the products' results | a selective checkpoint | no FLOPs; some 40 % of the memory stays |
# | the depth: what a checkpoint still keeps | offload it | traffic, hidden from a width of $bF/BW$ on |
# | the parameters | stream the weights | traffic, hidden from $bF/(2BW)$ tokens on |
# | the number of steps | find the leak | nothing |

# %% [markdown]
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("05", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "05",
    "checkpoint in segments",
    speed=lambda: (
        f"{measured_rows['checkpoint, best segments'][1] / regular_flops:.2f} x the FLOPs"
    ),
    memory=lambda: (
        f"{measured_rows['checkpoint, best segments'][0] / measured_rows['regular'][0]:.0%} of the peak"
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) Why are activations kept at all? For a linear layer, ReLU, dropout, softmax and a residual
# addition, say what the backward pass needs from the forward pass. Which of them need far fewer bytes than their
# input takes?

# %% [markdown] nbgrader={"grade": true, "grade_id": "05-open-why-kept", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The chain rule multiplies the incoming gradient by the derivative at the point where the forward pass was, and for
# anything that is not linear in its inputs this point is needed. Linear layer y = x W^T: dW = dy^T x needs the input x,
# dx = dy W needs only the weight (so a frozen weight needs no x). ReLU: the sign of the input, one bit an element, or
# its output. Dropout: the mask, one bit (in PyTorch one byte) an element, or the seed. Softmax: its output. Residual
# addition: nothing. Much less than the input: addition (0), ReLU and dropout (1 bit instead of 16 or 32).
#
# Marks: 1/2 for "the derivative depends on the point" or a formula that shows it. 1 for four of the five right (1/2 for
# three). 1/2 for addition and one of ReLU and dropout with a number. Activations are not kept "for speed" alone, but "to
# avoid computing them again" is right as an addition.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) You train a 7-billion-parameter model with 32 layers of width 4096 ($c = 17$) and a vocabulary of
# 128256 on a card of 80 GB. Everything is in bfloat16, the logits too. At 4096 tokens a step it just fits, without
# any technique of this lab; weights, gradients and optimizer states take 56 GB of it. You want 32768 tokens in one
# sequence. Choose from: a checkpoint around every layer, a selective checkpoint, activations to the host, the loss in
# chunks. Which do you take first, how many GB does each leave, and what does each cost?

# %% [markdown] nbgrader={"grade": true, "grade_id": "05-open-long-context", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Left for activations: 24 GB at 4096 tokens. Layers with c = 17 take 32 x 17 x 4096 x 4096 x 2 bytes = 18 GB, and logits
# 4096 x 128256 x 2 = 1.05 GB each (about three of them at the peak, 3 GB). At 32768 tokens without features: eight times
# that, 146 GB and 25 GB, logits 8.4 GB each.
# First the loss in chunks: logits down to some 0.1 GB plus dW (128256 x 4096 x 2 = 1.05 GB), no FLOPs. It is needed in
# any case, since 8.4 GB x 3 alone do not fit into 24. Then a checkpoint around every layer: 32 x 32768 x 4096 x 2 bytes
# = 8.6 GB for the inputs, plus the inside of one layer (some 17 to 34 times 0.27 GB, 5 to 9 GB): 14 to 18 GB, which
# fits; price up to a third more FLOPs. A selective checkpoint keeps the results of all products, 9 to 10 outputs for each
# layer (queries, keys, values, attention and its projection, feed-forward), some 80 GB, and does not fit. To the host: the 8.6 GB of inputs could go there
# too, at 8.6 GB / 25 GB/s = 0.35 s each way, hidden behind a step that takes seconds.
#
# Marks: 1 for the logits with a number (8.4 GB, or 16.8 in float32) and chunks as the first step. 1 for the checkpoint's
# inputs, 8.6 GB (a factor of 2 is fine), and one layer's inside. 1/2 for the prices (a third more FLOPs; none; traffic).
# 1/2 for seeing that the selective checkpoint is too much, or for offloading with a time.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Tianqi Chen and others, *Training Deep Nets with Sublinear Memory Cost* (2016). Segments, and the root of $n$.
# - Vijay Korthikanti and others, *Reducing Activation Recomputation in Large Transformer Models* (2022). What is in a
#   transformer's layer byte by byte, and which part is worth recomputing.
# - The PyTorch blog's *Current and New Activation Checkpointing Techniques in PyTorch* (2025), from the checkpoint that
#   you wrote to the compiler's budget.
# - *Understanding CUDA Memory Usage* in PyTorch's documentation: the snapshot, and how to read it.
# - *CUDA semantics*, there too: streams, events and pinned memory. `torch.cuda._sanitizer` looks for missing waits on a
#   real GPU.
#
# ## Sources
#
# The texts above, and PyTorch's documentation of `torch.utils.checkpoint`,
# `torch.autograd.graph.saved_tensors_hooks` and `F.linear_cross_entropy`. Offloading: `OffloadActivations` of
# `torchtune`. Weights from the host: Bharadwaj Pudipeddi and others, *Training Large Neural Networks with Constant
# Memory using a New Execution Algorithm* (2020); Samyam Rajbhandari and others, *ZeRO-Infinity* (2021). The optimal
# plan for a given memory: Andreas Griewank and Andrea Walther, *Algorithm 799: revolve* (ACM Transactions on
# Mathematical Software 26, 2000). Reversible networks: Aidan Gomez and others, *The Reversible Residual Network*
# (2017). Gradients of the loss in its forward pass: Pin-Lun Hsu and others, *Liger Kernel: Efficient Triton Kernels for
# LLM Training* (2024); Erik Wijmans and others, *Cut Your Losses in Large-Vocabulary Language Models* (2024). The
# comparison of full, low-memory and checkpointed backpropagation, and the card in the basement: Sadrtdinov's seminar and
# a deck called *Efficiency*.
