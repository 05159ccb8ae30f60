# %% [markdown]
# # Lab 06: Optimizers
#
# Keep the weights of a model in bfloat16 and fine-tune them with AdamW at a learning rate of 1e-5. In the first step
# **84 % of the weights do not change at all**, and no error is raised. Adam also keeps two float32 numbers per weight:
# for the 2.85 billion parameters of T5-3B that is 22.8 GB. Adafactor does the same job with 13 MB. **What are the
# other 22.8 GB for?**
#
# In this lab you write AdamW, then AdamW with every number in bfloat16, Adam with states of one byte, and Adafactor
# with almost no state. Then you remove the gradients too: the optimizer runs inside the backward pass. An optional
# exercise is Muon, which treats matrices as matrices. At the end you know what an optimizer has to remember, and how
# precisely.
#
# [[time]]
#
# You should know the float formats of lab 02, and what a tie, a bfloat16 step and stochastic rounding are.

# %% nbgrader={"grade": false, "grade_id": "06-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress, track_memory
from labkit.material import lab06

guesses = Predictions("06")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# First, here are the 84 %, measured with PyTorch's own AdamW. The weights have a standard deviation of 0.02, as in
# a freshly initialized GPT. The last three rows are a norm's weights, which are 1.

# %%
for name, scale in {"matrix, σ = 0.02": None, "norm, all 1": 1.0}.items():
    gen = torch.Generator().manual_seed(0)
    start = 0.02 * torch.randn(1_000_000, generator=gen) if scale is None else torch.ones(1_000_000)
    for lr in (1e-5, 1e-4, 1e-3):
        weight = nn.Parameter(start.bfloat16())
        weight.grad = torch.randn(1_000_000, generator=gen).bfloat16()
        torch.optim.AdamW([weight], lr=lr, weight_decay=0).step()
        stalled = (weight == start.bfloat16()).float().mean()
        print(f"{name:18} lr = {lr:.0e}: {stalled:6.1%} of the weights did not change")

# %% [markdown]
# ## A step of about the learning rate
#
# A gradient says in which direction to go, but not how far: with the loss multiplied by 1000, it is 1000 times as
# large. **Adam** divides that out. For each weight it keeps two running means over the gradients $g$ of all steps, the
# **moments**: $m$ of the gradient, and $v$ of its square.
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad\quad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2$$
#
# Both start at zero. In a mean of $t$ steps the coefficients of the gradients add up to $1 - \beta^t$ instead of 1, so
# both moments are too small at first. Dividing by this sum corrects them. The weight then moves by
#
# $$\text{lr} \cdot \frac{\hat m}{\sqrt{\hat v} + \varepsilon} \qquad\text{with}\quad \hat m = \frac{m}{1 - \beta_1^t},
# \quad \hat v = \frac{v}{1 - \beta_2^t}$$
#
# $\sqrt{\hat v}$ is the usual size of the gradient. So the fraction lies around 1 where the gradients agree, and
# near 0 where their signs change from step to step. **A step of Adam has about the size lr, whatever the size of the
# gradient.** Three things in this course follow from this sentence: the 84 % of the opening, what goes wrong when $v$
# is stored badly, and the purpose of $\varepsilon$, which keeps a weight whose gradient is almost 0 from being moved
# by a full step in a random direction.

# %% [markdown]
# **Weight decay** pulls every weight toward 0. L2 regularization adds $\lambda w$ to the gradient. In Adam that does
# not work as intended: the division by $\sqrt{\hat v}$ shrinks the pull exactly where the gradients are large.
# **AdamW** decouples the decay from the moments. It multiplies the weight by $1 - \text{lr} \cdot \lambda$, then makes
# Adam's step.
#
# Not everything should decay. A norm's weight belongs near 1, and biases are too few to overfit. So the parameters go
# into two **groups**, each with its own settings: what has two axes or more decays, and vectors and single numbers do
# not.

# %% [markdown]
# **Predict:** in the first step, the gradient of a weight is 1e-8, which is the usual $\varepsilon$. How large is its
# step, in learning rates?

# %% nbgrader={"grade": false, "grade_id": "06-predict-at-eps", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("step at a gradient of 1e-8", None, unit="lr")

