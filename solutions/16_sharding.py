# %% [markdown]
# # Lab 16: ZeRO and FSDP
#
# Your data parallel training from lab 15 keeps the same weights, the same gradients and the same optimizer states on every
# rank, equal to the last bit. For a model of 7.5 billion parameters on 64 GPUs that is 7.7 TB, of which 7.6 TB are copies. A
# rank needs 120 GB, and its GPU has 80 GB. **Can you delete the copies without sending one byte more?**
#
# You will cut the optimizer states, then the gradients, then the weights over the ranks (ZeRO-1, ZeRO-2, and ZeRO-3, which
# PyTorch calls FSDP), and clip a gradient that no rank holds as a whole. Before that you will predict what each of these
# keeps and sends.
#
# [[time]]
#
# You need to know what reduce-scatter and all-gather do (lab 14), and how data parallel training works (lab 15), but
# nothing that you wrote there.

# %% nbgrader={"grade": false, "grade_id": "16-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import json
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress, run_ranks, written
from labkit.exercises.lab16.checkpoint import from_bytes, to_bytes
from labkit.exercises.lab16.prefetch import step_ms
from labkit.material.lab16 import (
    AllReduced,
    copies_on_ranks,
    held_between_layers,
    norm_after,
    three_steps,
)
from labkit.material.lab16_checkpoint import killed_while_saving, recut
from labkit.material.lab16_start import cut_whole, init_peaks
from labkit.material.lab16_timeline import unit_timeline
from labkit.ranks import Comm
from labkit.store import Store

guesses = Predictions("16")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# Here is the question, measured: four real ranks train a small model with data parallelism and AdamW for three steps. Then
# each rank says what it holds, and a fingerprint of its bits.

# %%
copies = run_ranks(copies_on_ranks, 4, backend="gloo")
for rank, held in enumerate(copies):
    parts = ", ".join(f"{name} {n_bytes:,} B ({bits})" for name, (n_bytes, bits) in held.items())
    print(f"rank {rank}: {parts}")
once = sum(n_bytes for n_bytes, _ in copies[0].values())
different = {(name, bits): n_bytes for held in copies for name, (n_bytes, bits) in held.items()}
print(f"held on 4 ranks: {4 * once:,} B, of which are different: {sum(different.values()):,} B")

# %% [markdown]
# Three quarters of the memory hold nothing new. With 64 ranks it would be 98 %.
#
# ## Count before you cut
#
# With AdamW and 16-bit training, each parameter costs 16 bytes: 2 for the weight, 2 for its gradient, and 12 that only the
# optimizer needs, in float32: the master weight and two moments (lab 01). ZeRO (*zero redundancy optimizer*) cuts more of
# this with every stage. A **shard** is the part that one of $n$ ranks keeps.
#
# | method | a rank keeps whole | a rank keeps a shard of |
# |---|---|---|
# | DDP | everything | nothing |
# | ZeRO-1 | weights, gradients | optimizer states |
# | ZeRO-2 | weights | gradients, optimizer states |
# | ZeRO-3, FSDP | nothing | weights, gradients, optimizer states |
# | hybrid (HSDP) | nothing | as ZeRO-3, but cut over the ranks of *one node*: each node is a replica |
#
# What does a rank send for that? The sentence from lab 14 answers it:
#
# $$\text{all-reduce} = \text{reduce-scatter} + \text{all-gather}, \qquad \text{each: } n - 1 \text{ rounds},\;
# \frac{n-1}{n}\,S \text{ bytes sent by each rank}$$

# %% tags=["figure"]
labkit.figures.two_halves(n_ranks=4)

# %% [markdown]
# This is the picture from lab 14. A box has one slot for each rank, filled where that rank's numbers are in the sum. What has
# just arrived has a red frame. After the first three rounds, the reduce-scatter is done: every rank has one complete part of
# the sum, its own. The other three rounds only hand the parts around.
#
# - **ZeRO-1** stops in the middle. A rank has its part of the summed gradient, updates its part of the weights with its part
#   of the optimizer states, and then the *weights* are handed around instead of the gradients.
# - **ZeRO-2** does the same, but keeps only its part of the gradient. With several micro-batches in a step, it has to reduce
#   in each of them, because there is no whole gradient to add up in. DDP and ZeRO-1 add up at home, and reduce once a step.
# - **ZeRO-3** gathers a layer's weights just before they are used, and frees them afterwards: once in the forward pass, and
#   once more in the backward pass of each micro-batch. In each micro-batch it also reduces. No weights are handed around
#   after the step.
# - **Hybrid** does what ZeRO-3 does among the ranks of a node. Once a step, each rank averages *its shard* of the gradient
#   with the ranks in the same place on the other nodes, by an all-reduce.

# %% [markdown]
# **Predict:** 7.5 billion parameters on 64 ranks, weights and gradients in 16 bits. How many GB does a rank send in a step
# with ZeRO-3, if it sends 29.5 GB with DDP?

# %% nbgrader={"grade": false, "grade_id": "16-predict-zero3-sent", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sent by ZeRO-3", None, unit="GB")

# %% [markdown]
# **Predict:** the same model on 8 nodes of 8 ranks. How many GB leave a node in a step with hybrid sharding? (With DDP, 29.5
# GB leave it: one ring goes through all ranks, node after node, so what a rank sends to the next node is what leaves its own.)

# %% nbgrader={"grade": false, "grade_id": "16-predict-hybrid-crossed", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("leaving a node with hybrid", None, unit="GB")

# %% [markdown]
# [[exercise 16-volume]]
#
# `method` is "ddp", "zero1", "zero2", "zero3" or "hybrid". There are `n_nodes * ranks_per_node` ranks. A step consists of
# `n_micro` micro-batches. Weights and gradients are kept and sent in 16 bits. All collectives are rings.
#
# - `mesh_shape(...)` returns two numbers, `(replicas, shards)`: how many groups of ranks hold the same optimizer states,
#   and over how many ranks each group cuts them. This is the mesh that PyTorch's `fully_shard` is given.
# - `bytes_kept(...)`: bytes of weights, gradients and optimizer states on one rank (16 bytes a parameter in all).
# - `bytes_sent(...)` returns two numbers: the bytes that one rank sends in a step, within its node and to others, and the bytes
#   that leave one node in a step. A ring through all ranks visits one node after the other, so it leaves each node over one
#   link. In hybrid sharding, each rank of a node has a ring of its own to the other nodes. With one node, nothing leaves it.
# - `deepspeed_config(...)` returns the configuration as a dictionary: `"train_batch_size"` (all ranks, all micro-batches),
#   `"train_micro_batch_size_per_gpu"`, `"gradient_accumulation_steps"`, `"bf16": {"enabled": True}`, and
#   `"zero_optimization": {"stage": ...}`, where stage 0 is DDP. It is not asked for "hybrid", which DeepSpeed removed in 2026.
#
# You may assume that all divisions come out even.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Count **passes**: a reduce-scatter or an all-gather of $S$ bytes among $n$ ranks is one pass, and costs each rank
# $(n-1)/n \cdot S$ bytes. How many passes does each method need in a step?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# DDP 2, ZeRO-1 2, ZeRO-2 one for each micro-batch and one for the weights, ZeRO-3 three for each micro-batch. For hybrid,
# $n$ is the number of ranks of a node, and the all-reduce between nodes is among `n_nodes` ranks, of a shard.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Between the nodes, each rank of a node sends $2 \frac{N-1}{N} \cdot \frac{S}{m}$ bytes with $N$ nodes of $m$ ranks. All $m$
# ranks of the node together send $2\frac{N-1}{N}S$, and this is what leaves the node.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-volume", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mesh_shape(method: str, n_nodes: int, ranks_per_node: int) -> tuple[int, int]:
    """How many replicas there are, and over how many ranks each of them is cut."""
    ### BEGIN SOLUTION
    n = n_nodes * ranks_per_node
    return {"ddp": (n, 1), "hybrid": (n_nodes, ranks_per_node)}.get(method, (1, n))
    ### END SOLUTION


