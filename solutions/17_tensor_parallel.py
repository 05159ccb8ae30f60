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
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress, written
from labkit.exercises.lab17.planted import KINDS
from labkit.material.lab17 import final_loss, heads_on_ranks, mlp_on_ranks
from labkit.material.lab17_bugs import run_finished_by, run_with
from labkit.material.lab17_groups import sent_by_kind
from labkit.material.lab17_sequence import block_costs
from labkit.material.lab17_words import words_of_block
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

# %% tags=["figure"]
labkit.figures.cut_matrices_slider()

# %% [markdown]
# A block with 2,048 tokens and 4,096 columns. Move the slider: whatever $t$ is, every rank has a whole term of $Y$, so the message
# stays as large while the work of a rank shrinks. (There is no slider on a printed page.)
#
# Here is the same block as a chain of tensors, with the norm before it and the residual connection after it. Above are the tensors
# of the forward pass, below their gradients. Before you write anything, say for each box what it is on the ranks:

# %% tags=["figure"]
labkit.figures.tensor_words(known=False)

# %% [markdown]
# **Predict:** the gradient of what goes into $A$, as the backward pass computes it on a rank before anything is sent: which of the
# three words?

# %% nbgrader={"grade": false, "grade_id": "17-predict-gradient-into", "locked": false, "schema_version": 3, "solution": false, "task": false}
WORDS = ("replicated", "sharded", "partial")
guesses.take("gradient of what goes into A", None, among=WORDS)

# %% [markdown]
# **Predict:** and the gradient of the term $X A B$ that a rank computed, at the other end of the chain?

# %% nbgrader={"grade": false, "grade_id": "17-predict-gradient-term", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("gradient of x A B", None, among=WORDS)

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

# %% tags=["figure"]
labkit.figures.tensor_words()

# %% [markdown]
# The boxes, coloured: one process computed what each of four ranks would have, and compared it with the whole tensors. Every place
# where the word has to change is a collective. The two all-reduces mirror each other: where one pass has one, the other pass has
# nothing to do.

# %%
_, gradients = words_of_block()
guesses.settle("gradient of what goes into A", gradients["into A"].name)
guesses.settle("gradient of x A B", gradients["x A B"].name)

# %% [markdown]
# <details><summary>Check your predictions</summary>
#
# Into $A$: partial. Every rank used the whole input, for its own columns, and each use adds a term to the gradient. This is the
# all-reduce that is easy to forget: the loss of the first step is right without it.
#
# Of $XAB$: replicated. $Y$ is the sum of the terms, so the gradient of each term is the gradient of $Y$, which every rank has.
# Autograd does not know this. Treat the all-reduce as an operation like any other, and its backward pass is an all-reduce, too:
# all weights' gradients are then $t$ times too large. AdamW would not tell you.
#
# </details>

# %% [markdown]
# Your class on four real ranks, processes that talk through gloo, with 32 tokens and matrices of 64 × 256:

# %%
if written(ParallelMLP):
    cut_mlp = mlp_on_ranks(ParallelMLP, n_ranks=4)
    print(
        f"a rank keeps {cut_mlp.share:.1%} of the weights, calls {cut_mlp.collectives} all-reduces"
    )
    print(
        f"and sends {cut_mlp.sent:,} B; x is {4 * 32 * 64:,} B; largest error {cut_mlp.error:.0e}"
    )

# %% [markdown]
# **In practice:** `parallelize_module(mlp, mesh["tp"], {"w_in": ColwiseParallel(), "w_out": RowwiseParallel()})` of
# `torch.distributed.tensor.parallel` cuts two `nn.Linear` like this. Its names speak of $A$ and $B$, as this section does:
# `ColwiseParallel` cuts the rows of `nn.Linear.weight`. In `transformers` it is `from_pretrained(..., tp_plan="auto")`, started by
# `torchrun`.

# %% [markdown]
# ## Cut attention by heads
#
# Attention has the same shape as the MLP: a matrix (for queries, keys and values), something that is not linear, and a matrix at the
# end. What is not linear mixes the columns of one head, and never those of two. So here the unit is not the column but the **head**: a
# rank computes a few heads from start to end, its columns of `w_o` turn them into a term of the output, and one all-reduce adds up the
# terms.
#
# Many models have fewer key and value heads than query heads (grouped-query attention). Llama 3.1 405B has 128 query heads, and
# 8 key and value heads. If it is cut over 16 ranks, two ranks have to hold the **same** key and value head, because a head cannot be
# cut: a score is the product of a whole query and a whole key. The copies start equal. But each of them serves other query heads,
# and so gets another gradient.

# %% [markdown]
# **Predict:** 16 query heads, 2 key and value heads, 8 ranks. How many times smaller are the weights `w_k` and `w_v` on a rank
# than on one process?

# %% nbgrader={"grade": false, "grade_id": "17-predict-kv-share", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("keys and values", None, unit="times smaller")

