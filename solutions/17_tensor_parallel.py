# %% [markdown]
# # Lab 17: Tensor parallelism
#
# Somebody cuts the layers of a model over 4 GPUs, and one line goes wrong: the gradients of the norms are averaged over the
# ranks where they should be summed, so they are a quarter of what they should be. With AdamW, the loss at the end agrees with
# that of the right program in five digits. **How do you find a mistake that no loss curve shows?**
#
# You will cut an MLP and an attention layer over ranks, then what lies between them, and then the loss. At the end you will
# write the tool that finds such mistakes, and try it on runs with bugs that real frameworks had.
#
# [[time]]
#
# You need to know what all-reduce, reduce-scatter and all-gather do (lab 14), but nothing that you wrote there.

# %% nbgrader={"grade": false, "grade_id": "17-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress
from labkit.material.lab17 import final_loss, mlp_on_ranks
from labkit.material.lab17_loss import loss_bytes_sent
from labkit.ranks import Comm

guesses = Predictions("17")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# Here is the question, measured: a small model is trained for 200 steps, once with right gradients, and once with the
# gradients of its norms multiplied by 1/4.

# %%
for optimizer in ("AdamW", "SGD"):
    right, quarter = final_loss(optimizer, norm_factor=1), final_loss(optimizer, norm_factor=1 / 4)
    print(f"{optimizer:6} loss {right:.5f}   with a quarter of the norms' gradients {quarter:.5f}")

# %% [markdown]
# AdamW divides each gradient by its own size, so a constant factor cancels. The mistake stays until something else uncovers
# it: clipping, whose norm is now wrong, or a switch to another optimizer. With SGD the loss differs, but would you have known
# which of the two is the right one?
#
# ## Say what each tensor is
#
# Data parallel training (labs 15 and 16) gives every rank other tokens. **Tensor parallelism** gives every rank the same
# tokens and a part of each layer: a GPU needs to hold, and to multiply by, a $t$-th of each weight matrix. At any point in such
# a program a tensor is one of three things. Let $X$ be what one process would have.
#
# | word | what rank $r$ has | to get $X$ |
# |---|---|---|
# | **replicated** | $X$ itself, the same on all ranks | nothing |
# | **sharded** | $X_r$, one of $t$ parts of it | put the parts side by side: all-gather |
# | **partial** | a tensor $P_r$ of the shape of $X$, with $\sum_r P_r = X$ | add them up: all-reduce |
#
# A collective changes the word: an all-reduce makes a partial tensor replicated, an all-gather makes a sharded tensor
# replicated, and a reduce-scatter makes a partial tensor sharded. The sentence from labs 14 and 16 says the same:
#
# $$\text{all-reduce} = \text{reduce-scatter} + \text{all-gather}, \qquad \text{each: }
# \frac{t-1}{t}\,S \text{ bytes sent by each rank}$$

# %% tags=["figure"]
labkit.figures.two_halves(n_ranks=4)

# %% [markdown]
# This is the picture from labs 14 and 16. At the start the tensor is partial, after three rounds sharded, and at the end
# replicated.

# %% [markdown]
# ## Cut an MLP in columns, then in rows
#
# An MLP is $Y = \mathrm{GELU}(X A) B$. There are two ways to cut the first matrix:
#
# - **Rows of $A$:** $X A = X_1 A_1 + X_2 A_2$. Each rank has a term of the sum: partial.
# - **Columns of $A$:** $X A = [X A_1, X A_2]$. Each rank has some columns of the result: sharded.
#
# GELU works on each element by itself, so a rank can apply it to its columns. It cannot apply it to a term of a sum: $\mathrm{GELU}(a + b)
# \ne \mathrm{GELU}(a) + \mathrm{GELU}(b)$. So the first matrix is cut in columns. The second one is then cut in rows, because row $j$ of
# $B$ is multiplied by column $j$ of the hidden activations, which this rank has. The result is partial, and one all-reduce
# makes it replicated.
#
# `nn.Linear` and `F.linear` keep a matrix transposed: `F.linear(x, w)` is $x w^\top$. The columns of $A$ are the *rows* of
# `w_in`, and the rows of $B$ are the *columns* of `w_out`.