# %% [markdown]
# [[exercise 06-adamw]]
#
# Write two things.
#
# - `decay_groups(model, weight_decay)` returns a list of two groups, `{"params": [...], "weight_decay": ...}`. The
#   parameters with two axes or more have this decay, all others have 0. Each parameter is in the list once, even if the
#   model has it under two names, as with an embedding that is also the head.
# - `AdamW.step()` takes one step. `torch.optim.Optimizer` takes parameters or a list of such groups, and gives you
#   `self.param_groups`, a list of dicts with `"params"` and the settings of the group (`"lr"`, `"betas"`, `"eps"`,
#   `"weight_decay"`). It also gives you `self.state`, which has a dict for every parameter, empty at first.
#   `state_dict()` saves these two and nothing else, so keep everything in `self.state[p]`: the check saves an optimizer
#   and goes on with a new one. A parameter whose `p.grad` is None makes no step, and its count of steps stays as it is.
#
# Change the weights in place, one parameter after the other: temporary tensors for all of them at once would take as
# much memory as the states. The check compares with `torch.optim.AdamW` after every step, and counts the bytes that
# stay alive.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `model.parameters()` gives every parameter once, and `p.dim()` its number of axes. In `step`, go over
# `self.param_groups`, then over `group["params"]`. What does an empty dict `self.state[p]` tell you?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In the first step of a parameter, fill its dict: `step` is 0, `exp_avg` and `exp_avg_sq` are zeros of its shape. In
# every step: count, decay the weight, update both moments, correct them, move the weight. $\varepsilon$ is added
# last, to the root of the corrected second moment.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `p.mul_(1 - lr * weight_decay)`, `state["exp_avg"].lerp_(p.grad, 1 - beta1)`,
# `state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)`. Then `p.sub_(lr * mean / (root + eps))`
# with `mean = exp_avg / (1 - beta1**step)` and `root = (exp_avg_sq / (1 - beta2**step)).sqrt()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "06-adamw", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Two groups: parameters with two axes or more, which decay, and the others, which do not."""
    ### BEGIN SOLUTION
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    ### END SOLUTION


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter that has a gradient, in place."""
        ### BEGIN SOLUTION
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state["exp_avg"].lerp_(p.grad, 1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                mean = state["exp_avg"] / (1 - beta1 ** state["step"])
                root = (state["exp_avg_sq"] / (1 - beta2 ** state["step"])).sqrt()
                p.sub_(group["lr"] * mean / (root + group["eps"]))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-adamw-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("06-adamw", decay_groups, AdamW)


# %%
def step_size(grad: float) -> float:
    """How far the first step moves a weight of 0, in units of the learning rate."""
    weight = nn.Parameter(torch.zeros(1))
    weight.grad = torch.tensor([grad])
    AdamW([weight], lr=1e-3, weight_decay=0).step()
    return weight.abs().item() / 1e-3


for grad in (1000.0, 1.0, 1e-3, 1e-7, 1e-8, 1e-9):
    print(f"gradient {grad:<8g} first step {step_size(grad):.3f} lr")
guesses.settle("step at a gradient of 1e-8", step_size(1e-8))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Half a learning rate. In the first step $\hat m = g$ and $\hat v = g^2$, so the step is $\text{lr} \cdot g / (|g| +
# \varepsilon)$. That is 1 for all gradients far above $\varepsilon$, and ½ at $g = \varepsilon$.
#
# </details>
#
# A gradient of 1000 makes the same step as one of 0.001. That is why Adam needs no learning rate per layer, and also why
# a loss scale, or a sum in place of a mean, does not show in the loss curve. With $\varepsilon$ inside the root,
# $\sqrt{\hat v + \varepsilon}$, the same 1e-8 would already act on gradients of 1e-4.
#
# Now your AdamW beside PyTorch's on a small language model of 21 thousand parameters. Its data are a Markov chain of 64
# tokens: each token is drawn from probabilities that depend on the token before it alone, and the model learns these.
# "State" is what stays alive after a step, and an operation is one call into PyTorch's C++ code: on a GPU, about one
# kernel launch.

# %%
costs = lab06.compare(
    {
        "yours": lambda params: AdamW(params, lr=3e-3),
        "torch.optim.AdamW, a loop": lambda params: torch.optim.AdamW(
            params, lr=3e-3, foreach=False
        ),
        "torch.optim.AdamW, foreach=True": lambda params: torch.optim.AdamW(
            params, lr=3e-3, foreach=True
        ),
        "torch.optim.AdamW, fused=True": lambda params: torch.optim.AdamW(
            params, lr=3e-3, fused=True
        ),
    }
)

# %% [markdown]
# The losses and the bytes agree. The operations do not. The loop calls every operation for each tensor. With
# `foreach=True` PyTorch hands a list of all tensors to each operation, which on a GPU becomes a few kernels. It is
# still more than one, because each operation (multiply, add, root, divide) reads and writes all of them again. With
# `fused=True` a single kernel does the whole update and reads each number once. On a GPU `foreach` is the default.
#
# **In practice** you write `TrainingArguments(optim="adamw_torch_fused", weight_decay=0.1)`. The fused AdamW is the
# default of recent versions, and `Trainer` makes the two groups for you.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Weights that no longer move
#
# Now the 84 %. Take a weight of 0.02 in bfloat16. Its neighbours are $2^{-13}$ = 1.2e-4 apart, and Adam's step at a
# learning rate of 1e-5 is a twelfth of that. Rounding to nearest puts the weight back to where it was, in this step and
# in every later one. The upper half of the figure shows it to scale. The lower half shows which share of the weights a
# step of about lr leaves where they are, if the weights are drawn as a GPT's.

# %% tags=["figure"]
labkit.figures.step_player()

# %% [markdown]
# The usual cure is a float32 copy of all weights, the master copy of lab 03, which takes 4 bytes for each. **Stochastic
# rounding** (lab 02) needs no copy. A weight that should move by a twelfth of a gap moves by a whole gap in one step of
# twelve on average, by chance. The mean over many steps is right.
#
# The moments can be bfloat16 as well, and here is a second trap. With $\beta_2$ = 0.999, $v$ falls by at most 0.1 % in a
# step, even if the gradient is 0. Half a bfloat16 step is 0.2 % to 0.4 %. So a $v$ that is rounded to nearest **can
# never fall**, whatever the gradients do.

# %% [markdown]
# **Predict:** the gradients of a weight are 1 for 1000 steps, and 0.1 for the next 1000. $v$ is stored in bfloat16 and
# rounded to nearest. It should fall from 0.63 to about 0.24. Where does it end?

# %% nbgrader={"grade": false, "grade_id": "06-predict-stuck", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("v in bfloat16 at the end", None)

# %%
stuck, exact_square = torch.zeros(1, dtype=torch.bfloat16), 0.0
for grad in [1.0] * 1000 + [0.1] * 1000:
    stuck.mul_(0.999).add_(0.001 * grad**2)
    exact_square = 0.999 * exact_square + 0.001 * grad**2
print(f"exact {exact_square:.3f}, in bfloat16 rounded to nearest {stuck.item():.3f}")
guesses.settle("v in bfloat16 at the end", stuck)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# At 0.5. It stops rising there, because from 0.5 on neighbours are 0.0039 apart, and the 0.001 that is added is less
# than half of that. And it does not fall, because 0.1 % of 0.5 is 0.0005, less than half of the gap of 0.002 below 0.5.
# A step divides by $\sqrt v$, so after these 2000 steps it has 0.7 of its right size. If the small gradients go on, the
# exact $v$ falls to 0.01 while the stored one stays, and the step has only 0.14 of its right size.
#
# </details>

# %% [markdown]
# [[exercise 06-bf16-states]]
#
# Write `BF16AdamW.step()`: AdamW as before, for parameters and gradients in bfloat16. `self.state[p]` holds `exp_avg`
# and `exp_avg_sq`, both bfloat16 and of the parameter's shape, and a count of steps. Nothing else may stay alive after
# the step. Compute in float32, and round the new weight and the new moments by chance. `lab06.stochastic_round(x,
# generator)` rounds a float32 tensor to bfloat16; use it, or the one that you wrote in lab 02. All draws come from
# `self.generator`. A parameter whose `p.grad` is None makes no step.
#
# The check trains 1024 copies of a few weights for 300 steps. The means of weights and moments have to end where exact
# arithmetic ends, and the same seed has to give the same weights.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Start from your AdamW. Every operation on a bfloat16 tensor rounds its result to nearest, in-place ones too. How many
# roundings per number and step are needed?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# One rounding for each of the three numbers, at the very end. Convert weight, gradient and moments to float32, compute
# everything there, the decay too, and round the three results by chance. The update uses the moments before they are
# rounded.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `weight, grad, mean, square = (t.float() for t in (p, p.grad, state["exp_avg"], state["exp_avg_sq"]))`. After the
# update: `for stored, new in ((p, weight), (state["exp_avg"], mean), (state["exp_avg_sq"], square)):` and in the loop
# `stored.copy_(lab06.stochastic_round(new, self.generator))`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "06-bf16-states", "locked": false, "schema_version": 3, "solution": true, "task": false}
class BF16AdamW(torch.optim.Optimizer):
    def __init__(self, params, generator, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )
        self.generator = generator

    @torch.no_grad()
    def step(self) -> None:
        """One step of bfloat16 parameters, in place; every stored number is rounded by chance."""
        ### BEGIN SOLUTION
        for group in self.param_groups:
            (beta1, beta2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                grad = p.grad.float()
                mean = beta1 * state["exp_avg"].float() + (1 - beta1) * grad
                square = beta2 * state["exp_avg_sq"].float() + (1 - beta2) * grad**2
                root = (square / (1 - beta2 ** state["step"])).sqrt()
                weight = p.float() * (1 - lr * group["weight_decay"])
                weight -= lr * mean / (1 - beta1 ** state["step"]) / (root + group["eps"])
                p.copy_(lab06.stochastic_round(weight, self.generator))
                state["exp_avg"].copy_(lab06.stochastic_round(mean, self.generator))
                state["exp_avg_sq"].copy_(lab06.stochastic_round(square, self.generator))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-bf16-states-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("06-bf16-states", BF16AdamW)

# %% [markdown]
# Now a training whose learning rate is too small for bfloat16, with your optimizer and with PyTorch's on the same
# weights. The third row is the float32 training that both should follow.

# %%
bf16_adamw = partial(BF16AdamW, generator=torch.Generator().manual_seed(0))
slow = {"lr": 2e-4, "weight_decay": 0.0}
bf16_costs = lab06.compare(
    {
        "yours, bf16, by chance": lambda params: bf16_adamw(params, **slow),
        "torch.optim.AdamW, bf16": lambda params: torch.optim.AdamW(params, foreach=False, **slow),
    },
    n_steps=400,
    dtype=torch.bfloat16,
)
fp32_costs = lab06.compare(
    {"torch.optim.AdamW, fp32": lambda params: torch.optim.AdamW(params, fused=True, **slow)},
    n_steps=400,
)

# %% tags=["figure"]
labkit.figures.training_losses(
    {name: cost.losses for name, cost in {**bf16_costs, **fp32_costs}.items()}
)

# %% [markdown]
# Your weights, rounded by chance, follow the float32 training. PyTorch's AdamW rounds to nearest and falls behind,
# because most updates are lost. Both keep 4 bytes per parameter. Yours makes many more operations, most of them for the
# draws; a real implementation does all of a step in one kernel.
#
# **In practice** `TrainingArguments` has no optimizer that rounds by chance. `optim="adamw_anyprecision"` keeps moments
# in bfloat16 too, and carries what rounding loses in a third buffer of 2 bytes (`optim_args="use_kahan_summation=True,
# momentum_dtype=bfloat16, variance_dtype=bfloat16"`; it needs the package `torchdistx`).

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## One byte per moment
#
# Can a moment take one byte? A byte has 256 patterns, so we choose 256 values, the **map**, and store for each number
# the index of the nearest one, its **code**. The numbers are divided by a scale first, so that the map only has to
# reach from -1 to 1, or from 0 to 1 for $v$, which is never negative. The scale is the largest magnitude. One scale for
# a whole tensor would let a single large number take the precision of all others. So the tensor is cut into **blocks**
# of 256 numbers, and each has a scale of its own: $1 + 4/256 = 1.016$ bytes per moment, and 2.03 for both.
#
# The map matters more than it seems. Within a block, gradients of very different sizes lie side by side, and $v$ holds
# their *squares*. The values of a linear map are evenly spaced, 1/255 apart for $v$. The **dynamic map** has half of
# its values from 0.1 to 1, a quarter from 0.01 to 0.1, and so on down through seven decades.

# %% tags=["figure"]
labkit.figures.code_maps(
    {"linear, for v": lab06.linear_map(False), "dynamic, for v": lab06.dynamic_map(False)}
)

# %% [markdown]
# **Predict:** a weight's gradients are all 3 % of the largest in its block. What does the linear map make of its $v$?

# %% nbgrader={"grade": false, "grade_id": "06-predict-linear", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("v in the linear map", None, among=("zero", "right to 10 %", "right to 1 %"))

# %% [markdown]
# [[exercise 06-adam8bit]]
#
# Write three things.
#
# - `quantize(x, code_map, block_size)` flattens `x`, cuts it into blocks and returns `lab06.Quantized(codes, scales)`:
#   one uint8 per number and one float32 per block. `code_map` is a float32 tensor of 256 values in increasing order,
#   one of which is 0. The last block may be shorter. A block may be all zero: its codes are those of the 0. Work on all
#   blocks at once: a large parameter has tens of thousands, too many for a loop in Python.
# - `dequantize(quantized, code_map, shape, block_size)` returns float32 numbers of this shape.
# - `Adam8bit.step()` makes a step of Adam, without weight decay. For a parameter with 4096 elements or more it keeps
#   both moments quantized, with the maps `lab06.dynamic_map(signed=True)` and `lab06.dynamic_map(signed=False)` (on a
#   GPU moved to `p.device`) and blocks of 256. Smaller ones keep float32 moments. Each step uses the new moments before
#   they are quantized. A parameter whose `p.grad` is None makes no step, as in your AdamW.
#
# Keep the moments in `self.state[p]`, as `Quantized` objects. (A plain uint8 tensor there is a trap:
# `load_state_dict` casts every tensor of the state to the dtype of the parameter, so the codes come back as float32.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# `F.pad` fills the flat tensor up to whole blocks, and `view(-1, block_size)` makes each block a row. How do you find
# the nearest of 256 sorted values without comparing with all of them?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The nearest value changes half-way between two neighbours of the map. Take these middles as boundaries, and
# `torch.bucketize(shares, middles)` gives the index, where a share is a number divided by the scale of its block. For a
# scale of 0 choose a share of 0 with `torch.where`; do not clamp the scales, because second moments of 1e-20 are
# ordinary.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `middles = (code_map[1:] + code_map[:-1]) / 2`, and `shares = torch.where(scales > 0, blocks / scales, 0.0)`. Back:
# `code_map[codes.int()] * scales.repeat_interleave(block_size)[:n]`. In `step`: dequantize both moments, update them,
# move the weight with them, quantize them.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "06-adam8bit", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantize(x: Tensor, code_map: Tensor, block_size: int = 256) -> lab06.Quantized:
    """One code per number and one scale per block of the flattened x; the last block may be shorter."""
    ### BEGIN SOLUTION
    flat = x.flatten()
    blocks = F.pad(flat, (0, -len(flat) % block_size)).view(-1, block_size)
    scales = blocks.abs().amax(1, keepdim=True)
    shares = torch.where(scales > 0, blocks / scales, 0.0)
    middles = (code_map[1:] + code_map[:-1]) / 2
    codes = torch.bucketize(shares, middles).to(torch.uint8)
    return lab06.Quantized(codes.flatten()[: len(flat)].clone(), scales.flatten())
    ### END SOLUTION


def dequantize(
    quantized: lab06.Quantized, code_map: Tensor, shape: tuple[int, ...], block_size: int = 256
) -> Tensor:
    """The float32 numbers of this shape: code_map[code] times the scale of the block."""
    ### BEGIN SOLUTION
    values = code_map[quantized.codes.int()]
    scales = quantized.scales.repeat_interleave(block_size)[: len(values)]
    return (values * scales).view(shape)
    ### END SOLUTION


class Adam8bit(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:
        """One step of Adam, in place; large moments are kept as codes and scales."""
        ### BEGIN SOLUTION
        mean_map, square_map = lab06.dynamic_map(True), lab06.dynamic_map(False)
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, large = self.state[p], p.numel() >= 4096
                if not state:
                    state["step"] = 0
                    mean, square = torch.zeros_like(p), torch.zeros_like(p)
                elif large:
                    mean = dequantize(state["exp_avg"], mean_map.to(p.device), p.shape)
                    square = dequantize(state["exp_avg_sq"], square_map.to(p.device), p.shape)
                else:
                    mean, square = state["exp_avg"], state["exp_avg_sq"]
                state["step"] += 1
                mean.lerp_(p.grad, 1 - beta1)
                square.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                root = (square / (1 - beta2 ** state["step"])).sqrt() + group["eps"]
                p.sub_(group["lr"] * mean / (1 - beta1 ** state["step"]) / root)
                state["exp_avg"] = quantize(mean, mean_map.to(p.device)) if large else mean
                state["exp_avg_sq"] = quantize(square, square_map.to(p.device)) if large else square
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-adam8bit-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("06-adam8bit", quantize, dequantize, Adam8bit)

# %%
square = torch.ones(256)
square[0] = 0.03**2
linear, dynamic = lab06.linear_map(False), lab06.dynamic_map(False)
for name, code_map in {"linear": linear, "dynamic": dynamic}.items():
    stored = dequantize(quantize(square, code_map), code_map, square.shape)[0].item()
    print(f"v = 0.0009 of the block's largest in the {name} map: {stored:.6f}")
    if name == "linear":
        off = abs(stored / 0.03**2 - 1)
        guesses.settle(
            "v in the linear map",
            "zero" if stored == 0 else "right to 1 %" if off < 0.01 else "right to 10 %",
        )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Zero. The square of 0.03 is 0.0009, and everything below half of 1/255, which is 0.002, is nearest to 0. That holds
# for every gradient below 4.4 % of the block's largest, the root of 0.002.
#
# </details>
#
# The weights whose $v$ became 0 are divided by $\varepsilon$ alone. The figure shows how far they move in a step
# in which their gradient is 0, as that of a rare token mostly is. The others should make a step of about 0.9 learning
# rates, the dashed line.

# %% tags=["figure"]
labkit.figures.steps_by_gradient_size(
    quantize, dequantize, {"linear map": linear, "dynamic map": dynamic}
)

# %% [markdown]
# So the linear map ruins the weights with *small* gradients, and it makes their steps too large: 3.7 million learning
# rates for a gradient of 4 % of the largest. The large ones are fine. The dynamic map is off by at most 8 % for
# gradients above 1 % of the largest, and by at most a third down to 0.04 %. Below that it makes zeros too, but a
# hundred times further down. That is why blocks are small: 256 weights rarely have gradients of such different sizes,
# but a whole tensor does.

# %%
costs_8bit = lab06.compare(
    {
        "yours, one byte per moment": lambda params: Adam8bit(params, lr=3e-3),
        "torch.optim.Adam, fp32": lambda params: torch.optim.Adam(params, lr=3e-3, fused=True),
        **lab06.bitsandbytes_8bit(lr=3e-3),
    }
)

# %% [markdown]
# The three matrices of this model have 4096 and 8192 elements. The vectors are too small to be quantized.
#
# **In practice** `TrainingArguments(optim="adamw_bnb_8bit")` uses `bitsandbytes`, which is where the dynamic map and
# the blocks of 256 come from. It too keeps float32 moments for tensors with fewer than 4096 elements.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## A row and a column
#
# Can $v$ do with almost no memory at all? For a weight matrix, the sizes of the gradients mostly depend on the row and
# on the column: some inputs are large, some outputs matter more. **Adafactor** keeps only two vectors, the mean of
# $g^2$ over each row, $r_i$, and over each column, $c_j$. From these it computes
#
# $$\hat v_{ij} = \frac{r_i\, c_j}{\operatorname{mean}_i r_i}$$
#
# The division is needed because both factors hold the overall size of the gradients. If $g^2$ really is a product of a
# row factor and a column factor, the estimate is exact. For a matrix of 1024 × 16384 the two vectors have 17 thousand
# numbers, $v$ has 17 million. In a stack of matrices (three axes, as in a mixture of experts) each matrix has its own
# $r$ and $c$. A vector is not factored, because there is nothing to save.
#
# Adafactor also has no first moment. Without it the updates are noisier, and $v$ is only estimated, so four things
# keep the steps in bounds. With $t$ the step from 1 on, and $\text{rms}(x) = \sqrt{\text{mean}(x^2)}$:
#
# | | |
# |---|---|
# | running means | the new value counts $t^{-0.8}$, the old one the rest: no bias to correct |
# | update | $u = g / \sqrt{\hat v}$, with $\hat v$ at least $\varepsilon_1^2$, and $\operatorname{mean} r$ at least $\varepsilon_1$ |
# | clipping | $u$ is divided by $\max(1, \text{rms}(u) / d)$ |
# | rate | $\min(\text{lr}, 1/\sqrt t) \cdot \max(\varepsilon_2, \text{rms}(w))$: relative to the size of the parameter |

# %% [markdown]
# **Predict:** T5-3B has 2.85 billion parameters, almost all in matrices. How many megabytes do $r$ and $c$ of all of
# them take in float32?

# %% nbgrader={"grade": false, "grade_id": "06-predict-factors", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("rows and columns of T5-3B", None, unit="MB")

# %% [markdown]
# [[exercise 06-adafactor]]
#
# Write `Adafactor.step()` with the formulas above. The settings of a group are `"lr"`, `"beta2_decay"` (the −0.8),
# `"eps"` (the pair $\varepsilon_1, \varepsilon_2$) and `"d"`. rms is taken over a whole parameter, before its step. The
# rows and columns are the last two axes. Keep the state in `self.state[p]`, its own count of steps too: a parameter
# whose `p.grad` is None makes no step, as in AdamW. The check compares with `torch.optim.Adafactor` after every step,
# and counts the bytes that stay alive: a float32 for each row and column, and for each element of a vector.
#
# <details><summary>Hint 1: a nudge</summary>
#
# With `keepdim=True` the means over the last axis have the shape (…, n, 1), those over the axis before it (…, 1, m).
# What does the product of such tensors give?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `row.lerp_(new_value, weight)` is the running mean, with `weight = step ** beta2_decay`, which is 1 in the first step.
# `row * col` broadcasts to the full shape, and `row.mean(-2, keepdim=True)` is what each matrix is divided by.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `estimate = row * col / row.mean(-2, keepdim=True).clamp(min=eps1)`; for a vector it is the running mean of
# `p.grad**2`. Then `update = p.grad / estimate.clamp(min=eps1**2).sqrt()`, divide it by `max(1, rms(update) / d)`, and
# `p.sub_(min(lr, step**-0.5) * max(eps2, rms(p)) * update)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "06-adafactor", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Adafactor(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(2**-23, 1e-3), d=1.0):
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d})

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter that has a gradient, in place."""
        ### BEGIN SOLUTION
        for group in self.param_groups:
            eps1, eps2 = group["eps"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    if p.dim() < 2:
                        state["variance"] = torch.zeros_like(p)
                    else:
                        state["row_var"] = torch.zeros_like(p.select(-1, 0).unsqueeze(-1))
                        state["col_var"] = torch.zeros_like(p.select(-2, 0).unsqueeze(-2))
                state["step"] += 1
                new = state["step"] ** group["beta2_decay"]
                square = p.grad**2
                if p.dim() < 2:
                    estimate = state["variance"].lerp_(square, new)
                else:
                    row = state["row_var"].lerp_(square.mean(-1, keepdim=True), new)
                    col = state["col_var"].lerp_(square.mean(-2, keepdim=True), new)
                    estimate = row * col / row.mean(-2, keepdim=True).clamp(min=eps1)
                update = p.grad / estimate.clamp(min=eps1**2).sqrt()
                update /= max(1.0, update.square().mean().sqrt().item() / group["d"])
                rate = min(group["lr"], state["step"] ** -0.5)
                p.sub_(rate * max(eps2, p.square().mean().sqrt().item()) * update)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-adafactor-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("06-adafactor", Adafactor)

# %%
t5_shapes = lab06.t5_3b_shapes()
n_parameters = sum(math.prod(shape) for shape in t5_shapes)
n_factors = sum(sum(shape[-2:]) for shape in t5_shapes)
print(f"T5-3B: {n_parameters / 1e9:.2f} billion parameters in {len(t5_shapes)} tensors")
print(f"Adam's two moments, float32    {8 * n_parameters / 1e9:8.1f} GB")
print(f"rows and columns, float32      {4 * n_factors / 1e6:8.1f} MB")
guesses.settle("rows and columns of T5-3B", 4 * n_factors / 1e6)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 13 MB. A matrix of $n \times m$ has $nm$ elements, and $n + m$ rows and columns: T5-3B's largest have 16384 × 1024.
#
# </details>

# %%
adafactor_costs = lab06.compare(
    {
        "yours": lambda params: Adafactor(params, lr=3e-2),
        "torch.optim.Adafactor": lambda params: torch.optim.Adafactor(
            params, lr=3e-2, foreach=False
        ),
        "torch.optim.AdamW, fused=True": lambda params: torch.optim.AdamW(
            params, lr=3e-3, fused=True
        ),
    }
)

# %% [markdown]
# Three Adafactors exist, and they differ. The paper adds $\varepsilon_1 = 10^{-30}$ to every $g^2$. PyTorch's has no
# such term; its $\varepsilon_1$ is the gap of the dtype at 1 (1.2e-7 for float32) and bounds the mean of the row factor
# from below. So gradients with an rms below 3.5e-4 make smaller steps in PyTorch's than in the paper's. The Adafactor
# of `transformers` follows the paper, and can have a first moment and a constant learning rate (`scale_parameter=False,
# relative_step=False`).
#
# **In practice** you write `TrainingArguments(optim="adafactor")`, which uses the Adafactor of `transformers`.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Gradients that are gone at once
#
# Four bytes per parameter are left that no optimizer of this lab has touched: the gradients. An ordinary step makes
# all of them, then the optimizer uses them one after the other. But a parameter's gradient is ready as soon as the
# backward pass has gone through its layer, and then nothing in the rest of the pass needs the parameter's old value
# again. So the optimizer can step this parameter right there, and free its gradient before the next one is made.
#
# `p.register_post_accumulate_grad_hook(hook)` has PyTorch call `hook(p)` when the gradient of `p` is complete, in
# `p.grad`. A weight that is used in two places, a **tied** one such as an embedding that is also the head, gets two
# gradients in one pass. PyTorch adds them before it calls the hook, so it still steps once. But the gradient of the
# head, which comes first, has to wait until the backward pass arrives at the embedding.
#
# Whatever needs *all* gradients before the first parameter moves becomes impossible. You will meet three such things.

# %% [markdown]
# **Predict:** a model has 12 layers of the same size, and each gradient takes 1 MiB. In an ordinary step, 12 MiB of
# gradients are alive at the peak. How many MiB are alive when each step runs inside the backward pass?

# %% nbgrader={"grade": false, "grade_id": "06-predict-live", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("live gradients", None, unit="MiB")

# %% [markdown]
# [[exercise 06-step-in-backward]]
#
# Write `step_in_backward(model, make_optimizer, ...)`. After this call, every backward pass also steps every parameter
# that needs a gradient. Nobody calls `step()` or `zero_grad()` any more. `make_optimizer(params)` makes an optimizer of
# the given parameters, whose state has to last from step to step. As soon as a parameter has stepped, its `p.grad` is
# None.
#
# Three arguments ask for what cannot be done: `max_norm`, for clipping by the norm of all gradients together,
# `accumulation_steps` above 1, and `scaler`, a `GradScaler`. Raise a `ValueError` for each. Its text names the argument
# and says why it is impossible. The check compares the weights with an ordinary loop, and bounds the peak of live
# memory.
#
# <details><summary>Hint 1: a nudge</summary>
#
# One optimizer per parameter steps this parameter alone. How many optimizers is that, and does it matter?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Before any backward pass, go over the parameters that need a gradient. Make an optimizer for each, and register a hook
# that calls its `step()` and sets the gradient to None. The optimizers live as long as the hooks do.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `def step(optimizer, p): optimizer.step(); p.grad = None`, and in the loop
# `p.register_post_accumulate_grad_hook(partial(step, make_optimizer([p])))`. A lambda in the loop would look `optimizer`
# up when it is called, which is after the loop.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "06-step-in-backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def step_in_backward(
    model: nn.Module,
    make_optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
    max_norm: float | None = None,
    accumulation_steps: int = 1,
    scaler: object = None,
) -> None:
    """From now on, every backward pass steps each parameter as soon as its gradient is there, and frees it."""
    ### BEGIN SOLUTION
    if max_norm is not None:
        raise ValueError(
            "max_norm: the global norm is known only after the first parameters have stepped"
        )
    if accumulation_steps != 1:
        raise ValueError(
            "accumulation_steps: every backward pass steps, so no gradient is left to add to"
        )
    if scaler is not None:
        raise ValueError(
            "scaler: whether any gradient is infinite is known only after the last one"
        )

    def step(optimizer: torch.optim.Optimizer, p: nn.Parameter) -> None:
        optimizer.step()
        p.grad = None

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(partial(step, make_optimizer([p])))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-step-in-backward-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("06-step-in-backward", step_in_backward)