# %% [markdown]
# [[exercise 17-tp-attention]]
#
# Write the class `ParallelAttention`. Every rank gets the whole weights, keeps its part, and gets the same `x` of shape
# `(batch, sequence, hidden)`. Attention is causal, and heads have `w_q.shape[0] // n_heads` columns. Query head $j$ uses key
# and value head `j // (n_heads // n_kv_heads)`.
#
# - Each rank has `n_heads // t` query heads, in the order of the ranks: their rows of `w_q`, and their columns of `w_o`. It has
#   the rows of `w_k` and `w_v` that these heads use, and nothing else, as `nn.Parameter`s `w_q`, `w_k`, `w_v`, `w_o`.
# - The number of ranks $t$ divides `n_heads`. It divides `n_kv_heads`, too, or is a multiple of it: then $t$ / `n_kv_heads`
#   neighbouring ranks hold the same head.
# - Output and gradient of `x` are as in `ParallelMLP`: one all-reduce each way.
# - After each `backward()`, the gradients of `w_k` and `w_v` are those of one process, also on ranks that hold copies, and
#   also if there were other backward passes before it. This takes one or two more calls, among ranks with the same head.
#
# `comm.new_group(ranks)` is a `Comm` of these ranks alone; `F.scaled_dot_product_attention(q, k, v, is_causal=True,
# enable_gqa=True)` takes fewer key than query heads. Every exercise is graded by itself: copy what you need of the last cell.
#
# <details><summary>Hint 1: a nudge</summary>
#
# You have written a function that lets a tensor through and all-reduces its gradient. Which other tensors than `x` are used by
# several ranks, each for something else?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A weight of which there are copies enters the computation in the same way as `x`, but in the group of the ranks that have a
# copy. Autograd adds up in `.grad` what comes *after* this sum, so several backward passes come out right.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With `copies = t // n_kv_heads`, rank $r$ holds key head `r // copies`, and its group is `comm.new_group(range(first, first +
# copies))` with `first = r - r % copies`. In `forward`: `w_k = EnterRanks.apply(self.w_k, self.group)` if there are copies.
# Heads: `F.linear(x, w).unflatten(-1, (-1, head_dim)).transpose(1, 2)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-tp-attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ParallelAttention(nn.Module):
    def __init__(
        self,
        w_q: Tensor,
        w_k: Tensor,
        w_v: Tensor,
        w_o: Tensor,
        n_heads: int,
        n_kv_heads: int,
        comm: Comm,
    ) -> None:
        """Cut this rank's heads out of the whole weights."""
        super().__init__()
        ### BEGIN SOLUTION
        t, r = comm.world_size, comm.rank
        self.comm, self.head_dim = comm, w_q.shape[0] // n_heads
        copies = max(t // n_kv_heads, 1)
        first = r - r % copies
        self.group = comm.new_group(range(first, first + copies)) if copies > 1 else None
        self.w_q, self.w_o = self.part(w_q, r, t), self.part(w_o, r, t, dim=1)
        self.w_k, self.w_v = (self.part(w, r // copies, t // copies) for w in (w_k, w_v))

    def part(self, whole: Tensor, number: int, n: int, dim: int = 0) -> nn.Parameter:
        return nn.Parameter(whole.chunk(n, dim)[number].clone())

    def heads(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.linear(x, weight).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output, whole on every rank."""
        ### BEGIN SOLUTION
        x = Enter.apply(x, self.comm)
        w_k, w_v = self.w_k, self.w_v
        if self.group:
            w_k, w_v = Enter.apply(w_k, self.group), Enter.apply(w_v, self.group)
        q, k, v = self.heads(x, self.w_q), self.heads(x, w_k), self.heads(x, w_v)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return Leave.apply(F.linear(mixed.transpose(1, 2).flatten(2), self.w_o), self.comm)


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return x

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        total = grad.clone()
        ctx.comm.all_reduce(total)
        return total, None


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part: Tensor, comm: Comm) -> Tensor:
        total = part.clone()
        comm.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None

    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-tp-attention-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("17-tp-attention", ParallelAttention)

# %% [markdown]
# Your class on eight simulated ranks, with 16 query heads and 2 key and value heads. What has each rank of each weight?

# %%
shares = heads_on_ranks(ParallelAttention, n_ranks=8, n_heads=16, n_kv_heads=2)
for name, share in shares.items():
    print(f"{name}: 1/{1 / share:g} of it on a rank")
guesses.settle("keys and values", 1 / shares["w_k"])

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 2, and not 8: there are two heads to be dealt, so four ranks hold a copy of each. From here on, more ranks make queries and
# outputs smaller, but not keys and values. In inference the same holds for their cache.
#
# </details>

# %% [markdown]
# ## Cut what lies between the layers
#
# Each layer's weights are cut now, and its hidden activations. But between the layers there are norms, dropout and the residual
# stream, and all of this is replicated: every rank computes the same numbers, and keeps the same tensors for the backward pass. With 8
# ranks, these copies can be most of what a rank keeps.
#
# Norm, dropout and addition treat each token by itself. So here we can cut along the *sequence*: rank $r$ has the $r$-th part of
# the tokens. This is called **sequence parallelism**. Between such a part and the cut layers, the tensors change their word:
#
# - Before the first matrix, each rank needs all tokens: **all-gather**.
# - After the second matrix, each rank has a term of the sum for all tokens, and needs the sum for its own: **reduce-scatter**.
#
# Before, the forward pass had an all-reduce. Now it has an all-gather and a reduce-scatter, which are its two halves: not a byte
# more. In the backward pass, the reduce-scatter becomes an all-gather and the all-gather becomes a reduce-scatter, again one
# all-reduce's worth. One thing is new. The gradient of the first matrix needs the gathered input. To keep it would mean to keep
# the whole sequence again, in every layer. So a rank keeps its part, and gathers it a second time.

# %% tags=["figure"]
labkit.figures.tensor_words(sequence_parallel=True)

# %% [markdown]
# The same chain with sequence parallelism. Horizontal stripes are tokens, vertical ones columns. The second gather of the input in the
# backward pass is not a change of a word on this chain, so it is not drawn.

# %% [markdown]
# **Predict:** by which factor do the bytes that a rank sends for an MLP block grow (forward and backward together)?

# %% nbgrader={"grade": false, "grade_id": "17-predict-sequence-sent", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes with sequence parallelism", None, unit="times")

# %% [markdown]
# [[exercise 17-sequence-parallel]]
#
# Write a block, `x + dropout(mlp(layer_norm(x)))`, where `x` is this rank's part of the sequence, of shape `(sequence / t,
# batch, hidden)`: the first dimension is the sequence, so a part is one contiguous piece. The MLP is that of `ParallelMLP`,
# with `w_in`, `b_in` and `w_out` cut in the same way.
#
# - `norm_weight`, `norm_bias` and `b_out` are replicated `nn.Parameter`s. After each `backward()`, their gradients are those of one
#   process, on every rank. This may take up to three small collectives more.
# - After the forward pass, no tensor of the whole sequence may be there.
# - `dropout_generators(seed, comm)` returns two `torch.Generator`s. The first one is for tensors that are replicated: it
#   draws the same numbers on all ranks. The second one is for tensors of which each rank has another part: it draws other numbers on
#   each rank, and other numbers than the first one. Both depend on `seed` alone otherwise.
# - Dropout sets an element to zero with probability `p`, and divides the others by `1 - p`. Use the right one of the two
#   generators.
#
# `comm.all_gather_single(whole, part)` and `comm.reduce_scatter_single(part, whole)` work along the first dimension.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which parameters does a rank use for its own tokens only? Their gradients are partial, and the rest follows from the table of the
# three words.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Three autograd functions: one that gathers and multiplies by the first matrix in one go (so that *it* decides what is kept), one
# that reduce-scatters (and gathers in its backward pass), and the one from `ParallelMLP` that lets a parameter through and
# all-reduces its gradient.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `GatheredLinear.forward` saves `x` and `w`, and returns `F.linear(gathered(x), w, b)`. Its `backward` computes `whole =
# gathered(x)`, `grad_w = grad.flatten(0, 1).T @ whole.flatten(0, 1)`, `grad_b = grad.sum((0, 1))`, and `grad_x =
# reduce_scattered(grad @ w)`. For dropout: `mask = torch.rand(z.shape, generator=self.generator) >= p`, then `z * mask / (1 - p)`,
# after `b_out` was added.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-sequence-parallel", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dropout_generators(seed: int, comm: Comm) -> tuple[torch.Generator, torch.Generator]:
    """For replicated tensors and for sharded ones."""
    ### BEGIN SOLUTION
    replicated, sharded = torch.Generator(), torch.Generator()
    return replicated.manual_seed(seed), sharded.manual_seed(seed + 2718 + comm.rank)
    ### END SOLUTION


class SequenceParallelMLP(nn.Module):
    def __init__(
        self,
        norm_weight: Tensor,
        norm_bias: Tensor,
        w_in: Tensor,
        b_in: Tensor,
        w_out: Tensor,
        b_out: Tensor,
        p: float,
        seed: int,
        comm: Comm,
    ) -> None:
        """Cut this rank's parts out of the whole weights."""
        super().__init__()
        ### BEGIN SOLUTION
        self.comm, self.p = comm, p
        self.generator = dropout_generators(seed, comm)[1]
        self.norm_weight, self.norm_bias, self.b_out = (
            nn.Parameter(one.clone()) for one in (norm_weight, norm_bias, b_out)
        )
        self.w_in, self.b_in, self.w_out = (
            self.part(w_in, 0),
            self.part(b_in, 0),
            self.part(w_out, 1),
        )

    def part(self, whole: Tensor, dim: int) -> nn.Parameter:
        return nn.Parameter(whole.tensor_split(self.comm.world_size, dim)[self.comm.rank].clone())
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """This rank's part of the output, from its part of the input."""
        ### BEGIN SOLUTION
        copies = (self.norm_weight, self.norm_bias, self.b_out)
        norm_weight, norm_bias, b_out = (GradientSummed.apply(one, self.comm) for one in copies)
        normed = F.layer_norm(x, x.shape[-1:], norm_weight, norm_bias)
        hidden = F.gelu(GatheredLinear.apply(normed, self.w_in, self.b_in, self.comm))
        z = SummedAndCut.apply(F.linear(hidden, self.w_out), self.comm) + b_out
        if self.p:
            mask = torch.rand(z.shape, generator=self.generator) >= self.p
            z = z * mask / (1 - self.p)
        return x + z


def gathered(part: Tensor, comm: Comm) -> Tensor:
    whole = part.new_empty(comm.world_size * part.shape[0], *part.shape[1:])
    comm.all_gather_single(whole, part.contiguous())
    return whole


def reduce_scattered(whole: Tensor, comm: Comm) -> Tensor:
    part = whole.new_empty(whole.shape[0] // comm.world_size, *whole.shape[1:])
    comm.reduce_scatter_single(part, whole.contiguous())
    return part


class GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        ctx.save_for_backward(x, weight)
        return F.linear(gathered(x, comm), weight, bias)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        grad_weight = grad.flatten(0, 1).T @ gathered(x, ctx.comm).flatten(0, 1)
        return reduce_scattered(grad @ weight, ctx.comm), grad_weight, grad.sum((0, 1)), None


class SummedAndCut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, whole: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return reduce_scattered(whole, comm)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return gathered(grad, ctx.comm), None


class GradientSummed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, parameter: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return parameter

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        total = grad.clone()
        ctx.comm.all_reduce(total)
        return total, None

    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-sequence-parallel-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("17-sequence-parallel", dropout_generators, SequenceParallelMLP)

# %% [markdown]
# The block on four simulated ranks, with 512 tokens and 256 columns: with your `ParallelMLP` and whole tensors around it, and with
# your sequence-parallel block. What is held counts from the construction to the end of the forward pass.

# %%
costs = block_costs(ParallelMLP, SequenceParallelMLP, n_ranks=4)
for name, cost in costs.items():
    sent = f"sent forward {cost.sent_forward:>9,} B, backward {cost.sent_backward:>9,} B"
    print(f"{name:22} {sent}   held {cost.held:>9,} B")
without, with_sequence = costs.values()
guesses.settle("bytes with sequence parallelism", with_sequence.sent / without.sent)

# %% tags=["figure"]
labkit.figures.sequence_costs(costs)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# By a quarter: five passes of $\frac{t-1}{t}S$ bytes where there were four (and a little for the sums of the norm's gradients).
# The forward pass sends exactly as much as before. For this quarter, a rank holds about a third of what it held.
#
# </details>
#
# **In practice** the fifth pass hardly costs time: it overlaps with the product that needs only the output's gradient. In
# Megatron-LM the flag is `sequence_parallel`. It sets the attribute `sequence_parallel = True` on every parameter whose gradient
# has to be summed over the tensor-parallel ranks, as you did for three of them. PyTorch's `parallelize_module` has
# `SequenceParallel()` beside `ColwiseParallel()` and `RowwiseParallel()`.
#
# Where dropout is applied to a *replicated* tensor, as in the first Megatron-LM, the masks have to be equal on all ranks instead:
# otherwise the copies are copies no more. That is what the first of your two generators is for.

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
# %% tags=["figure"]
labkit.figures.cut_logits()

# %% [markdown]
# Four tokens, twelve columns on three ranks. The targets are framed. Of token 0, each rank knows the largest of its own logits, a
# part of the sum, and, if it has the target's column, the target's logit. The last line is all that the loss needs.
#
# # The **z-loss** adds a small multiple of $(\log Z)^2$ to the loss of each token, which keeps the logits from drifting away
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
# This section is optional. The embedding is the first layer's matrix with one *row* for each token, and is cut by rows: rank $r$
# holds rows $rc$ to $(r+1)c - 1$. For each token exactly one rank has the row. If all others put in 0, the results are
# partial, and one all-reduce makes them replicated. (With sequence parallelism it is a reduce-scatter.) Tied to the
# head of the last section, this is the same cut of the same matrix: what are columns there are rows here.
#
# [[exercise 17-vocab-embedding]]
#
# Write `vocab_parallel_embedding(comm, weight, tokens)`. `weight` has this rank's rows, as many on every rank, and `tokens` is any
# shape of numbers in the whole vocabulary, the same on all ranks. The result has shape `(*tokens.shape, width)`, whole on every
# rank. After `backward()`, each rank has the gradient of its own rows. There is one all-reduce in the forward pass, and no
# collective in the backward pass.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What does a rank look up for a token whose row it does not have, and what may come of it?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Subtract the number of this rank's first row, clamp to rows that exist, look up, and multiply by 0 where the token was another
# rank's. Then a sum over ranks whose backward pass hands the gradient on as it is.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `own = tokens - comm.rank * len(weight)`, `is_here = (own >= 0) & (own < len(weight))`, and
# `F.embedding(own.clamp(0, len(weight) - 1), weight) * is_here[..., None]`. In the `forward` of an autograd function, clone
# it and call `comm.all_reduce`. Its `backward(ctx, grad)` returns `grad, None`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-vocab-embedding", "locked": false, "schema_version": 3, "solution": true, "task": false}
def vocab_parallel_embedding(comm: Comm, weight: Tensor, tokens: Tensor) -> Tensor:
    """The tokens' rows, whole on every rank. weight: this rank's rows of the table."""
    ### BEGIN SOLUTION
    n_rows = len(weight)
    row = tokens - comm.rank * n_rows
    is_mine = (row >= 0) & (row < n_rows)
    found = F.embedding(row.clamp(0, n_rows - 1), weight)
    return AddUpRows.apply(found * is_mine[..., None], comm)


class AddUpRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, found: Tensor, comm: Comm) -> Tensor:
        whole = found.clone()
        comm.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx, dwhole: Tensor) -> tuple[Tensor, None]:
        return dwhole, None

    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-vocab-embedding-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("17-vocab-embedding", vocab_parallel_embedding)

# %% [markdown]
# **In practice:** `RowwiseParallel` on an `nn.Embedding` does this in PyTorch, and `VocabParallelEmbedding` in Megatron-LM.

# %% [markdown]
# ## Decide who talks to whom
#
# A large run cuts in several directions at once. Each rank has a place in every one of them, and talks to different ranks for
# different reasons:
#
# | group | its ranks have | what they send | how often |
# |---|---|---|---|
# | **tensor** | the same tokens, different parts of each layer | activations, by all-reduce | four times a layer and micro-batch |
# | **context** | different parts of the same sequences | keys and values (lab 19) | once a layer and micro-batch |
# | **data** | different samples, the same weights | gradients | once a step |
# | **pipeline** | different layers | activations at the border of two stages (lab 18) | once a micro-batch |
# | **expert** | different experts of a layer (lab 19) | tokens, to the rank with their expert | four times a layer and micro-batch |
#
# Tensor groups send the most, and nobody can compute while they do, because the next operation needs the result. Here is a
# model of 70 billion parameters: 80 layers of width 8,192, on 8 × 4 × 2 ranks (tensor, pipeline, data), with 16 micro-batches
# of 4,096 tokens in a step, everything in 16 bits.

# %%
sent = sent_by_kind(n_params=70e9, width=8192, n_layers=80, n_tokens=4096, n_micro=16)
for kind, n_bytes in sent.items():
    within, between = n_bytes / 400e9, n_bytes / 50e9
    print(
        f"{kind:9}{n_bytes / 1e9:8.1f} GB a step and rank: {within:6.2f} s within a node, {between:6.2f} s between nodes"
    )

# %% [markdown]
# Within a node, a GPU sends 400 GB/s in this example, and 50 GB/s to another node. At 400 TFLOP/s, a GPU computes for 2.2 s in
# such a step. Tensor groups inside a node add 0.4 s to that; tensor groups across nodes would add 3 s, more than the computation
# itself. **So a tensor group never leaves its node**, and pipelines, which send the least, cross from node to node.
#
# In code this is only a matter of numbering. Launchers number ranks node by node: ranks 0 to 7 are on the first node. Think of
# the ranks as a grid in which one dimension runs fastest, like the columns of a tensor in memory. Ranks that differ in the
# fastest dimension alone are neighbours, and neighbours are on one node.

# %% tags=["figure"]
labkit.figures.grid_of_ranks()

# %% [markdown]
# This is the lecture's example: 2 nodes of 8 GPUs, with tensor groups of 2, pipelines of 4 stages, and data groups of 2. Under
# each rank stand its places in the three dimensions. Tensor runs fastest, then data, then pipeline. Coloured are the ranks
# to which rank 5 talks: with each of them it shares two of the three places.

# %% [markdown]
# **Predict:** in this picture there are 8 tensor groups, 8 data groups and 4 pipelines. How many of these 20 groups have ranks
# on both nodes?

# %% nbgrader={"grade": false, "grade_id": "17-predict-crossing", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("groups on two nodes", None, unit="groups")

# %% [markdown]
# [[exercise 17-rank-groups]]
#
# Write `rank_groups(n_nodes, ranks_per_node, tensor, context, pipeline, expert)`. The last four are sizes of groups. The size of
# data groups is what is left: all ranks divided by `tensor * context * pipeline`. The grid runs along tensor first, then
# along context, data and pipeline.
#
# Return a dict with seven keys. Each value is a list of all groups of that kind, and a group is a list of ranks in ascending order:
#
# - `"tensor"`, `"context"`, `"data"`, `"pipeline"`: ranks that differ in this dimension alone.
# - `"gradients"`: ranks that hold the same dense weights, over which their gradients are averaged. That is data and context
#   together: a part of a sequence gives a part of the gradient, as a sample does.
# - `"expert"`: the ranks over which the experts of a layer are dealt. Take each group of `"gradients"` and cut it into pieces
#   of `expert` ranks, one after the other.
# - `"expert_gradients"`: ranks that hold the same experts: those with the same place in their expert groups, out of one group of
#   `"gradients"`.
#
# Raise `ValueError` if the sizes do not divide the number of ranks, if the groups of `"gradients"` cannot be cut into such
# pieces, or if some tensor group would have ranks on two nodes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `torch.arange(n_ranks).reshape(...)` is the grid. Which of its dimensions is the last one?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Move the dimension of a kind to the end and flatten all others: each row is a group. For `"gradients"` reshape the grid so that
# data and context are one dimension, and for the experts, split this dimension in two.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `grid = torch.arange(n).reshape(pipeline, data, context, tensor)`, and
# `grid.movedim(dim, -1).reshape(-1, grid.shape[dim]).tolist()` are the groups of a dimension. The experts' grid has the shape
# `(pipeline, data * context // expert, expert, tensor)`. A tensor group leaves its node if
# `ranks_per_node % tensor` is not 0.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-rank-groups", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rank_groups(
    n_nodes: int,
    ranks_per_node: int,
    tensor: int,
    context: int = 1,
    pipeline: int = 1,
    expert: int = 1,
) -> dict[str, list[list[int]]]:
    """All groups of each kind."""
    ### BEGIN SOLUTION
    n_ranks = n_nodes * ranks_per_node
    if ranks_per_node % tensor:
        raise ValueError(f"tensor groups of {tensor} do not fit into nodes of {ranks_per_node}")
    if n_ranks % (tensor * context * pipeline):
        raise ValueError(f"{n_ranks} ranks are no multiple of {tensor * context * pipeline}")
    data = n_ranks // (tensor * context * pipeline)
    if data * context % expert:
        raise ValueError(f"{data * context} ranks cannot be cut into expert groups of {expert}")
    ranks = torch.arange(n_ranks)

    def groups(shape: tuple[int, ...], dim: int) -> list[list[int]]:
        return ranks.reshape(shape).movedim(dim, -1).reshape(-1, shape[dim]).tolist()

    dense = (pipeline, data, context, tensor)
    merged = (pipeline, data * context, tensor)
    experts = (pipeline, data * context // expert, expert, tensor)
    return {
        "tensor": groups(dense, 3),
        "context": groups(dense, 2),
        "data": groups(dense, 1),
        "pipeline": groups(dense, 0),
        "gradients": groups(merged, 1),
        "expert": groups(experts, 2),
        "expert_gradients": groups(experts, 1),
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-rank-groups-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("17-rank-groups", rank_groups)

# %% [markdown]
# Your groups of the lecture's example. Each panel is one kind, and ranks of the same colour and letter are one group:

# %% tags=["figure"]
labkit.figures.rank_grid(rank_groups(2, 8, tensor=2, pipeline=4), 8, ("tensor", "data", "pipeline"))

# %%
if written(rank_groups):
    of_lecture = rank_groups(2, 8, tensor=2, pipeline=4)
    for kind in ("tensor", "data", "pipeline"):
        crossing = sum(len({rank // 8 for rank in group}) > 1 for group in of_lecture[kind])
        print(f"{kind:9}{len(of_lecture[kind])} groups, {crossing} on two nodes")
    guesses.settle(
        "groups on two nodes",
        sum(
            len({rank // 8 for rank in group}) > 1
            for kind in ("tensor", "data", "pipeline")
            for group in of_lecture[kind]
        ),
    )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Four: the pipelines, and nothing else. Two stages of each pipeline are on each node, so the activations of one micro-batch cross
# once each way. The data groups stay inside a node as well, because data runs faster than pipeline.
#
# </details>
#
# Now all kinds at once, on 4 nodes: tensor groups of 2, context groups of 2, 2 pipeline stages, and experts dealt over 4 ranks.

# %% tags=["figure"]
labkit.figures.rank_grid(
    rank_groups(4, 8, tensor=2, context=2, pipeline=2, expert=4),
    8,
    ("tensor", "context", "data", "pipeline", "gradients", "expert"),
)

# %% [markdown]
# Look at an expert group: it cuts through data groups and context groups, because what its ranks share is not a sample but a set of
# experts. And every tensor group is a pair of neighbours in one row.
#
# **In practice:** `init_device_mesh("cuda", (4, 2, 2), mesh_dim_names=("pp", "dp", "tp"))` makes this grid, the last dimension
# running fastest, and `mesh["tp"]` is the tensor group of the calling rank. In Megatron-LM the order is a
# flag: `--use-tp-pp-dp-mapping` exchanges data and pipeline. The groups are only right if ranks are numbered node by
# node, as `torchrun` does it.

# %% [markdown]
# ## Find what no loss curve shows
#
# A run that cuts over tensor groups, along the sequence, and over data groups has a dozen places where a sum over some group has
# to stand, and real frameworks have had bugs of this kind. None of them raises an error, and most do not change the loss of the
# first step at all.
#
# The tool against all of them is old: run one step on the ranks and the same step in one process, with the same weights,
# tokens and dropout masks, and **compare the gradients, parameter by parameter, rank by rank**. In float64 the
# two agree to about 12 digits if the program is right. What differs, and how, says what is wrong.
#
# For the rest of this lab there is a small transformer of two blocks on 2 × 4 ranks (data, tensor), written as in the
# sections above. Its sequences are cut over the tensor group between the layers, and it has half as many key heads as ranks. Here it
# is with one bug: somebody forgot to sum the gradient of one norm.

# %% tags=["figure"]
one_bug = run_with("not summed", "blocks.0.norm2.weight")
labkit.figures.gradient_ratios(one_bug.reference, one_bug.ranks)

# %% [markdown]
# A row is a parameter, in the order of the forward pass. A dot is a rank: the norm of its gradient, divided by that of
# what it should hold. One row is wrong, and in a telling way: each rank has another value, and another direction.
#
# These are the ten kinds of bugs. $t$ is the size of a tensor group, and $d$ the size of a data group (always different
# here). "Reference" is what a rank should have: its part of the gradient of one process.
#
# | kind | what went wrong | what the gradients look like |
# |---|---|---|
# | `"not summed"` | a norm sees a rank's own tokens only; its gradient was not summed over the tensor group | one parameter: the gradients of a tensor group add up to the reference |
# | `"replicas not summed"` | several ranks hold the same key head, and each sees its own query heads only | one parameter: those of a tensor group that *have the same reference* add up to it, and these are not all |
# | `"wrong group"` | a cut weight was averaged over all ranks, not over its data group | one parameter: all ranks of a tensor group have the mean of the tensor group's references |
# | `"on every rank"` | a bias was added by every rank before the sum (it is 0 at the start, so the loss is right) | one parameter: $t$ times the reference |
# | `"ties not summed"` | embedding and head are one weight, but each copy kept its own gradient | two parameters whose references are equal: their gradients add up to it |
# | `"backward not reduced"` | an all-gather whose backward pass keeps the rank's own gradient, where the ranks' should be added up | everything before that place is wrong, everything after it is right |
# | `"averaged twice"` | the loss was divided by $d$, and the gradients were averaged | everything: $1/d$ of the reference |
# | `"wrong world size"` | a sum over the data group, divided by the number of all ranks | everything: $1/t$ of the reference |
# | `"clipped locally"` | each rank clipped by the norm of what it holds | everything: a factor for each rank, not the same for all ranks of a tensor group |
# | `"one seed"` | all ranks drop the same elements of their different tokens | everything differs, by no factor |

# %% [markdown]
# **Predict:** for how many of the ten bugs does the loss of the first step differ from the right one?

# %% nbgrader={"grade": false, "grade_id": "17-predict-losses", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bugs that change the first loss", None, unit="bugs")

# %%
runs_of_bugs = {kind: run_with(kind) for kind in KINDS}
n_seen = 0
for kind, run in runs_of_bugs.items():
    with_bug, right_loss = run.losses
    n_seen += abs(with_bug - right_loss) > 1e-9
    print(f"{kind:22}loss {with_bug:.6f}   without the bug {right_loss:.6f}")
guesses.settle("bugs that change the first loss", n_seen)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# One: with one dropout seed the forward pass is another one. (It is a fair loss of a fair model, only not of this one. Without the
# reference beside it, nobody would notice that either.) All other bugs are in the backward pass or after it. The later
# losses do differ, but you have no right ones to compare them with.
#
# </details>
#
# [[exercise 17-compose-bugs]]
#
# Write `blame(reference_grads, rank_grads, groups)`. It returns `(parameter, kind)`, or `None` if everything is right.
#
# - `reference_grads[rank][name]` is what the rank should have, and `rank_grads[rank][name]` what it has: float64 tensors of the
#   same shape. The names come in the order of the forward pass.
# - `groups["tensor"]` and `groups["data"]` are lists of groups, as in `rank_groups`.
# - `kind` is one of the ten words. `parameter` is the name of the wrong parameter. Of `"ties not summed"` it is the first
#   of the two names. Of `"backward not reduced"` it is the wrong parameter nearest to the loss. If *all* parameters are wrong,
#   it is `"all"`.
# - At most one bug is in a run. Numbers that should be equal agree to 8 digits at least, relative to the norm of the tensor.
#   Different ones differ in the first few digits.
#
# <details><summary>Hint 1: a nudge</summary>
#
# First list the wrong parameters: those for which some rank differs. Then ask how many there are. None, one, all, or something in
# between?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# All: divide norms to get each rank's factor, and test whether the reference times the factor is the gradient, for *every*
# parameter. If not, it is the seed. One: test the four traces one after the other. For the two missing sums, add up the gradients
# of those ranks of the tensor group whose references are equal to yours.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `def near(a, b): return (a - b).norm() <= 1e-8 * b.norm()`. For one wrong name and each rank, with `group` its tensor group:
# `near(got, t * ref)` is "on every rank"; `near(got, sum(refs of group) / t)` is "wrong group"; and with
# `alike = [r for r in group if torch.equal(refs[r], ref)]`, `near(sum(gots of alike), ref)` is a missing sum, of replicas if
# `len(alike) < t`. If none fits, it is "backward not reduced", at the last of the wrong names.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-compose-bugs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def blame(
    reference_grads: Sequence[dict[str, Tensor]],
    rank_grads: Sequence[dict[str, Tensor]],
    groups: dict[str, list[list[int]]],
) -> tuple[str, str] | None:
    """The parameter and the kind of bug, or None."""
    ### BEGIN SOLUTION
    t, d = len(groups["tensor"][0]), len(groups["data"][0])
    group_of = {rank: group for group in groups["tensor"] for rank in group}
    ranks, names = range(len(rank_grads)), list(reference_grads[0])

    def are_near(grads: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
        return all(near(a, b) for a, b in zip(grads, wanted, strict=True))

    def of(name: str) -> tuple[list[Tensor], list[Tensor]]:
        return [one[name] for one in rank_grads], [one[name] for one in reference_grads]

    wrong = [name for name in names if not are_near(*of(name))]
    if not wrong:
        return None
    if len(wrong) == len(names):
        factors = [norm_of(rank_grads[rank]) / norm_of(reference_grads[rank]) for rank in ranks]
        for grads, refs in map(of, names):
            if not are_near(grads, [factor * ref for factor, ref in zip(factors, refs)]):
                return "all", "one seed"
        if all(abs(factor * d - 1) < 1e-8 for factor in factors):
            return "all", "averaged twice"
        if all(abs(factor * t - 1) < 1e-8 for factor in factors):
            return "all", "wrong world size"
        return "all", "clipped locally"

    name = wrong[-1]
    grads, refs = of(name)
    if len(wrong) == 2 and are_near([a + b for a, b in zip(grads, of(wrong[0])[0])], refs):
        return wrong[0], "ties not summed"
    if are_near(grads, [t * ref for ref in refs]):
        return name, "on every rank"
    if are_near(grads, [sum(refs[other] for other in group_of[rank]) / t for rank in ranks]):
        return name, "wrong group"
    alike = [[r for r in group_of[rank] if torch.equal(refs[r], refs[rank])] for rank in ranks]
    if are_near([sum(grads[other] for other in alike[rank]) for rank in ranks], refs):
        return name, "not summed" if len(alike[0]) == t else "replicas not summed"
    return name, "backward not reduced"


def near(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).norm() <= 1e-8 * b.norm())


def norm_of(grads: dict[str, Tensor]) -> Tensor:
    return torch.cat([grad.flatten() for grad in grads.values()]).norm()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-compose-bugs-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("17-compose-bugs", blame)

# %% [markdown]
# Your tool, on all ten runs from above:

# %%
for kind, run in runs_of_bugs.items():
    print(f"{kind:22}{blame(run.reference, run.ranks, run.groups)}")

# %% tags=["figure"]
unreduced = run_with("backward not reduced", "blocks.1.norm1.weight")
labkit.figures.gradient_ratios(
    unreduced.reference, unreduced.ranks, "backward not reduced: norm on the ranks / in one process"
)

# %% [markdown]
# This is what a mistake in the backward pass looks like: everything after it is right, and it spoils everything before
# it. In a run of 80 layers the step from right to wrong still stands at one line, which is why parameters are compared
# in the order of the forward pass.
#
# **In practice** nobody has one process for 70 billion parameters. Make the model small instead: two layers, narrow, but with the
# same code and the same groups, in float64 (or float32, and 4 digits), dropout included. Write it as a test that runs
# before every large run. What most projects compare between layouts are loss curves, and nine of the ten bugs of the table begin with
# the right loss.

# %% [markdown]
# ## Mend one
#
# Here is the end of such a program: what happens between the backward pass and the optimizer. `grads` are a rank's own
# gradients, and the function changes them in place. `cuts[name]` says how a parameter is cut: `"rows"` or `"columns"` (each rank of a
# tensor group has another part), `"kv"` (key and value heads, of which the ranks in `replicas` have the same), or `"whole"`
# (every rank has all of it, and uses it on its own tokens). `ties` are pairs of names of one weight. There is one bug in it.


# %%
def finish_shown(grads, cuts, ties, tensor, replicas, data):
    for name, grad in grads.items():
        if "norm" in name:
            tensor.all_reduce(grad)
        if cuts[name] == "kv":
            replicas.all_reduce(grad)
    for first, second in ties:
        grads[first] += grads[second]
        grads[second].copy_(grads[first])
    for grad in grads.values():
        data.all_reduce(grad, op="avg")


shown = run_finished_by(finish_shown)
if written(blame):
    print("blame says:", blame(shown.reference, shown.ranks, shown.groups))

# %% tags=["figure"]
labkit.figures.gradient_ratios(shown.reference, shown.ranks)

# %% [markdown]
# [[exercise 17-mend]]
#
# Write `finish_gradients`: the same without the bug. After it, each rank has its part of the gradients of one process. It gets
# the communicators of three groups: `tensor`, `replicas` (the ranks of the tensor group that hold the same key and value heads;
# it may be this rank alone) and `data`. Each data group's loss is the mean over its own tokens.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which rows of the figure are wrong? What do these parameters have in common with the norms?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The bias of a row-parallel layer is added after the reduce-scatter, so each rank adds it to its own tokens. Its gradient is partial, as
# that of a norm is. Names are a bad way to tell such parameters; `up.bias` is cut by rows and needs no sum.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Replace the first condition by `cuts[name] == "whole"`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "17-mend", "locked": false, "schema_version": 3, "solution": true, "task": false}
def finish_gradients(
    grads: dict[str, Tensor],
    cuts: dict[str, str],
    ties: Sequence[tuple[str, str]],
    tensor: Comm,
    replicas: Comm,
    data: Comm,
) -> None:
    """Make a rank's own gradients those that its optimizer needs, in place."""
    ### BEGIN SOLUTION
    partial_over = {"whole": tensor, "kv": replicas}
    for name, grad in grads.items():
        if comm := partial_over.get(cuts[name]):
            comm.all_reduce(grad)
    for first, second in ties:
        total = grads[first] + grads[second]
        for name in (first, second):
            grads[name].copy_(total)
    for name in grads:
        data.all_reduce(grads[name], op="avg")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "17-mend-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("17-mend", finish_gradients)

# %% [markdown]
# Megatron-LM does not go by names either: such parameters carry an attribute, `sequence_parallel = True`, and what finishes
# the gradients looks for it. A new layer whose author forgets the attribute brings the bug back, and no loss curve will
# show it.

# %% [markdown]
# ## What you measured
#
# One rank of four, by your own classes:

# %%
if written(ParallelMLP, SequenceParallelMLP):
    print(
        f"MLP: {cut_mlp.share:.1%} of the weights, {cut_mlp.collectives} all-reduces, {cut_mlp.sent:,} B"
    )
    for name, cost in costs.items():
        print(f"{name:22} held {cost.held:>9,} B after the forward pass, {cost.sent:>9,} B sent")

# %% [markdown]
# | feature | speed | memory a rank | where it ends |
# |---|---|---|---|
# | MLP in columns, then rows | an all-reduce of the activations each way | weights and hidden activations divided by $t$ | the bandwidth between ranks: a node |
# | attention by heads | the same | the same; keys and values only down to one head | the number of query heads |
# | sequence parallelism | one all-gather more in the backward pass | what lies between the layers divided by $t$ | as above |
# | loss over a cut vocabulary | a few numbers for each token | logits divided by $t$ | |
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
# ## Open questions
#
# Two questions, 2 + 2 points. A person reads your answers, so no check responds at once, and `progress` does not count
# them. A few sentences each; numbers count more than words.
#
# **A.** (2 points, read by a person) A model with 32 layers and 4,096 columns is trained on 4,096 tokens at a time in 16 bits, with
# tensor parallelism over 8 GPUs. Each layer has an attention and an MLP block. How many bytes does a GPU send for the all-reduces of
# one forward and backward pass? Compare the time that this takes at 400 GB/s within a node and at 50 GB/s between nodes with the time
# for computing: each GPU makes 400 TFLOP/s, and a layer has $12 \cdot 4096^2$ weights.

# %% [markdown] nbgrader={"grade": true, "grade_id": "17-open-inside-a-node", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# One tensor is 4096 x 4096 x 2 B = 33.6 MB. An all-reduce sends 2 x 7/8 of it: 58.7 MB. Four of them in each of 32 layers: 128 x 58.7
# MB = 7.5 GB. Within a node 19 ms, between nodes 150 ms. Computing: 6 x 32 x 12 x 4096^2 x 4096 = 1.58e14 FLOP, over 8 GPUs 2.0e13,
# at 400 TFLOP/s 49 ms. So within a node communication adds about 38 % if it does not overlap, and between nodes it takes three
# times as long as the work: tensor groups stay inside a node.
#
# Marks: 1 for the bytes (1/2 if the factor 2 x 7/8 is missing or there are two all-reduces instead of four a layer). 1/2 for the
# time of computing. 1/2 for the comparison.
# ### END SOLUTION

# %% [markdown]
# **B.** (2 points, read by a person) A colleague adds dropout after the all-reduce of the MLP, on the replicated output, and draws
# the mask from the generator for sharded tensors. The loss falls, and gradients of all cut weights look plausible. What
# exactly goes wrong, and which comparison would have shown it in the first step?

# %% [markdown] nbgrader={"grade": true, "grade_id": "17-open-dropout", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The output should be replicated, but with a different mask on each rank the ranks go on with different activations: each has a
# residual stream of its own. The next layer's all-reduce then adds up terms that belong to different inputs. In the backward pass,
# the gradients of the replicated parameters (norms, output biases) differ between ranks, so that their copies drift apart. Compare a
# tensor that should be replicated over the ranks (the output, or a norm's gradient) bit by bit, or all gradients with those of one
# process that uses the same mask.
#
# Marks: 1 for "the copies differ from here on", with a consequence. 1 for a comparison that shows it (ranks among each other, or with one
# process; not the loss).
# ### END SOLUTION

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
# **Sources.** The texts above. Grouped-query attention: Joshua Ainslie and others, *GQA: Training Generalized Multi-Query
# Transformer Models from Multi-Head Checkpoints* (EMNLP 2023). The numbers of heads of Llama 3.1 405B: its model card. The seeds
# of sharded and replicated regions: Megatron-LM's `tensor_parallel/random.py`.