# %% [markdown]
# [[exercise 17-tp-mlp]]
#
# Write the class `ParallelMLP`. Every rank gets the whole weights, keeps its part, and gets the same `x`. The layer is
# `F.linear(F.gelu(F.linear(x, w_in, b_in)), w_out, b_out)`.
#
# - Rank $r$ keeps part $r$ of `tensor_split` as `nn.Parameter`s `w_in`, `b_in`, `w_out`: its rows of `w_in` and `b_in`, and its
#   columns of `w_out`. `b_out` is replicated: every rank keeps the whole of it. Nothing else is kept.
# - The output is replicated, with the same bits on all ranks. After `backward()`, every rank has the whole gradient of `x`
#   and of `b_out`, and the gradients of its own parts.
# - There is exactly one all-reduce in the forward pass and one in the backward pass, or none if `x` needs no gradient.
#   `comm.all_reduce(tensor)` works in place, and autograd does not see it.
#
# The check looks at values and gradients, at calls and bytes, and at what a rank holds after the construction.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Say of each tensor what it is, in both directions. Every rank uses the whole `x` for its own columns. So what is the
# gradient of `x` that a rank computes: replicated, sharded or partial?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# You need two autograd functions. The one at the start lets `x` through and all-reduces its gradient. The one at the end
# all-reduces the output and lets the gradient through.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `forward(ctx, x, comm)` of the first one keeps `ctx.comm = comm` and returns `x`; its `backward(ctx, grad)` returns
# `total, None` with `total = grad.clone()` and `ctx.comm.all_reduce(total)`. The second is its mirror image. A part is
# `nn.Parameter(w_out.tensor_split(comm.world_size, dim=1)[comm.rank].clone())`. Add `b_out` after the all-reduce.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-tp-mlp", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ParallelMLP(nn.Module):
    def __init__(
        self, w_in: Tensor, b_in: Tensor, w_out: Tensor, b_out: Tensor, comm: Comm
    ) -> None:
        """Cut this rank's parts out of the whole weights."""
        super().__init__()
        ### BEGIN SOLUTION
        self.comm = comm

        def part(whole: Tensor, dim: int) -> nn.Parameter:
            return nn.Parameter(whole.tensor_split(comm.world_size, dim)[comm.rank].clone())

        self.w_in, self.b_in, self.w_out = part(w_in, 0), part(b_in, 0), part(w_out, 1)
        self.b_out = nn.Parameter(b_out.clone())
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output, whole on every rank."""
        ### BEGIN SOLUTION
        hidden = F.gelu(F.linear(EnterRanks.apply(x, self.comm), self.w_in, self.b_in))
        return LeaveRanks.apply(F.linear(hidden, self.w_out), self.comm) + self.b_out


class EnterRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return x

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        total = grad.clone()
        ctx.comm.all_reduce(total)
        return total, None


class LeaveRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part: Tensor, comm: Comm) -> Tensor:
        total = part.clone()
        comm.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None

    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-tp-mlp-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("17-tp-mlp", ParallelMLP)

# %% [markdown]
# Your class on four real ranks, processes that talk through gloo, with 32 tokens and matrices of 64 × 256:

# %%
if written(ParallelMLP):
    cut_mlp = mlp_on_ranks(ParallelMLP, n_ranks=4)
    print(
        f"a rank keeps {100 * cut_mlp.share:.1f} % of the weights, calls {cut_mlp.collectives} all-reduces"
    )
    print(
        f"and sends {cut_mlp.sent:,} B; x is {4 * 32 * 64:,} B; largest error {cut_mlp.error:.0e}"
    )

# %% [markdown]
# ## Cut attention by heads

# %% [markdown]
# ## Cut what lies between the layers

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Compute the loss without whole logits
#
# The last layer of a language model multiplies by a matrix with one column for each token of the vocabulary. Cut by columns
# like any other layer, it leaves each rank with the logits of its part of the vocabulary. To gather them would undo it all:
# for a micro-batch of 8,192 tokens and a vocabulary of 128,256 the logits are 4.2 GB in float32, and their softmax and its
# gradient take as much again.
#
# The loss of a token needs three numbers only. With logits $x$, the target $y$, and $m$ the largest logit,
#
# $$\text{loss} = \log Z - x_y, \qquad \log Z = m + \log \sum_j e^{x_j - m}.$$
#
# A maximum, a sum and one picked element can each be computed part by part. The gradient of $x_j$ is $e^{x_j} / Z$, less 1
# for the target's column. Once a rank knows $Z$, it computes the gradient of its own columns without asking anybody.
#
# The **z-loss** adds a small multiple of $(\log Z)^2$ to the loss of each token, which keeps the logits from drifting away
# together: the loss alone does not change when all logits grow by the same amount.

# %% [markdown]
# **Predict:** 8,192 tokens, a vocabulary of 128,256, 8 ranks, everything in float32. The ranks need the maximum, the sum and
# the target's logit of each token: three all-reduces, each a ring. How many MB does a rank send, if gathering the logits
# costs 3,677 MB?

# %% nbgrader={"grade": false, "grade_id": "17-predict-loss-sent", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sent for the loss", None, unit="MB")

# %% [markdown]
# [[exercise 17-vocab-loss]]
#
# Write `vocab_parallel_loss(comm, logits, targets, ignore_index, z_weight)`. It returns the mean cross-entropy as a float32
# number, the same on all ranks, whose `backward()` gives each rank the gradient of its own logits.
#
# - `logits` has shape `(n_tokens, columns)`: rank $r$ holds columns $rc$ to $(r+1)c - 1$ of the vocabulary, where $c$ is
#   `columns`. It may be in bfloat16; then compute in float32. All ranks have the same `targets`, which are numbers in the
#   whole vocabulary.
# - Tokens whose target is `ignore_index` do not count: not in the sum, not in the number that it is divided by, and their
#   gradient is 0. `ignore_index` may be a number that some rank has a column for.
# - Add `z_weight` times the mean of $(\log Z)^2$ over the tokens that count.
# - The vocabulary is filled up to a multiple of the number of ranks with columns whose logits are $-\infty$. A rank may have
#   nothing else.
# - Call at most three collectives, each for a few numbers of every token. No rank may hold a tensor as wide as the whole
#   vocabulary.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write the formula for one process first, with the maximum subtracted. Then ask of every number in it: which rank knows it,
# and what do the others contribute instead?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# One all-reduce with `op="max"` for the maximum. Then `(logits - top[:, None]).exp()`, summed by rows. A target belongs to
# this rank if `0 <= target - rank * columns < columns`; all other ranks put 0 into the sum for it. Autograd does not see
# what a collective writes, so write a `torch.autograd.Function` whose `backward` returns softmax less one-hot.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `own = targets - comm.rank * columns`, `is_here = (own >= 0) & (own < columns)`, and
# `picked = torch.where(is_here, shifted.gather(1, own.clamp(0, columns - 1)[:, None])[:, 0], 0.0)`. With
# `sums = torch.stack([shifted.exp().sum(1), picked])` one all-reduce brings both. The loss of a token is
# `sums[0].log() - sums[1]`, and `log_z = sums[0].log() + top`. In `backward`, the softmax of a row is multiplied by
# `(1 + 2 * z_weight * log_z) / n_counted`, and `1 / n_counted` is subtracted at the target, if it is here. Rows that do not
# count are 0.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-vocab-loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def vocab_parallel_loss(
    comm: Comm, logits: Tensor, targets: Tensor, ignore_index: int = -100, z_weight: float = 0.0
) -> Tensor:
    """The mean cross-entropy of all tokens that count. logits: this rank's columns."""
    ### BEGIN SOLUTION
    return VocabParallelLoss.apply(logits, targets, comm, ignore_index, z_weight)