def bytes_kept(method: str, n_params: int, n_nodes: int, ranks_per_node: int) -> float:
    """Bytes of weights, gradients and optimizer states on one rank."""
    ### BEGIN SOLUTION
    _, n = mesh_shape(method, n_nodes, ranks_per_node)
    weights, grads, states = 2 * n_params, 2 * n_params, 12 * n_params
    if method != "ddp":
        states /= n
    if method not in ("ddp", "zero1"):
        grads /= n
    if method in ("zero3", "hybrid"):
        weights /= n
    return weights + grads + states
    ### END SOLUTION


def bytes_sent(
    method: str, n_params: int, n_nodes: int, ranks_per_node: int, n_micro: int = 1
) -> tuple[float, float]:
    """Bytes that one rank sends in a step, and bytes that leave one node in a step."""
    ### BEGIN SOLUTION
    n = ranks_per_node if method == "hybrid" else n_nodes * ranks_per_node
    passes = {"ddp": 2, "zero1": 2, "zero2": n_micro + 1}.get(method, 3 * n_micro)
    sent = passes * (n - 1) / n * 2 * n_params
    if method != "hybrid":
        return sent, sent if n_nodes > 1 else 0
    between = 2 * (n_nodes - 1) / n_nodes * 2 * n_params
    return sent + between / n, between
    ### END SOLUTION


def deepspeed_config(
    method: str, n_nodes: int, ranks_per_node: int, micro_batch: int, n_micro: int
) -> dict:
    """The configuration that makes DeepSpeed train like this."""
    ### BEGIN SOLUTION
    return {
        "train_batch_size": micro_batch * n_micro * n_nodes * ranks_per_node,
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": n_micro,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": ("ddp", "zero1", "zero2", "zero3").index(method)},
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-volume-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("16-volume", mesh_shape, bytes_kept, bytes_sent, deepspeed_config)

# %% [markdown]
# The example of the ZeRO paper, by your functions, with the runs that the prediction asked for:

# %%
METHODS = ("ddp", "zero1", "zero2", "zero3", "hybrid")
if written(bytes_kept, bytes_sent):
    print("7.5 B parameters, 8 nodes of 8   kept       sent   leaving a node")
    for method in METHODS:
        kept_gb = float(bytes_kept(method, 7_500_000_000, 8, 8)) / 1e9
        sent_gb, crossed_gb = (float(n) / 1e9 for n in bytes_sent(method, 7_500_000_000, 8, 8, 1))
        print(f"{method:28}{kept_gb:6.1f} GB  {sent_gb:6.1f} GB  {crossed_gb:6.1f} GB")
        if method == "zero3":
            guesses.settle("sent by ZeRO-3", sent_gb)
        if method == "hybrid":
            guesses.settle("leaving a node with hybrid", crossed_gb)

# %% [markdown]
# <details><summary>Check your predictions</summary>
#
# ZeRO-3 sends 44.3 GB: three passes where DDP has two. With hybrid sharding, 26.25 GB leave a node, *fewer* than with DDP:
# one all-reduce of the gradient, but its ring has 8 places instead of 64, so each node keeps an eighth for itself. The
# three passes of ZeRO-3 stay inside the node, where bandwidth is cheap. The price is memory: 15 GB a rank instead of 1.9.
#
# </details>

# %% tags=["figure"]
labkit.figures.sharding_sliders(bytes_kept, bytes_sent)

# %% [markdown]
# Left: memory on a rank by method, with a line at 80 GB. Right: what a rank sends in a step. Move the sliders: from how many
# ranks on does ZeRO-1 fit with 18 billion parameters? What happens to the right-hand side when you take more ranks? (There are
# no sliders on a printed page. It shows 7.5 billion parameters on 64 ranks.)
#
# ### From which size on does communication dominate?
#
# For $\Psi$ parameters and $T$ tokens, a rank computes $6 \Psi T$ FLOPs in a step, or $8 \Psi T$ if it computes each layer's
# forward pass twice (lab 05). It sends a multiple of $\Psi$ bytes. So $\Psi$ cancels: what counts is the number of tokens a
# rank has in a step. But the memory that is left for tokens shrinks while the model grows, and each token needs more of it.
# The figure takes 64 GPUs of 80 GB in 8 nodes, each with 400 TFLOP/s in practice. A GPU sends 200 GB/s, and 50 GB/s leave a
# node. The model keeps only the input of each layer, so a step takes $8 \Psi T$ FLOPs.

# %% tags=["figure"]
labkit.figures.tokens_that_hide(bytes_kept, bytes_sent)

# %% [markdown]
# The falling curves show how many tokens fit into what your `bytes_kept` leaves free. The dashed lines of the same colour
# show how many tokens a rank needs to compute for as long as your `bytes_sent` take. (DDP and ZeRO-1
# send the same, so their lines are one.) A dot marks where a curve falls below its line: from this size on communication
# dominates, however well it overlaps. Past the end of a curve the model does not fit at all.
#
# **In practice** the same choices are one line each:
#
# | method | PyTorch | DeepSpeed | `TrainingArguments` |
# |---|---|---|---|
# | ZeRO-1 | `ZeroRedundancyOptimizer` | stage 1 | `deepspeed="ds.json"` |
# | ZeRO-2 | `fully_shard(..., reshard_after_forward=False)` | stage 2 | `fsdp="shard_grad_op"` |
# | ZeRO-3 | `fully_shard(...)` | stage 3 | `fsdp="full_shard"` |
# | hybrid | `fully_shard(..., mesh=init_device_mesh("cuda", (8, 8)))` | none | `fsdp="hybrid_shard"` |
#
# These are the `TrainingArguments` of PyTorch's first FSDP. DeepSpeed's nearest to hybrid sharding is ZeRO++: stage 3 over all
# ranks, with a second copy of the weights cut over the `"zero_hpz_partition_size"` ranks of a node, from which the backward pass
# gathers.
#
# <details><summary>A question on the side: which scale does this DeepSpeed line lead to?</summary>
#
# `"fp16": {"enabled": true, "initial_scale_power": 16, "loss_scale_window": 1000, "hysteresis": 2}`, with overflows in steps 10, 500
# and 501 and in no others. The scale goes $2^{16} \to 2^{16} \to 2^{15} \to 2^{14}$, and about 1000 steps later back to $2^{15}$.
# Each overflow skips its step, but with a hysteresis of 2 the first one leaves the scale as it is, and every further one halves
# it. After 1000 steps without an overflow the scale doubles, and only then is a first overflow forgiven again.
#
# </details>

# %% [markdown]
# **Another machine: four cards of 8 GB in a basement**, behind four lanes of PCIe 3.0 each (3.9 GB/s; an assumption). Which methods
# fit 1.1 billion parameters, and in which order do they stand if a step has 8 micro-batches?

# %%
if written(bytes_kept, bytes_sent):
    for method in METHODS[:4]:
        kept_gb = float(bytes_kept(method, 1_100_000_000, 1, 4)) / 1e9
        seconds = float(bytes_sent(method, 1_100_000_000, 1, 4, 8)[0]) / 3.9e9
        print(f"{method:8} keeps {kept_gb:5.2f} GB of 8, sends for {seconds:5.2f} s in a step")

# %% [markdown]
# <details><summary>What the table says</summary>
#
# DDP does not fit. ZeRO-1 sends for 0.85 s, but leaves 0.3 GB for everything else. ZeRO-2 leaves 1.95 GB and sends for 3.8 s,
# ZeRO-3 leaves 3.6 GB and sends for 10.2 s, because micro-batches multiply its passes. The order by memory is the reverse of the
# order by traffic. On this machine the way out is ZeRO-2 with fewer and larger micro-batches, not ZeRO-3.
#
# </details>

# %% [markdown]
# ## Put the optimizer between the two halves
#
# The all-reduce of DDP hands *every* rank the *whole* averaged gradient, and then every rank computes the same update of the
# same weights. With AdamW it keeps 12 of 16 bytes a parameter for this. ZeRO-1 lets rank $r$ update the $r$-th part of the
# weights only:
#
# $$\text{gradients} \;\xrightarrow{\text{reduce-scatter}}\; \text{part } r \text{ of their mean}
# \;\xrightarrow{\text{optimizer}}\; \text{part } r \text{ of the new weights}
# \;\xrightarrow{\text{all-gather}}\; \text{new weights}$$
#
# These are the two halves of the all-reduce, with the optimizer between them. To cut all parameters at once, put them into
# one flat tensor. Its $N$ elements rarely divide by $n$, so it is filled up with zeros to a multiple of $n$. The last ranks
# may then own nothing but zeros.