# %%
def one_step(in_backward: bool):
    """The memory of a step of SGD, which keeps nothing, on 12 layers of 1 MiB each."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(512, 512, bias=False) for _ in range(12)))
    make_optimizer = partial(torch.optim.SGD, lr=0.1, foreach=False)
    if in_backward:
        step_in_backward(model, make_optimizer)
    with track_memory(model) as profile:
        model(torch.randn(8, 512)).square().mean().backward()
        if not in_backward:
            make_optimizer(model.parameters()).step()
            model.zero_grad()
    return profile


profiles = {"backward(), then step()": one_step(False), "step in backward": one_step(True)}
for name, profile in profiles.items():
    gradients = max(
        profile.by_category_at(i).get("gradients", 0) for i in range(len(profile.timeline))
    )
    print(f"{name:24} {gradients / 2**20:5.2f} MiB of gradients alive at most")
guesses.settle("live gradients", gradients / 2**20)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 1 MiB, the largest single gradient: each is freed before the next one is made.
#
# </details>

# %% tags=["figure"]
labkit.figures.memory_timeline(profiles)

# %% [markdown]
# The ordinary step climbs through the backward pass and stays up there until its end, where the gradients are freed.
# The other one holds one gradient at a time: at each dip one is freed before the next is made.
#
# PyTorch has this step too, for its own use in `torch.distributed`. Here it is beside yours, with AdamW on the language
# model. "Gradients" are those that are alive at the peak.

# %%
in_backward_costs = lab06.compare_in_backward(
    {
        "backward(), then step()": None,
        "yours": step_in_backward,
        "_apply_optimizer_in_backward": lab06.torchs_step_in_backward,
    },
    partial(torch.optim.AdamW, lr=3e-3, fused=True),
)

# %% [markdown]
# The weights are the same, and so is the loss. The 1.59 bytes per parameter are the gradient of the model's largest
# tensor, with 8192 elements, and that of a vector beside it.
#
# **The price.** Clipping by the global norm needs the norm of all gradients, which is known when the last one is there.
# By then the first parameters have stepped. (Clipping each tensor by its own norm is possible, and is another
# algorithm.) Accumulation needs the gradients to stay from batch to batch. A loss scaler skips the step of *all*
# parameters if any gradient is infinite. And many small steps are slower on a GPU than one fused step: 12 launches here
# in place of 1.
#
# **In practice** `TrainingArguments(optim="lomo")` and `optim="adalomo"` work this way, and the PyTorch tutorial *How
# to save memory by fusing the optimizer step into the backward pass* is this section. `torchtune` has it as
# `optimizer_in_bwd=True`.

# %% [markdown]
# ## Optional: all tensors at once
#
# A model has hundreds of tensors, most of them small. A loop over them makes some ten operations for each, and on a GPU
# every operation starts a kernel, which takes a few microseconds however little there is to do. `torch._foreach_mul_`
# and its relatives do one operation on a whole *list* of tensors, and a GPU needs only a few kernels for it. This is
# what `foreach=True` does in all optimizers of PyTorch.
#
# Three things come with it. The tensors of a list must have the same dtype, because a kernel is written for one;
# otherwise PyTorch falls back to a loop. A parameter that has no gradient in this step must be left out of every list.
# And a temporary result is no longer a tensor but a list of tensors, as large as the whole model. The loop needs that
# memory for one parameter at a time.

# %% [markdown]
# **Predict:** PyTorch's AdamW with `foreach=True` makes 20 operations in a step on 4 tensors. How many does it make on
# 40 tensors?

# %% nbgrader={"grade": false, "grade_id": "06-predict-foreach", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("operations of foreach on 40 tensors", None)

# %% [markdown]
# [[exercise 06-foreach]]
#
# Write `ForeachAdamW.step()`: the same update as in your AdamW, and the same state in `self.state[p]`, with operations on
# lists. Make a list for each group and each dtype in it. The check mixes float32 with float64 (in practice it is
# bfloat16). From the third step on, when all states are there, it allows 20 operations for each list. It also allows
# one temporary number per weight, not two.
#
# These are enough. A name that ends in `_` changes its first list in place, and a number can always be a list of
# numbers, one for each tensor:
#
# | | each tensor of the list becomes |
# |---|---|
# | `torch._foreach_mul_(xs, number)` | $x \cdot$ number |
# | `torch._foreach_div_(xs, number)` | $x\, /$ number |
# | `torch._foreach_add_(xs, number)` | $x +$ number |
# | `torch._foreach_lerp_(xs, ys, number)` | $x + \text{number} \cdot (y - x)$ |
# | `torch._foreach_addcmul_(xs, ys, zs, number)` | $x + \text{number} \cdot y z$ |
# | `torch._foreach_addcdiv_(xs, ys, zs, number)` | $x + \text{number} \cdot y / z$ |
# | `torch._foreach_sqrt(xs)` | $\sqrt x$, in a new list |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which of the numbers in the update are the same for all parameters of a group, and which depend on the parameter's own
# count of steps?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Sort the parameters that have a gradient into a dict from dtype to list. For each of these lists make the lists of
# gradients, of both moments and of counts in the same order. Then write the update once, each line on lists. The
# corrections are lists of numbers.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `roots = torch._foreach_sqrt(squares)`, then `torch._foreach_div_(roots, [(1 - beta2**step) ** 0.5 for step in steps])`
# and `torch._foreach_add_(roots, eps)`. At the end
# `torch._foreach_addcdiv_(params, means, roots, [-lr / (1 - beta1**step) for step in steps])`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "06-foreach", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ForeachAdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter that has a gradient, in place: each operation on a list of tensors."""
        ### BEGIN SOLUTION
        for group in self.param_groups:
            (beta1, beta2), lr = group["betas"], group["lr"]
            by_dtype = {}
            for p in group["params"]:
                if p.grad is not None:
                    by_dtype.setdefault(p.dtype, []).append(p)
            for params in by_dtype.values():
                grads, states = [p.grad for p in params], [self.state[p] for p in params]
                for p, state in zip(params, states):
                    if not state:
                        state.update(
                            step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p)
                        )
                    state["step"] += 1
                steps = [state["step"] for state in states]
                means = [state["exp_avg"] for state in states]
                squares = [state["exp_avg_sq"] for state in states]
                torch._foreach_mul_(params, 1 - lr * group["weight_decay"])
                torch._foreach_lerp_(means, grads, 1 - beta1)
                torch._foreach_mul_(squares, beta2)
                torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
                roots = torch._foreach_sqrt(squares)
                torch._foreach_div_(roots, [(1 - beta2**step) ** 0.5 for step in steps])
                torch._foreach_add_(roots, group["eps"])
                torch._foreach_addcdiv_(
                    params, means, roots, [-lr / (1 - beta1**step) for step in steps]
                )
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-foreach-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("06-foreach", ForeachAdamW)