class VocabParallelLoss(torch.autograd.Function):
    """Keeps the softmax of this rank's columns for the backward pass, which sends nothing."""

    @staticmethod
    def forward(ctx, logits, targets, comm, ignore_index, z_weight):
        n_columns = logits.shape[1]
        top = logits.amax(1).float()
        comm.all_reduce(top, op="max")
        shifted = logits.float() - top[:, None]
        own = targets - comm.rank * n_columns
        is_here = (own >= 0) & (own < n_columns)
        own = own.clamp(0, n_columns - 1)[:, None]
        picked = torch.where(is_here, shifted.gather(1, own)[:, 0], 0.0)
        softmax = shifted.exp_()
        sums = torch.stack([softmax.sum(1), picked])
        comm.all_reduce(sums)
        softmax /= sums[0][:, None]
        log_sum = sums[0].log()
        log_z = log_sum + top
        counted = targets != ignore_index
        weight = counted / counted.sum()
        ctx.save_for_backward(softmax, own, weight * is_here, weight * (1 + 2 * z_weight * log_z))
        ctx.dtype = logits.dtype
        return (weight * (log_sum - sums[1] + z_weight * log_z**2)).sum()

    @staticmethod
    def backward(ctx, dloss):
        softmax, own, at_target, factor = ctx.saved_tensors
        grad = softmax * (factor * dloss)[:, None]
        grad.scatter_add_(1, own, -(at_target * dloss)[:, None])
        return grad.to(ctx.dtype), None, None, None, None

    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-vocab-loss-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("17-vocab-loss", vocab_parallel_loss)