# %% [markdown]
# **Predict:** five parameters of one element each on 4 ranks. How many of them does rank 2 own, if all parts are equally long
# and filled up at the end?

# %% nbgrader={"grade": false, "grade_id": "16-predict-last-shard", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("elements of rank 2", None)

# %% [markdown]
# [[exercise 16-zero1]]
#
# Write the class `ZeRO1`. It is used like an optimizer: `step()` reads `.grad` of all parameters, and leaves the new weights
# in them, in place. All ranks begin with the same weights.
#
# - `make_optimizer(parameters)` makes the optimizer (SGD with momentum, or AdamW) of a list of tensors. Give it this rank's
#   part alone.
# - The gradient is the mean over the ranks. A parameter whose `.grad` is None counts as one with a gradient of zeros.
# - A step has two collective calls, and sends what DDP sends: `comm.reduce_scatter_single(output, input, op="avg")` and
#   `comm.all_gather_single(output, input)`. (Before PyTorch 2.13 they were called `reduce_scatter_tensor` and
#   `all_gather_into_tensor`; `comm` knows both names.)
#
# The check looks at the weights, at the bytes that were sent, at the bytes of the optimizer states, and at what a rank holds
# between two steps. By then, no flat copy of everything should be left beside the parameters, nor a view that keeps it alive.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The optimizer needs a tensor of its own, with the weights of this rank's part, and you set its `.grad`. After the optimizer's
# step this tensor holds new weights, while the model's parameters are still the old ones.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A part has $\lceil N/n \rceil$ elements. Write one function that puts a list of tensors into a flat one and fills it up, and
# use it for the weights at the start and for the gradients in each step.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In `__init__`: `self.shard = self.flat(params)[rank * size : (rank + 1) * size].clone()`. In `step`:
# `self.shard.grad = torch.empty_like(self.shard)`, the reduce-scatter into it, the optimizer's step, the all-gather from
# `self.shard` into a flat tensor, and `p.copy_(part.view_as(p))` for each part of `flat.split([...])`, under
# `torch.no_grad()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-zero1", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ZeRO1:
    def __init__(self, params: Sequence[Tensor], comm: Comm, make_optimizer: Callable) -> None:
        """Cut this rank's part out of the weights, and make the optimizer of that part."""
        self.params, self.comm = list(params), comm
        ### BEGIN SOLUTION
        n_elements = sum(p.numel() for p in self.params)
        self.size = -(-n_elements // comm.world_size)
        self.n_zeros = self.size * comm.world_size - n_elements
        start = comm.rank * self.size
        weights = self.flat([p.detach() for p in self.params])
        self.shard = weights[start : start + self.size].clone()
        self.optimizer = make_optimizer([self.shard])

    def flat(self, tensors: list[Tensor]) -> Tensor:
        return F.pad(torch.cat([tensor.flatten() for tensor in tensors]), (0, self.n_zeros))
        ### END SOLUTION

    @torch.no_grad()
    def step(self) -> None:
        """Average the gradients, update this rank's part, and hand the new weights to all ranks."""
        ### BEGIN SOLUTION
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.params]
        whole = self.flat(grads)
        self.shard.grad = torch.empty_like(self.shard)
        self.comm.reduce_scatter_single(self.shard.grad, whole, op="avg")
        self.optimizer.step()
        self.comm.all_gather_single(whole, self.shard)
        sizes = [p.numel() for p in self.params]
        for p, new in zip(self.params, whole.split([*sizes, self.n_zeros])):
            p.copy_(new.view_as(p))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-zero1-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("16-zero1", ZeRO1)

# %% [markdown]
# The model of the opening on four real ranks, three steps each: with an all-reduce and a whole AdamW, and with your class.
# The bytes are counted on the wire.

# %%
ways = {"DDP": AllReduced}
if written(ZeRO1):
    ways["ZeRO-1, yours"] = ZeRO1
trained = {name: three_steps(way, n_ranks=4) for name, way in ways.items()}
for name, one in trained.items():
    counts = f"sent by a rank {one.sent:>8,} B   optimizer states {one.states:>7,} B"
    print(f"{name:14} loss {one.loss:.5f}   {counts}")