# %%
by_tensors = lab06.compare_sizes(
    {
        "yours": ForeachAdamW,
        "torch.optim.AdamW, a loop": partial(torch.optim.AdamW, foreach=False),
        "torch.optim.AdamW, foreach=True": partial(torch.optim.AdamW, foreach=True),
        "torch.optim.AdamW, fused=True": partial(torch.optim.AdamW, fused=True),
    },
    (4, 40),
)
guesses.settle(
    "operations of foreach on 40 tensors",
    by_tensors["torch.optim.AdamW, foreach=True", 40].dispatches,
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# It makes 92. Twelve operations work on lists. The other two per tensor read its count of steps, which PyTorch keeps as
# a tensor of one element, to compute the corrections in Python: 12 + 2 · 40. Yours keeps the counts as Python numbers.
#
# </details>
#
# "Temporary" is what a step allocates on top of weights, gradients and states. The loop needs a little for one tensor
# at a time, but a list of roots needs as much memory as all the weights, here 4 bytes for each. For a model of 8
# billion parameters in bfloat16 that is 16 GB for a moment, which is why `foreach=False` sometimes fits where the
# default does not. The fused step needs nothing, and 4 operations for any number of tensors: two of them only mark the
# step for the profiler.
#
# **In practice** `TrainingArguments(optim="adamw_torch_fused")`: where there is a fused step, there is no reason to
# choose `foreach`. For the optimizers that have none, `foreach` is the default on a GPU.

# %%
foreach_costs = lab06.compare(
    {
        "yours": lambda params: ForeachAdamW(params, lr=3e-3),
        "torch.optim.AdamW, foreach=True": lambda params: torch.optim.AdamW(
            params, lr=3e-3, foreach=True
        ),
    }
)

# %% [markdown]
# ## Optional: steps with equal singular values
#
# Adam treats a matrix as a bag of numbers. **Muon** treats it as a map from vectors to vectors. The gradient of a
# matrix is usually dominated by a few directions: a few singular values are large, most are tiny, and the step changes
# almost nothing in most directions. Muon keeps the directions, the singular vectors, and makes all singular values
# about 1.
#
# A singular value decomposition would do it, but is slow on a GPU. A polynomial needs only matrix products. With $X = U
# \Sigma V^\top$, the product $X X^\top X$ is $U \Sigma^3 V^\top$: an odd polynomial of the matrix is the same polynomial of
# each singular value. So start from $X = G / \lVert G \rVert_F$, whose singular values are at most 1, and take five
# steps of **Newton–Schulz**
#
# $$X \leftarrow a X + \left(b\, X X^\top + c\, (X X^\top)^2\right) X, \qquad a = 3.4445,\; b = -4.7750,\; c = 2.0315$$
#
# The coefficients do not converge to 1. They are chosen to lift small values fast: $a^5 = 485$ times in five steps.
# What starts between 0.01 and 1 ends between 0.68 and 1.13, and that is good enough.

# %% [markdown]
# [[exercise 06-muon]]
#
# Write three things.
#
# - `orthogonalize(g)` returns the result of the five steps in float32, in g's shape. $X X^\top$ should be the smaller of
#   the two possible products: the check counts FLOPs. A gradient of zeros gives zeros.
# - `split_parameters(model)` returns two lists: the parameters for Muon, which are the matrices between the embedding
#   and the head, and all others, which stay with AdamW. An embedding is any `nn.Embedding`, whatever its name and
#   wherever in the model; the head is `model.head`, and may share its tensor with one. Each parameter is in one list,
#   once.
# - `Muon.step()`. It does the same as PyTorch's, in the same order: the buffer becomes `momentum * buffer + (1 -
#   momentum) * grad`, and the update is `grad.lerp(buffer, momentum)` (Nesterov's momentum). The weight decays by $1 -
#   \text{lr} \cdot \lambda$, then loses the orthogonalized update times the adjusted learning rate. With `adjust`
#   "original" that is $\text{lr} \cdot \sqrt{\max(1, \text{rows} / \text{columns})}$, with "match_rms_adamw" it is
#   $\text{lr} \cdot 0.2 \sqrt{\max(\text{rows}, \text{columns})}$. A fused matrix, such as that of queries, keys and
#   values, is made of `n_blocks` blocks of rows, and each is a matrix of its own. A matrix whose `p.grad` is None makes
#   no step.
#
# <details><summary>Hint 1: a nudge</summary>
#
# For a matrix with more rows than columns, work on the transpose. Bound the norm from below, so that 0/0 cannot happen.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In each step compute `gram = x @ x.T` once. For blocks: `update.chunk(n_blocks)` cuts the rows, and `torch.cat` puts
# the results together again. The rule for the learning rate takes the shape of a block, not that of the whole matrix.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `x = a * x + (b * gram + c * gram @ gram) @ x`. For the lists: collect `id(m.weight)` of every `nn.Embedding` and of
# `model.head`, and take the parameters with `p.dim() == 2` that are not among them.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "06-muon", "locked": false, "schema_version": 3, "solution": true, "task": false}
def orthogonalize(g: Tensor) -> Tensor:
    """Five steps of Newton-Schulz from g / ‖g‖, in float32; same shape as g."""
    ### BEGIN SOLUTION
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / g.norm().clamp(min=1e-7)
    tall = g.shape[0] > g.shape[1]
    x = x.T if tall else x
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x
    ### END SOLUTION


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters for Muon, and those for AdamW, each of them once."""
    ### BEGIN SOLUTION
    left_out = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    left_out.add(id(model.head.weight))
    matrices = [p for p in model.parameters() if p.dim() == 2 and id(p) not in left_out]
    chosen = set(map(id, matrices))
    return matrices, [p for p in model.parameters() if id(p) not in chosen]
    ### END SOLUTION


class Muon(torch.optim.Optimizer):
    def __init__(
        self, params, lr=1e-3, momentum=0.95, weight_decay=0.1, adjust="original", n_blocks=1
    ):
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "adjust": adjust, "n_blocks": n_blocks})

    @torch.no_grad()
    def step(self) -> None:
        """One step of every matrix that has a gradient, in place."""
        ### BEGIN SOLUTION
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                buffer = state["momentum_buffer"].lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(buffer, group["momentum"])
                blocks = update.chunk(group["n_blocks"])
                rows, columns = blocks[0].shape
                if group["adjust"] == "original":
                    factor = max(1, rows / columns) ** 0.5
                else:
                    factor = 0.2 * max(rows, columns) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * factor * torch.cat([orthogonalize(block) for block in blocks]))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-muon-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("06-muon", orthogonalize, split_parameters, Muon)

# %% tags=["figure"]
labkit.figures.newton_schulz_player(orthogonalize)

# %% [markdown]
# The lines are the polynomial, applied to the singular values. The dots are those of the matrix that your function
# returned. The grey band is 0.68 to 1.13. The wide matrix lands in it. A square random matrix has singular values near
# 0, and the smallest of them stay outside: five steps lift them 485 times, and that is not enough. It does not hurt.
#
# Now Muon for the matrices and AdamW for the rest, beside AdamW alone. `lab06.Both` steps two optimizers.


# %%
def with_muon(make_muon):
    """Muon for the two linear layers' weights, AdamW for the embedding, the norm and the biases."""

    def make(params):
        params = list(params)
        matrices = [p for p in params if p.dim() == 2 and p.shape != (64, 64)]
        others = [p for p in params if all(p is not one for one in matrices)]
        return lab06.Both(make_muon(matrices), torch.optim.AdamW(others, lr=3e-3, fused=True))

    return make


muon_costs = lab06.compare(
    {
        "yours": with_muon(partial(Muon, lr=0.02)),
        "torch.optim.Muon": with_muon(partial(torch.optim.Muon, lr=0.02)),
        "torch.optim.AdamW, fused=True": lambda params: torch.optim.AdamW(
            params, lr=3e-3, fused=True
        ),
    }
)

# %% [markdown]
# PyTorch's iterates in bfloat16, so its steps differ from yours by 1.1 % to 1.6 %.
#
# **In practice** the "match_rms_adamw" rule makes steps as large as those of AdamW, so that you can keep the learning
# rate and the decay of an AdamW recipe. `TrainingArguments` has no name for Muon: give `Trainer` an optimizer of your
# own.

# %% [markdown]
# ## What you measured
#
# The table shows your optimizers on the shapes of T5-3B, run on tensors that have a shape but no memory. Two of
# PyTorch's stand below them. An optimizer that is not written yet has no row.

# %%
weight_bytes = {"AdamW": 4, "AdamW, bf16 by chance": 2, "Adam, 8 bits": 4, "Adafactor": 4}
generator = torch.Generator()
state_bytes = labkit.each_written(
    {
        "AdamW": lambda: lab06.state_bytes_on(AdamW, t5_shapes),
        "AdamW, bf16 by chance": lambda: lab06.state_bytes_on(
            partial(BF16AdamW, generator=generator), t5_shapes, torch.bfloat16
        ),
        "Adam, 8 bits": lambda: lab06.state_bytes_on(Adam8bit, t5_shapes),
        "Adafactor": lambda: lab06.state_bytes_on(Adafactor, t5_shapes),
    }
)
of_pytorch = {
    "torch.optim.AdamW": lab06.state_bytes_on(torch.optim.AdamW, t5_shapes),
    "torch.optim.Adafactor": lab06.state_bytes_on(torch.optim.Adafactor, t5_shapes),
}
print(f"{'T5-3B':24}{'states':>12}{'per parameter':>16}{'all, with gradients':>22}")
for name, n_bytes in (state_bytes | of_pytorch).items():
    everything = n_bytes + 2 * weight_bytes.get(name, 4) * n_parameters
    print(
        f"{name:24}{n_bytes / 1e9:>9.3f} GB{n_bytes / n_parameters:>14.3f} B{everything / 1e9:>19.1f} GB"
    )

# %% tags=["figure"]
labkit.figures.bytes_per_parameter(
    {
        name: (weight_bytes[name], weight_bytes[name], n_bytes / n_parameters)
        for name, n_bytes in state_bytes.items()
    }
    | {"Adafactor, step in backward": (4, 0, state_bytes.get("Adafactor", 0) / n_parameters)}
)

# %% [markdown]
# Saved bytes can also buy a larger model. Below, each optimizer trains the widest model whose weights, gradients and
# states fit into the same 208 kB. The data are a Markov chain again, now of 512 tokens, and all see the same batches.

# %%
chance = torch.Generator().manual_seed(0)
at_equal_bytes = lab06.train_at_equal_bytes(
    {
        "AdamW": lab06.Plan(partial(AdamW, lr=6e-3)),
        "AdamW, bf16 by chance": lab06.Plan(
            partial(BF16AdamW, lr=6e-3, generator=chance), dtype=torch.bfloat16
        ),
        "Adam, 8 bits": lab06.Plan(partial(Adam8bit, lr=6e-3)),
        "Adafactor": lab06.Plan(partial(Adafactor, lr=3e-2)),
        "Adafactor, step in backward": lab06.Plan(
            partial(Adafactor, lr=3e-2), in_backward=step_in_backward
        ),
    },
    n_bytes=208_000,
)

# %% tags=["figure"]
labkit.figures.training_losses(at_equal_bytes)

# %% [markdown]
# This task has more to learn than any of these models can hold, so the width counts most. At an equal width AdamW is as
# good as the others or better, as the tables of the sections show.
#
# A widely copied table says for a model of 3 billion parameters: AdamW 24 GB, Adafactor "more than 12 GB",
# 8-bit Adam 6 GB. The first and the last hold: 8 and 2 bytes times 3 billion. The second would be an Adafactor *with* a
# first moment, which takes 4 bytes per parameter. Without it, as you wrote it and as it is by default, it is a
# thousandth of that.
#
# Other optimizers make other choices. **Lion** keeps only a first moment and steps by its sign: 4 bytes, and no $v$ to
# lose. **GaLore** projects the gradient of each matrix onto a few directions and keeps Adam's moments for these: of
# rank $r$ in place of $n$ rows, $8rm$ bytes for a matrix of $n \times m$, and $4nr$ for the directions.
#
# So an optimizer is a compression of the gradient's history: 8 bytes per parameter, 4, 2, or nearly 0. What may be
# thrown away depends on where precision is needed. A weight needs it in the small updates, which chance preserves on
# average. $v$ needs it near zero, where a value that becomes 0 turns a small step into a huge one, and hardly anywhere
# else: even a product of a row and a column will do.
#
# And here are your predictions beside what you measured:

# %%
guesses.score()

# %%
progress("06", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "06",
    "8-bit moments",
    memory=lambda: (
        f"{state_bytes['Adam, 8 bits'] / n_parameters:.2f} bytes per parameter, AdamW "
        f"{state_bytes['AdamW'] / n_parameters:.2f}"
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) A colleague trains with a loss that is the *sum* over the tokens, you with the *mean*, both with
# AdamW and the same learning rate. Does the loss curve, per token, differ, and where in the formula do you see the
# reason? Name two settings or measurements of the training that the factor does affect.

# %% [markdown] nbgrader={"grade": true, "grade_id": "06-open-sum", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# It does not (up to rounding): all gradients are multiplied by one factor c, so m by c and v by c squared, and m / sqrt(v)
# does not change. What changes: eps (1e-8 is compared with a gradient c times as large, so small gradients are damped
# less), clipping by the global norm (max_norm = 1 now cuts c times as much), with fp16 the overflow of gradients, and
# SGD's or any logged gradient norm. Weight decay does not: it is decoupled; in Adam with L2 it would.
#
# Marks: 1 for "no difference" with the cancellation in m / sqrt(v). 1/2 for each of two things that change.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) You fine-tune 7 billion parameters on one card of 24 GB, activations take 4 GB, all in bfloat16
# where possible. Which of this lab's techniques do you combine? Give the gigabytes of weights, gradients and states,
# and say for each choice what it costs.

# %% [markdown] nbgrader={"grade": true, "grade_id": "06-open-plan", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Weights in bfloat16 with stochastic rounding: 14 GB, no master copy (28 GB more); costs noise of up to a gap per update
# and a draw per weight. Left beside 4 GB of activations: 6 GB. Gradients in bfloat16 are 14 GB, so they cannot stay: the
# step in the backward pass leaves the largest one (a few hundred MB); costs clipping by the global norm, accumulation
# and speed. States: bfloat16 moments 28 GB and 8-bit ones 14 GB do not fit; Adafactor without a first moment takes some
# tens of MB; costs the momentum and an exact v (noisier, relative step sizes, another learning rate). Total 14 + 4 + less
# than 1 GB. (LoRA, lab 08, is another answer, if it says what it gives up.)
#
# Marks: 1 for weights 14 GB without a master copy and why that works. 1 for gradients freed in the backward pass, with
# what becomes impossible. 1 for states that fit with a number (1/2 if the moments do not fit but were reckoned right).
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Ilya Loshchilov and Frank Hutter, *Decoupled Weight Decay Regularization* (ICLR 2019). Why L2 is not weight decay.
# - Tim Dettmers and others, *8-bit Optimizers via Block-wise Quantization* (ICLR 2022). Blocks, the dynamic map, and
#   which layers need more than 8 bits.
# - Noam Shazeer and Mitchell Stern, *Adafactor: Adaptive Learning Rates with Sublinear Memory Cost* (ICML 2018).
# - Kai Lv and others, *Full Parameter Fine-tuning for Large Language Models with Limited Resources* (2023): LOMO, the
#   step inside the backward pass.
# - Keller Jordan, *Muon: An optimizer for hidden layers in neural networks* (2024): matrices treated as matrices.
#   PyTorch has it as `torch.optim.Muon`.
#
# ## Sources
#
# The texts above, and PyTorch's documentation of `torch.optim`. Adam: Diederik Kingma and Jimmy Ba, *Adam: A Method for
# Stochastic Optimization* (ICLR 2015). Stochastic rounding of weights in bfloat16: Pedram Zamirai and others,
# *Revisiting BFloat16 Training* (2021). Lion: Xiangning Chen and others, *Symbolic Discovery of Optimization
# Algorithms* (2023). GaLore: Jiawei Zhao and others, *GaLore: Memory-Efficient LLM Training by Gradient Low-Rank
# Projection* (2024). The table of 24, 12 and 6 GB: *Methods and tools for efficient training on a single GPU*, in the
# documentation of `transformers`.