# %% [markdown]
# Here is what your function sends for such a loss on 8 ranks, with 512 tokens, scaled up to 8,192. And next to it PyTorch's
# `loss_parallel`, which does the same for distributed tensors:

# %%
if written(vocab_parallel_loss):
    loss_mb = 16 * loss_bytes_sent(vocab_parallel_loss, n_ranks=8, n_tokens=512) / 1e6
    print(f"a rank sends {loss_mb:.2f} MB for the loss of 8,192 tokens")
    guesses.settle("sent for the loss", loss_mb)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 0.17 MB: three numbers of 4 bytes for each of 8,192 tokens are 98 KB, and a ring sends a tensor $2 \cdot 7/8$ times. (With
# one all-gather of three numbers, as below, it is 0.69 MB.) The size of the vocabulary does not occur in it, so
# gathering costs 21,000 times as much.
#
# </details>
#
# <details><summary>At most three collectives. How is one possible?</summary>
#
# Let each rank use its *own* maximum $m_r$ and its own sum $s_r = \sum e^{x_j - m_r}$. One all-gather hands every rank all
# the triples $(m_r, s_r, x_y \text{ or } 0)$. Then $m = \max_r m_r$ and $Z e^{-m} = \sum_r s_r e^{m_r - m}$, which each rank
# computes for itself. This is the online softmax of lab 13, over ranks instead of tiles. It is a few more bytes and a third
# of the latency: for so few bytes, the latency is what a call costs. (A rank with nothing but padding has
# $m_r = -\infty$; take 0 instead, and its sum is 0.)
#
# </details>
#
# **In practice:** `torch.distributed.tensor.parallel.loss_parallel()` is a context in which `F.cross_entropy` of a tensor that
# is sharded by columns does this, and Megatron-LM calls it `vocab_parallel_cross_entropy`. If logits are still too
# large, cut the tokens into chunks as well, and compute one chunk's logits at a time.

# %% [markdown]
# ## Look up tokens in a table that nobody has whole
#
# ## Decide who talks to whom
#
# ## Find what no loss curve shows

# %% [markdown]
# ## What you measured
#
# Every tensor is replicated, sharded or partial, and every collective is a change of that word. When something is wrong,
# compare gradients parameter by parameter, not losses.
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("17", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "17",
    "tensor parallelism on 4 ranks",
    speed=lambda: f"{cut_mlp.collectives} all-reduces a layer, {cut_mlp.sent:,} B sent",
    memory=lambda: f"{cut_mlp.share:.0%} of the layer's weights",
)

# %% [markdown]
# ## Where to read on
#
# - Mohammad Shoeybi and others, *Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism*
#   (2019). Columns, then rows; heads; the vocabulary.
# - Vijay Korthikanti and others, *Reducing Activation Recomputation in Large Transformer Models* (MLSys 2023). Sequence
#   parallelism.
# - PyTorch's documentation of `torch.distributed.tensor.parallel`, whose `DTensor` calls the three words `Replicate`, `Shard`
#   and `Partial`.
#
# **Sources.** The texts above.