part = -(-5 // 4)
guesses.settle("elements of rank 2", min(part, 5 - 2 * part))

# %% [markdown]
# The same loss and, but for the few zeros that fill up the flat tensor, the same bytes on the wire. The states are a quarter.
#
# <details><summary>Check your prediction</summary>
#
# One. A part has $\lceil 5/4 \rceil = 2$ elements: ranks 0 and 1 own two, rank 2 owns one and a zero, and rank 3 owns nothing.
#
# </details>
#
# **In practice:** `torch.distributed.optim.ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW)`
# around the parameters of a DDP model. It deals whole parameters to ranks, so DDP still all-reduces the gradients, and the
# new weights travel on top of that: it saves the memory, and sends half as much again.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Cut the gradients while they come
#
# After the reduce-scatter, a rank needs only its part of the gradient. But in ZeRO-1 the whole gradient is still there when
# the backward pass ends, 2 of the 16 bytes a parameter on every rank. ZeRO-2 never lets it become whole: in the hook of each
# parameter, as in lab 15, its gradient is reduce-scattered and freed. What stays is a part of each gradient.
#
# The price shows with several micro-batches. There is no whole gradient to add up in, so each micro-batch has to
# reduce-scatter, and the rank adds up its *parts*.

# %% [markdown]
# **Predict:** four micro-batches in a step. By which factor do the bytes that a rank sends grow from ZeRO-1 to ZeRO-2?

# %% nbgrader={"grade": false, "grade_id": "16-predict-zero2-micro", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes, ZeRO-1 to ZeRO-2", None, unit="times")

# %% [markdown]
# [[exercise 16-zero2]]
#
# Write the class `ZeRO2`. It is used like `ZeRO1`, but several backward passes may come before a `step()`; their gradients
# add up.
#
# - Cut each parameter for itself, filled up with zeros to a multiple of $n$: then its gradient can leave as soon as it is
#   there. `make_optimizer` gets the list of all parts.
# - In the hook of a parameter, its gradient is reduce-scattered (mean over the ranks), and `parameter.grad` becomes None.
#   `rows(tensor)` is given.
# - `step()` updates the parts, gathers the new weights, and clears the parts' gradients. A parameter whose hook never ran
#   counts as one with a gradient of zeros.
#
# The ranks compute the same parameters in the same order. The check looks at the weights, at the bytes that were sent, and at
# what each rank holds after the backward pass and between steps.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `parameter.register_post_accumulate_grad_hook(fn)` calls `fn(parameter)` when `parameter.grad` is complete.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Keep a dictionary from parameter to part. In the hook: `received` is a new tensor like the part; after the reduce-scatter,
# add it to the part's `.grad`, or make it the part's `.grad` if there is none yet.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Take `self.rows(p.detach())[comm.rank].clone()` as the part of `p`,
# `comm.reduce_scatter_single(received, self.rows(p.grad), op="avg")` in the hook, and `comm.all_gather_single(whole, part)`
# with `whole = torch.empty(n, len(part))` in `step`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-zero2", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ZeRO2:
    def __init__(self, params: Sequence[Tensor], comm: Comm, make_optimizer: Callable) -> None:
        """Cut this rank's part out of each parameter, make their optimizer, and register the hooks."""
        self.params, self.comm = list(params), comm
        ### BEGIN SOLUTION
        self.parts = {p: self.rows(p.detach())[comm.rank].clone() for p in self.params}
        self.optimizer = make_optimizer(list(self.parts.values()))
        for p in self.params:
            p.register_post_accumulate_grad_hook(self.reduce)
        ### END SOLUTION

    def rows(self, tensor: Tensor) -> Tensor:
        """The tensor filled up with zeros, with a row for each rank."""
        n = self.comm.world_size
        return F.pad(tensor.flatten(), (0, -tensor.numel() % n)).view(n, -1)

    def reduce(self, p: Tensor) -> None:
        """The hook of a parameter: its gradient is complete, and leaves."""
        ### BEGIN SOLUTION
        part = self.parts[p]
        received = torch.empty_like(part)
        self.comm.reduce_scatter_single(received, self.rows(p.grad), op="avg")
        p.grad = None
        part.grad = received if part.grad is None else part.grad + received
        ### END SOLUTION

    @torch.no_grad()
    def step(self) -> None:
        """Update this rank's parts with what has come in, and hand the new weights to all ranks."""
        ### BEGIN SOLUTION
        for part in self.parts.values():
            if part.grad is None:
                part.grad = torch.zeros_like(part)
        self.optimizer.step()
        for p, part in self.parts.items():
            whole = torch.empty(self.comm.world_size, len(part))
            self.comm.all_gather_single(whole, part)
            p.copy_(whole.flatten()[: p.numel()].view_as(p))
            part.grad = None
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-zero2-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("16-zero2", ZeRO2)

# %% [markdown]
# The three on four real ranks, with four micro-batches in each step. The gradients are counted when the backward pass has
# ended:

# %%
ways = {"DDP": AllReduced}
ways |= {"ZeRO-1": ZeRO1} if written(ZeRO1) else {}
ways |= {"ZeRO-2": ZeRO2} if written(ZeRO2) else {}
trained = {name: three_steps(way, n_ranks=4, n_micro=4) for name, way in ways.items()}
for name, one in trained.items():
    print(f"{name:7} loss {one.loss:.5f}   sent by a rank {one.sent:>8,} B")
if {"ZeRO-1", "ZeRO-2"} <= trained.keys():
    guesses.settle("bytes, ZeRO-1 to ZeRO-2", trained["ZeRO-2"].sent / trained["ZeRO-1"].sent)

# %% tags=["figure"]
labkit.figures.held_by_stage(trained)

# %% [markdown]
# Bytes that a rank holds, from your own classes. (In float32 the weights are their own master weights, so a parameter costs 4
# + 4 + 8 bytes.) ZeRO-1 and ZeRO-2 keep a copy of their own part of the weights beside the whole ones.
#
# <details><summary>Check your prediction</summary>
#
# 2.5: ZeRO-1 makes two passes in a step, and ZeRO-2 makes one for each of the four micro-batches and one for the weights.
# This is why stage 2 is rarely used together with gradient accumulation.
#
# </details>

# %% [markdown]
# ## Gather a layer, use it, free it
#
# The weights are still whole on every rank. But a layer's weight is used twice in a step only: in its forward pass, and in
# its backward pass. In between it can be a shard, as long as it becomes whole in time.

# %% tags=["figure"]
labkit.figures.layer_through_time(n_ranks=4)

# %% [markdown]
# One layer's weight (blue) and gradient (orange; pale while it comes from the rank's own rows alone) on four ranks. Read it from left to right: each rank keeps a quarter. An
# all-gather makes the weight whole, the forward pass uses it, and it is freed. While other layers have their turn, a rank holds
# a quarter again. In the backward pass the weight is gathered again, since $\partial L / \partial x = \partial L / \partial y \, W$
# needs it. The reduce-scatter turns each rank's own whole gradient into a quarter of the mean.

# %% [markdown]
# **Predict:** 32 layers of 400 MB each (in the precision in which they are gathered) on 8 ranks. How many GB of weights does a
# rank hold at most in the forward pass, if each layer is freed before the next one is gathered?

# %% nbgrader={"grade": false, "grade_id": "16-predict-fsdp-peak", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("weights at the peak", None, unit="GB")

# %% [markdown]
# [[exercise 16-fsdp-unit]]
#
# Write `ShardedLinear`, an autograd function for $y = x W^\top$. `shard` is this rank's part of $W$: the weight of shape
# `(n_out, n_in)` in one row, filled up with zeros to a multiple of $n$, and cut into $n$ equal parts.
#
# - `forward` gathers the weight and uses it. Afterwards nothing refers to it: only `x` and the shard are kept.
#   `gathered(shard, comm, (n_out, n_in))` is given.
# - `backward` gathers it again, and returns the gradients of `x` and of the shard. That of the shard is this rank's part of the
#   mean over the ranks. It returns None for the other arguments.
# - A frozen weight needs no gradient, so nothing is reduced for it: `ctx.needs_input_grad[1]` is False then.
#
# The check looks at the values, at calls and bytes, and at what each rank holds after the forward and after the backward pass.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `ctx.save_for_backward(x, shard)`, and not the weight. The gradient of the whole weight is $(\partial L/\partial y)^\top x$.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Both passes call `gathered`, and no attribute of `ctx` keeps what it returns. What `backward` needs beside the tensors, such as
# `comm`, may be an attribute of `ctx`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In `backward`: `whole = grad_y.T @ x`, flatten it, `F.pad` it to `n * len(shard)`, and
# `comm.reduce_scatter_single(grad_shard, whole, op="avg")` into `grad_shard = torch.empty_like(shard)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-fsdp-unit", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ShardedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, shard: Tensor, comm: Comm, n_out: int, n_in: int) -> Tensor:
        """x times the transposed weight, which is whole only in here."""
        ### BEGIN SOLUTION
        ctx.save_for_backward(x, shard)
        ctx.comm, ctx.shape = comm, (n_out, n_in)
        return x @ gathered(shard, comm, ctx.shape).T
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_y: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of x and of the shard."""
        ### BEGIN SOLUTION
        x, shard = ctx.saved_tensors
        grad_x = grad_y @ gathered(shard, ctx.comm, ctx.shape)
        grad_shard = None
        if ctx.needs_input_grad[1]:
            whole = (grad_y.T @ x).flatten()
            n_zeros = len(shard) * ctx.comm.world_size - len(whole)
            grad_shard = torch.empty_like(shard)
            ctx.comm.reduce_scatter_single(grad_shard, F.pad(whole, (0, n_zeros)), op="avg")
        return grad_x, grad_shard, None, None, None
        ### END SOLUTION


def gathered(shard: Tensor, comm: Comm, shape: tuple[int, int]) -> Tensor:
    """The whole weight, from the shards of all ranks and without the zeros at its end."""
    whole = torch.empty(comm.world_size * len(shard))
    comm.all_gather_single(whole, shard)
    return whole[: shape[0] * shape[1]].view(shape)


# %% nbgrader={"grade": true, "grade_id": "16-fsdp-unit-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("16-fsdp-unit", ShardedLinear)

# %% [markdown]
# Eight layers on four simulated ranks, with your function. What a rank holds is read after each layer, on the way there and
# back:

# %%
held = held_between_layers(ShardedLinear, n_layers=8, n_ranks=4) if written(ShardedLinear) else {}
guesses.settle("weights at the peak", 32 * 0.4 / 8 + 0.4)

# %% tags=["figure"]
labkit.figures.held_through_layers(held) if held else None

# %% [markdown]
# The lower line is your function; the upper one keeps each gathered weight for the backward pass, as autograd does if you let it.
# Yours grows only by the activations on the way there, and by a quarter of each gradient on the way back.
#
# <details><summary>Check your prediction</summary>
#
# 2.0 GB: an eighth of all 32 layers, 1.6 GB, and the 0.4 GB of the one that is gathered. (The gathered weight is a new
# tensor: a rank keeps its shard of that layer, too.) If every layer stayed whole, it would be 12.8 GB.
#
# </details>

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Shard a whole model
#
# A model becomes sharded unit by unit; a unit is usually one transformer block. Three things are new against the single layer.
#
# - **Any module.** You do not write the backward pass of a block by hand. Let autograd record the block as usual, but do not let
#   it keep the gathered weights. `torch.autograd.graph.saved_tensors_hooks(pack, unpack)` lets you decide: what autograd
#   wants to keep goes through `pack`, and what it needs in the backward pass comes from `unpack`.
# - **16-bit communication, 32-bit masters.** The shard stays in float32, and so do the optimizer's states. The shard is converted
#   to `param_dtype` *before* it is gathered, which halves the bytes. Gradients come in `param_dtype` and are converted to
#   `reduce_dtype` before they are reduced: bfloat16 has 8 bits of precision, and the
#   mean of many ranks' gradients loses much in so few (lab 02).
# - **Tied and frozen weights.** Weights that layers of one unit share are kept once. A frozen unit is gathered, but not reduced.

# %% [markdown]
# **Predict:** with `param_dtype=torch.bfloat16` and `reduce_dtype=torch.float32`, how many bytes a parameter does a rank send in a
# step, on many ranks? (DDP in float32: 8.)

# %% nbgrader={"grade": false, "grade_id": "16-predict-fsdp-bytes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes a parameter", None, unit="bytes")

# %% [markdown]
# [[exercise 16-fsdp]]
#
# Write `Sharded`, which wraps a module of one argument.
#
# - `Sharded(module, comm, param_dtype, reduce_dtype)` has one parameter, the **shard**. All of `module.parameters()` are put in
#   one row and cut into $n$ parts; this is given. Keep this rank's part, in float32. It is frozen if the module is (all of its
#   parameters are, or none).
# - `unit(x)` gathers in `param_dtype`, runs the module, and frees. `x` and the output have this dtype, too. In the backward
#   pass the unit gathers *once* more, and frees again when it is done. The mean of the gradients, reduced in `reduce_dtype`, ends in the shard's `.grad`.
# - Autograd must not keep what was gathered, and nothing else may: between two units, a rank has shards alone.
#
# `torch.func.functional_call(module, params, (x,))` runs a module with the tensors of a dictionary `params` in place of its
# parameters. The dictionary is `self.named(whole)`.
#
# Begin `forward` with `whole, x = Entrance.apply(self.shard, x, self)`. `Entrance` is an autograd function at the unit's entrance:
# its backward pass is run when all of the unit's is done, and gets the gradients of the gathered row and of `x`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What autograd keeps of the gathered weights are views of one tensor. You can recognize them by their storage, and describe them
# by size, stride and offset, without keeping them.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In `pack`, a tensor whose `untyped_storage().data_ptr()` is that of the gathered weights is replaced by its size, stride and
# storage offset. In `unpack`, gather if it has not been done in this backward pass, and return
# `again.as_strided(size, stride, offset)`. The entrance's backward sets `again` to None.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `self.shard = nn.Parameter(rows[comm.rank].clone(), requires_grad=trains)`: without `clone()` it is a view that keeps all rows.
# In the entrance's forward, `return whole, x.view_as(x)`, and for a frozen shard `ctx.mark_non_differentiable(whole)` before it. In
# its backward, reduce-scatter `grad_whole.to(unit.reduce_dtype)` into a tensor of the shard's length.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-fsdp", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Sharded(nn.Module):
    def __init__(
        self,
        module: nn.Module,
        comm: Comm,
        param_dtype: torch.dtype = torch.bfloat16,
        reduce_dtype: torch.dtype = torch.float32,
    ) -> None:
        """Keep this rank's part of the module's weights, and free the module's own."""
        super().__init__()
        self.comm, self.param_dtype, self.reduce_dtype = comm, param_dtype, reduce_dtype
        params = dict(module.named_parameters())
        self.shapes = {name: p.shape for name, p in params.items()}
        row = torch.cat([p.detach().flatten() for p in params.values()])
        rows = F.pad(row, (0, -len(row) % comm.world_size)).view(comm.world_size, -1)
        trains = any(p.requires_grad for p in params.values())
        ### BEGIN SOLUTION
        self.shard = nn.Parameter(rows[comm.rank].clone(), requires_grad=trains)
        ### END SOLUTION
        # The module's own weights are freed. In a list, because nn.Module would register the module's parameters as well.
        for p in params.values():
            p.data = p.data.new_empty(0)
        self.inner = [module]
        self.again = None  # what this unit has gathered for its backward pass

    def named(self, whole: Tensor) -> dict[str, Tensor]:
        """The gathered row as the module's parameters, which are views of it."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = whole[: sum(sizes)].split(sizes)
        return {name: part.view(self.shapes[name]) for name, part in zip(self.shapes, parts)}

    def gather(self) -> Tensor:
        """The whole row in param_dtype, with the zeros at its end."""
        ### BEGIN SOLUTION
        mine = self.shard.detach().to(self.param_dtype)
        whole = torch.empty(self.comm.world_size * len(mine), dtype=mine.dtype)
        self.comm.all_gather_single(whole, mine)
        return whole
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """The module's output; its weights are whole only until it is there."""
        ### BEGIN SOLUTION
        whole, x = Entrance.apply(self.shard, x, self)
        place = whole.untyped_storage().data_ptr()

        def pack(kept: Tensor) -> Tensor | tuple:
            if kept.untyped_storage().data_ptr() != place:
                return kept
            return kept.size(), kept.stride(), kept.storage_offset()

        def unpack(kept: Tensor | tuple) -> Tensor:
            if isinstance(kept, Tensor):
                return kept
            if self.again is None:
                self.again = self.gather()
            return self.again.as_strided(*kept)

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return torch.func.functional_call(self.inner[0], self.named(whole), (x,))
        ### END SOLUTION


class Entrance(torch.autograd.Function):
    """Stands before a unit, so its backward pass runs when all of the unit's is done."""

    @staticmethod
    def forward(ctx, shard: Tensor, x: Tensor, unit: Sharded) -> tuple[Tensor, Tensor]:
        """The gathered row, and x."""
        ### BEGIN SOLUTION
        ctx.unit = unit
        whole = unit.gather()
        if not shard.requires_grad:
            ctx.mark_non_differentiable(whole)
        return whole, x.view_as(x)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_whole: Tensor, grad_x: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the shard and of x."""
        ### BEGIN SOLUTION
        unit = ctx.unit
        unit.again = None
        if not ctx.needs_input_grad[0]:
            return None, grad_x, None
        mine = torch.empty(len(unit.shard), dtype=unit.reduce_dtype)
        unit.comm.reduce_scatter_single(mine, grad_whole.to(unit.reduce_dtype), op="avg")
        return mine.to(unit.shard.dtype), grad_x, None
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-fsdp-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("16-fsdp", Sharded)

# %% [markdown]
# Six units on four simulated ranks with a virtual clock: each computes 10 ms forward and 20 ms backward, and its weights take
# 6 ms to gather. Its gradient is reduced in bfloat16 here, so that takes 6 ms as well. These are the calls of your class on
# rank 0:

# %%
spans = unit_timeline(Sharded, n_units=6, n_ranks=4) if written(Sharded) else None
guesses.settle("bytes a parameter", 2 + 2 + 4)

# %% tags=["figure"]
labkit.figures.fsdp_timeline(spans) if spans else None

# %% [markdown]
# While the network gathers, the rank waits, and while it computes, the network is idle. The violet area was measured on your
# class: how many units' gathered weights there are. It should never be more than one. Each gather could begin while the unit
# before it is still computing, at the price of two units that are whole at the same time: this is **prefetching**.
#
# <details><summary>Check your prediction</summary>
#
# 8 bytes: two gathers of 2 bytes and one reduction of 4. This is as much as DDP sends in float32, where weights and gradients
# have 4 bytes. With DDP in 16 bits it would be 4, and with `reduce_dtype=torch.bfloat16` ZeRO-3 sends 6.
#
# </details>
#
# **In practice** you call `fully_shard(block, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16,
# reduce_dtype=torch.float32))` on each block, and then on the model for what is left. It frees the storage of the gathered tensor
# (`untyped_storage().resize_(0)`) instead of packing views of it, cuts each parameter along its first dimension instead of one
# long row, and prefetches.

# %% [markdown]
# ## Clip what nobody holds as a whole
#
# Clipping multiplies the gradient by $\min(1, c / \|g\|)$, and needs the norm of *all* of it. Now each rank has a shard.
# Small parameters, such as the scales of norms, are often left whole on every rank: these are **replicated**.
#
# $$\|g\|^2 = \sum_{r=0}^{n-1} \|g_{\text{shard},\,r}\|^2 + \|g_\text{replicated}\|^2$$

# %% [markdown]
# **Predict:** 64 ranks, all shards of the same norm, nothing replicated. Every rank clips by the norm of its own shard. How
# many times as large as allowed is the whole gradient afterwards?

# %% nbgrader={"grade": false, "grade_id": "16-predict-own-norm", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("norm after clipping by shards", None, unit="times")

# %% [markdown]
# [[exercise 16-clip]]
#
# Write `clip_sharded`. `sharded` are this rank's parts and `replicated` what all ranks hold, with the same gradients on all.
# It multiplies all gradients in place, and returns the norm from before. One collective call, of one number, is allowed.
#
# A part may be empty; its `.grad` is None then. Gradients may be in bfloat16, with 8 bits of precision: compute the norm in
# float32.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Squares can be added up, norms cannot.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Add up the squares of this rank's parts at home, all-reduce this one number, and then add the squares of what is replicated.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `squares = sum((p.grad.float().square().sum() for p in sharded if p.grad is not None), torch.zeros(()))`, and
# `factor = torch.clamp(max_norm / norm, max=1.0)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-clip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clip_sharded(
    comm: Comm, sharded: Sequence[Tensor], replicated: Sequence[Tensor], max_norm: float
) -> Tensor:
    """Clip all gradients to max_norm, in place; the norm of the whole gradient before."""

    ### BEGIN SOLUTION
    def squares_of(params: Sequence[Tensor]) -> Tensor:
        grads = [p.grad.float() for p in params if p.grad is not None]
        return sum((grad.square().sum() for grad in grads), torch.zeros(()))

    squares = squares_of(sharded)
    comm.all_reduce(squares)
    norm = (squares + squares_of(replicated)).sqrt()
    factor = torch.clamp(max_norm / norm, max=1.0)
    for p in (*sharded, *replicated):
        if p.grad is not None:
            p.grad *= factor
    return norm
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-clip-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("16-clip", clip_sharded)

# %% [markdown]
# 64 simulated ranks with a shard each, clipped to 1 by the rank's own norm, and by your function:


# %%
def by_its_own_norm(comm, sharded, replicated, max_norm):
    return nn.utils.clip_grad_norm_([*sharded, *replicated], max_norm)


ways = {"each by its own norm": by_its_own_norm}
if written(clip_sharded):
    ways["yours"] = clip_sharded
for name, clip in ways.items():
    norm = norm_after(clip, n_ranks=64)
    print(f"{name:22} norm of the whole gradient after clipping to 1: {norm:.3f}")
    if clip is by_its_own_norm:
        guesses.settle("norm after clipping by shards", norm)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 8 times, $\sqrt{64}$: each shard ends with norm 1, and their squares add up to 64. And if the shards' norms differ, their
# factors differ too, so the gradient also points in another direction. No error is raised.
#
# </details>
#
# **In practice:** with `fully_shard`, `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)` does this by itself, since each
# gradient is a `DTensor` that knows how it is cut. With the older `FullyShardedDataParallel` you have to call
# `model.clip_grad_norm_(1.0)`. `TrainingArguments(max_grad_norm=1.0)` chooses the right one.

# %% [markdown]
# ## Hide the gathers
#
# This section is optional. A layer that is sharded has to travel before it can be used. If each layer is gathered at the moment
# it is needed, the GPU stands still while the weights travel, and the network stands still while the GPU computes. The
# figure shows one step of 4 layers: gathering a layer takes 3 ms, its forward pass 4 ms, its backward pass 8 ms, and reducing
# its gradient 4 ms.

# %% tags=["figure"]
labkit.figures.sharded_step()

# %% [markdown]
# Both can work at once, as copies and kernels did in lab 09: while the GPU computes with one layer, the next one travels. Two
# things limit this. The next layer needs memory, and with everything gathered in advance you would be back at a whole model
# on every rank. So **at most two layers may be whole at a time**: the one in use and the one that comes next. And the
# network carries one thing at a time, in the order in which you asked.
#
# **Predict:** the step takes 88 ms. The GPU is busy for 48 of them, the network for 40. In the best order, how many of the
# network's 40 ms stay visible, as time in which the GPU waits?

# %% nbgrader={"grade": false, "grade_id": "16-predict-visible-network", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("network time left visible", None, unit="ms")

# %% [markdown]
# [[exercise 16-prefetch]]
#
# Write `fsdp_order(n_layers)`. It returns the commands of one training step as a list of pairs, such as `("gather", 0)`:
#
# | command | runs on | takes | begins when |
# |---|---|---|---|
# | `("gather", i)` | network | gather time | the network is free, and the passes of all layers freed before it in the list are done |
# | `("forward", i)`, `("backward", i)` | GPU | the pass's time | the GPU is free and layer $i$ has arrived |
# | `("free", i)` | nowhere | nothing | at once: from here on the layer is not whole any more |
# | `("reduce", i)` | network | reduce time | the network is free and the backward pass of layer $i$ is done |
#
# - Network and GPU each take their commands in the order of your list. (A gather waits for freed layers' passes because it
#   writes into their memory.)
# - The passes run forward through layers 0 to $n-1$, and then backward through $n-1$ to 0. A pass needs its layer whole.
# - At each place of the list at most two layers are whole: gathered and not yet freed.
# - Each layer's gradient is reduced once. At the end no layer is whole.
#
# The check compares the time of your step with the shortest possible one, found by trying all orders. It may be 2 % longer,
# for networks that are faster than the GPU and for slower ones.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Where in the list can the gather of layer 2 first stand? It needs a place, and a place becomes free when layer 0 is freed.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Gather two layers at the start. After each pass, free its layer and gather the one after the next. The backward pass is the
# same, downwards, with two differences. The last two layers are still whole when it begins, so they need no second gather.
# And after each backward pass the network has two things to do: a pass waits for the gather, and nothing waits for the
# reduction.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Start with `("gather", 0), ("gather", 1)`. Forward, for each layer: `("forward", i)`, and for all but the last two also
# `("free", i), ("gather", i + 2)`. Backward, for each layer from the last: `("backward", i), ("free", i)`, then
# `("gather", i - 2)` if there is one, then `("reduce", i)`. A model of one layer has no layer 1 to gather.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-prefetch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fsdp_order(n_layers: int) -> list[tuple[str, int]]:
    """The commands of one training step of a sharded model, in order."""
    ### BEGIN SOLUTION
    order = [("gather", layer) for layer in range(min(2, n_layers))]
    for layer in range(n_layers):
        order.append(("forward", layer))
        if layer < n_layers - 2:
            order += [("free", layer), ("gather", layer + 2)]
    for layer in reversed(range(n_layers)):
        order += [("backward", layer), ("free", layer)]
        if layer >= 2:
            order.append(("gather", layer - 2))
        order.append(("reduce", layer))
    return order
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-prefetch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("16-prefetch", fsdp_order)

# %% tags=["figure"]
labkit.figures.sharded_step_player(fsdp_order)

# %% [markdown]
# Move the sliders: up to 4 ms, a gather takes no longer than a forward pass, and with a reduction (4 ms) no longer than a
# backward pass. Then everything hides but the first gather and the last reduction. Slower than that, the GPU waits for
# every layer.

# %%
if written(fsdp_order):
    guesses.settle("network time left visible", step_ms(fsdp_order) - 48)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 7 ms: the first gather (3 ms), before which there is nothing to compute, and the last reduction (4 ms), after which there
# is nothing left. Everything in between is hidden, and it stays 7 ms for a model of 100 layers. So ZeRO-3 can send 1.5 times
# the bytes of DDP and hardly take longer, as long as a layer travels faster than the GPU computes with it.
#
# </details>
#
# **In practice:** `fully_shard` gathers in this order by itself. It also holds back a gather until a layer has been freed, so
# that at most two are whole. `model.set_modules_to_forward_prefetch` and `set_modules_to_backward_prefetch` change what is
# gathered early, and `reshard_after_forward=False` keeps layers whole between their two passes. In the older
# `FullyShardedDataParallel` the choice is `backward_prefetch=BACKWARD_PRE`: the gather before the reduction.

# %% [markdown]
# ## Initialize a model that never exists whole
#
# This section is optional. A sharded model fits, but how does it come to be? `model = build()` draws all weights on every
# rank, before anything can be cut. A rank that has room for 1/64 of the model runs out of memory in its first line. On the
# **meta device**, `build()` makes tensors that have a shape and no memory. A module's own memory comes with
# `module.to_empty(device="cpu", recurse=False)`, and `module.reset_parameters()` draws its numbers.
#
# The catch is the random numbers. A run on 64 ranks should start from the same weights as a run on one, to the last bit, or
# you can never compare the two. Every module draws from one generator, in order. So which numbers belong to rank 5's part
# of layer 20 depends on everything that was drawn before it.
#
# [[exercise 16-meta-init]]
#
# Write `sharded_init(build, seed, rank, world_size)`. It returns a dict: for each name of `model.named_parameters()` this
# rank's part of it, flat. Of a parameter with $N$ elements, rank $r$ keeps elements $rk$ to $(r+1)k$ where $k$ is $N$ divided
# by the number of ranks, rounded up; so the last parts may be shorter, or empty.
#
# - The parts have the bits of `torch.manual_seed(seed); model = build()`.
# - `build()` makes its modules in the order of `model.modules()`, and each module with parameters of its own has
#   `reset_parameters()`, which draws what its `__init__` would.
# - At no time does a rank hold more than its parts and two layers: the one that is being drawn, and one that a variable of
#   your loop may still refer to. At the end it holds its parts alone.
# - No rank needs to send anything.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Random numbers are cheap, memory is not. Every rank can afford to draw all numbers of the model, as long as it does not
# keep them.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Build on the meta device, seed once, and walk through `model.named_modules()`. For a module with parameters of its own:
# make it real, draw it, copy this rank's parts, and send it back to the meta device. A slice of a tensor is a view, which
# keeps all of it alive.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `with torch.device("meta"): model = build()`, then for each module `module.to_empty(device="cpu", recurse=False)`,
# `module.reset_parameters()`, for each of `module.named_parameters(recurse=False)` the part
# `flat[rank * size : (rank + 1) * size].clone()` of `flat = parameter.detach().flatten()`, and
# `module.to_empty(device="meta", recurse=False)`. The name is `f"{path}.{name}"`, where the path of the model itself is empty.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-meta-init", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sharded_init(
    build: Callable[[], nn.Module], seed: int, rank: int, world_size: int
) -> dict[str, Tensor]:
    """This rank's parts of a model's initial parameters, of which only one layer exists at a time."""
    ### BEGIN SOLUTION
    with torch.device("meta"):
        model = build()
    torch.manual_seed(seed)
    shards = {}
    for path, module in model.named_modules():
        if not list(module.parameters(recurse=False)):
            continue
        module.to_empty(device="cpu", recurse=False)
        module.reset_parameters()
        prefix = f"{path}." if path else ""
        for name, parameter in module.named_parameters(recurse=False):
            flat = parameter.detach().flatten()
            size = -(-flat.numel() // world_size)
            shards[f"{prefix}{name}"] = flat[rank * size : (rank + 1) * size].clone()
        module.to_empty(device="meta", recurse=False)
    return shards
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-meta-init-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("16-meta-init", sharded_init)

# %%
ways = {"built whole, then cut": cut_whole}
if written(sharded_init):
    ways["yours"] = sharded_init
starts = init_peaks(ways, n_ranks=4)

# %% tags=["figure"]
labkit.figures.init_peaks(starts)

# %% [markdown]
# Rank 1 of 4 while it initializes a model of 12 square layers. Built whole, the peak is the model and one part of it more. Drawn
# layer by layer, it is the rank's parts and a layer or two.
#
# **In practice:** the same three steps with `fully_shard`: build under `torch.device("meta")`, shard, `model.to_empty(device=
# "cuda")`, and then `reset_parameters()` or the model's own `init_weights()` on the sharded parameters. A model that starts
# from a checkpoint needs no random numbers: each rank reads its parts from the files.

# %% [markdown]
# ## Save on n ranks, load on m
#
# This section is optional. Tomorrow the cluster has 3 free nodes and not 4. A checkpoint of shards has to be cut anew, and the
# optimizer's moments are cut with the weights. And jobs end when nobody asked them to: between two ranks' writes, or in the
# middle of one. So a step counts once it is **whole**, and until then the step before has to stay loadable.
#
# The ranks share a `store`, as in lab 07: `store.write(name, data)`, `store.read(name, start=0, size=None)`,
# `store.rename(old, new)` and `store.list(prefix="")`. A job that is killed in `write` leaves half of the file. `rename` is
# done whole or not at all. `to_bytes(tensor)` and `from_bytes(data)` turn flat float32 tensors into bytes, four for each
# element, and back.
#
# [[exercise 16-checkpoint]]
#
# Write three functions.
#
# - `save(store, step, rank, world_size, state)` is called on every rank after a step. `state` maps names to this rank's
#   parts: of a tensor with $N$ elements, rank $r$ holds elements $rk$ to $(r+1)k$, where $k$ is $N$ divided by the number of
#   ranks, rounded up.
# - `finish(store, step, world_size)` is called on one rank, once all ranks have saved the step. When it has returned, the
#   step is whole.
# - `load(store, rank, world_size, sizes)` is called on every rank when a job begins, maybe on more or fewer ranks than
#   those that saved. `sizes` maps names to the elements of whole tensors. It returns `(step, state)` of the last whole step,
#   with this rank's parts of it, or `None` if there is none. All ranks together read at most twice the size of the state.
#
# There may be other files in the store, and files of jobs that were killed. The ranks cannot send each other anything.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A job can be killed between any two calls. After each of your writes, ask: if this was the last one, what would `load`
# return? Nothing that a whole step consists of may be written over.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Every step, every tensor and every rank has a file of its own. One small file names the last whole step and how many ranks
# saved it. It is written under another name and renamed in `finish`. A new part from $a$ to $b$ overlaps old files, each
# from $rk$ to $(r+1)k$: read the overlap of each, and put them together.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `save` writes `to_bytes(part)` to `f"step-{step}/{name}/{rank}"`. `finish` writes `json.dumps([step, world_size])` to
# `"latest.new"` and renames that to `"latest"`. `load` reads `"latest"` if `store.list("latest")` has it. With `k` for the new
# ranks and `old_k` for the old ones, `first, last = min(rank * k, n), min((rank + 1) * k, n)`. Rank `old` holds elements
# `begin = max(first, old * old_k)` to `end = min(last, (old + 1) * old_k)` of that, if `begin < end`:
# `store.read(name, 4 * (begin - old * old_k), 4 * (end - begin))`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "16-checkpoint", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save(store: Store, step: int, rank: int, world_size: int, state: dict[str, Tensor]) -> None:
    """Write one rank's parts of the state."""
    ### BEGIN SOLUTION
    for name, part in state.items():
        store.write(f"step-{step}/{name}/{rank}", to_bytes(part))
    ### END SOLUTION


def finish(store: Store, step: int, world_size: int) -> None:
    """Declare the step whole: all ranks have saved it."""
    ### BEGIN SOLUTION
    store.write("latest.new", json.dumps([step, world_size]).encode())
    store.rename("latest.new", "latest")
    ### END SOLUTION


def load(
    store: Store, rank: int, world_size: int, sizes: dict[str, int]
) -> tuple[int, dict[str, Tensor]] | None:
    """The last whole step and this rank's parts of its state; None if there is none."""
    ### BEGIN SOLUTION
    if "latest" not in store.list("latest"):
        return None
    step, n_old = json.loads(store.read("latest"))
    state = {}
    for name, n in sizes.items():
        k, old_k = -(-n // world_size), -(-n // n_old)
        first, last = min(rank * k, n), min((rank + 1) * k, n)
        pieces = []
        for old in range(n_old):
            begin, end = max(first, old * old_k), min(last, (old + 1) * old_k)
            if begin < end:
                file = f"step-{step}/{name}/{old}"
                pieces.append(store.read(file, 4 * (begin - old * old_k), 4 * (end - begin)))
        state[name] = from_bytes(b"".join(pieces))
    return step, state
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "16-checkpoint-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("16-checkpoint", save, finish, load)

# %% tags=["figure"]
labkit.figures.recut_map(recut(save, finish, load, n_old=4, n_new=3)) if written(
    save, finish, load
) else None

# %% [markdown]
# One tensor of 24 elements: on top what your `save` wrote on 4 ranks, below what your `load` read on 3. A new rank reads the overlap
# with each old part, and no byte twice.
#
# Now with real files and real processes. Four of them save three steps into a folder. In step 3, rank 2 is killed in the middle of
# a write, and a job of three ranks begins:

# %%
if written(save, finish, load):
    print("\n".join(killed_while_saving(save, finish, load)))

# %% [markdown]
# **In practice:** `torch.distributed.checkpoint.save` and `load` do this for `fully_shard`: every rank writes the parts that
# it holds, a `.metadata` file says where each part of each tensor is, it is written last and renamed, and loading on another
# number of ranks reads the overlaps. `torch.save(model.state_dict())` on every rank saves shards that only the same number of
# ranks can use.

# %% [markdown]
# ## What you measured
#
# One rank's share of a model of 7.5 billion parameters, by your own functions:

# %%
if written(bytes_kept, bytes_sent):
    print(
        f"{'64 ranks, 8 nodes of 8':24}{'kept':>9}{'sent':>10}{'with 4 micro-batches':>23}{'GPUs of 80 GB':>16}"
    )
    for method in METHODS:
        kept_gb = float(bytes_kept(method, 7_500_000_000, 8, 8)) / 1e9
        once_gb, four_gb = (
            float(bytes_sent(method, 7_500_000_000, 8, 8, n)[0]) / 1e9 for n in (1, 4)
        )
        fits = "fits" if kept_gb < 80 else "does not fit"
        print(f"{method:24}{kept_gb:6.1f} GB{once_gb:7.1f} GB{four_gb:20.1f} GB{fits:>16}")

# %% [markdown]
# | feature | speed | memory a rank | where it ends |
# |---|---|---|---|
# | ZeRO-1 | as DDP: the same two passes | states divided by $n$: 12 of 16 bytes | weights and gradients have to fit |
# | ZeRO-2 | as DDP, and one pass more for each further micro-batch | gradients divided by $n$, too | the weights have to fit |
# | ZeRO-3, FSDP | three passes for each micro-batch | everything divided by $n$, and one or two whole layers | a layer has to fit; many tokens a rank to hide the passes |
# | hybrid | three passes within a node, one all-reduce of a shard between nodes | everything divided by the ranks of a node | a node has to hold the model |
# | 16-bit communication | half the bytes | masters and states stay in 32 bits | reductions over many ranks want 32 bits |
# | clipping over shards | one number of each rank | none | all ranks have to call it |
#
# With one micro-batch in a step, DDP, ZeRO-1 and ZeRO-2 send the same bytes: the memory that they save is free. ZeRO-3 sends 1.5
# times as much, and buys a model of any size. The configuration file is the last thing you decide, not the first.
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("16", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "16",
    "ZeRO-3 instead of DDP, 64 ranks",
    speed=lambda: (
        f"{float(bytes_sent('zero3', 7_500_000_000, 8, 8, 1)[0] / bytes_sent('ddp', 7_500_000_000, 8, 8, 1)[0]):.2f} x the bytes sent"
    ),
    memory=lambda: (
        f"1/{float(bytes_kept('ddp', 7_500_000_000, 8, 8) / bytes_kept('zero3', 7_500_000_000, 8, 8)):.0f} of weights, gradients and states"
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) A colleague switches from ZeRO-2 to ZeRO-3 on 8 GPUs in one node to train with longer texts, and
# still runs out of memory at nearly the same length. The model has 3 billion parameters. Explain with numbers what
# ZeRO-3 saved, and what would have helped.

# %% [markdown] nbgrader={"grade": true, "grade_id": "16-open-longer-texts", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# ZeRO-2 keeps 2 + 14/8 = 3.75 bytes a parameter, 11.3 GB; ZeRO-3 keeps 16/8 = 2 bytes, 6 GB. It saved 5.3 GB of 80. What grows
# with the text are activations, which neither of them cuts: every rank has its own rows. Recomputation (lab 05), a smaller
# micro-batch with accumulation, fused attention, a loss that never holds all logits, or cutting the sequence over the ranks
# (labs 17 and 19) would have helped. The switch costs half as many bytes again in each step.
#
# Marks: 1 for the two amounts (1/2 for one, or for their difference of 14/8 bytes a parameter). 1/2 for "activations are not cut".
# 1/2 for a remedy that is about activations.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) You train a model of 13 billion parameters in bfloat16 on 4 nodes of 8 GPUs with 80 GB each. Within
# a node, each GPU can send 200 GB/s. Between the nodes, each node can send 50 GB/s. A GPU computes 400 TFLOP/s. A step
# has one micro-batch of 8,192 tokens on each GPU, and takes 8 FLOPs per token and parameter. Which of DDP, ZeRO-1,
# ZeRO-3 and hybrid fit, and which of them can hide their traffic? Which one do you choose, and what changes with 4
# micro-batches of 8,192 tokens? Let your functions do the sums:

# %%
if written(bytes_kept, bytes_sent):
    for method in METHODS:
        kept_gb = float(bytes_kept(method, 13_000_000_000, 4, 8)) / 1e9
        sent = [bytes_sent(method, 13_000_000_000, 4, 8, n_micro) for n_micro in (1, 4)]
        texts = [
            f"sends {float(a) / 1e9:5.1f} GB, {float(b) / 1e9:5.1f} leave a node" for a, b in sent
        ]
        print(f"{method:8} keeps {kept_gb:5.1f} GB   " + "   with 4 micro-batches ".join(texts))

# %% [markdown] nbgrader={"grade": true, "grade_id": "16-open-which-one", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Kept: DDP 208 GB; ZeRO-1 4 x 13 + 12 x 13 / 32 = 56.9 GB; ZeRO-3 6.5 GB; hybrid 16 x 13 / 8 = 26 GB. DDP does not fit; ZeRO-1 leaves
# 23 GB for activations, which may do with recomputation. Compute: 8 x 13e9 x 8192 / 400e12 = 2.1 s.
# Traffic with S = 26 GB: ZeRO-1 2 x 31/32 x 26 = 50.4 GB out of a node at 50 GB/s: 1.0 s. ZeRO-3 75.6 GB: 1.5 s. Hybrid: within the
# node 3 x 7/8 x 26 = 68 GB at 200 GB/s: 0.34 s, between nodes 2 x 3/4 x 26 = 39 GB at 50 GB/s: 0.78 s. All can be hidden
# in principle; hybrid has the most room, and leaves 54 GB for activations: choose it (ZeRO-1 if the activations fit).
# With 4 micro-batches there are 8.4 s of compute. ZeRO-1 still sends 1.0 s worth; ZeRO-3 6.0 s; hybrid 1.36 + 0.78 s.
#
# Marks: 1 for which of them fit, and what they leave of 80 GB. 1 for compute and traffic times (within 20 %). 1/2 for a choice that follows
# from them. 1/2 for accumulation: ZeRO-3 times four, ZeRO-1 unchanged, hybrid only within the node.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Samyam Rajbhandari and others, *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models* (SC 2020). The
#   three stages, and the table of 7.5 billion parameters on 64 ranks.
# - Yanli Zhao and others, *PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel* (VLDB 2023).
# - PyTorch's documentation of `torch.distributed.fsdp.fully_shard`.
# - Stas Bekman, *Machine Learning Engineering*: the chapters on ZeRO and on network benchmarks, with measured clusters.
#
# **Sources.** The texts above. `ZeroRedundancyOptimizer`, `saved_tensors_hooks` and `functional_call`: PyTorch's documentation. Hybrid sharding: Zhen Zhang and others, *MiCS: Near-linear Scaling for Training Gigantic
# Model on Public Cloud* (VLDB 2022), and PyTorch's documentation of `fully_shard` (`mesh`). DeepSpeed's documentation of its
# configuration and of ZeRO++.
