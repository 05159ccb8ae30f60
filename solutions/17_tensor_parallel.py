# %% [markdown]
# # Lab 17: Tensor parallelism
#
# Somebody cuts the layers of a model over 4 GPUs, and one line is wrong: the gradients of the norms are averaged over
# the ranks where they should be summed, so they are a quarter of what they should be. With AdamW, the final loss agrees
# with that of the right program to five digits. **How do you find a mistake that no loss curve shows?**
#
# You will cut an MLP and an attention layer over ranks, then what lies between them, and then the loss. At the end you
# will write a tool that finds such mistakes, and try it on runs with bugs of the kinds that real frameworks have had.
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
from labkit.material.lab17_flow import flow_of_mlp
from labkit.material.lab17_groups import sent_by_kind
from labkit.material.lab17_sequence import block_costs
from labkit.material.lab17_words import Colouring, words_of_block
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
# AdamW divides each gradient by a running estimate of its size, so a constant factor cancels. The mistake stays until
# something else uncovers it: gradient clipping, which now sees a wrong norm, or a switch to another optimizer. With SGD
# the loss differs, but would you have known which of the two is the right one?
#
# ## Say what each tensor is
#
# Data parallel training (labs 15 and 16) gives every rank different tokens. **Tensor parallelism** gives every rank the
# same tokens and a part of each layer: on $t$ ranks, a GPU holds and multiplies by one $t$-th of each weight matrix. At
# any point in such a program a tensor is one of three things. Let $X$ be the tensor that one process would have.
#
# | word | what rank $r$ has | to get $X$ |
# |---|---|---|
# | **replicated** | $X$ itself, the same on all ranks | nothing |
# | **sharded** | $X_r$, one of $t$ parts of it | put the parts side by side: all-gather |
# | **partial** | a tensor $P_r$ of the shape of $X$, with $\sum_r P_r = X$ | add them up: all-reduce |
#
# A collective changes the word: an all-reduce makes a partial tensor replicated, an all-gather makes a sharded tensor
# replicated, and a reduce-scatter makes a partial tensor sharded. Read as partial → sharded → replicated, this is the
# equation of labs 14 and 16:
#
# $$\text{all-reduce} = \text{reduce-scatter} + \text{all-gather}, \qquad \text{each: } n - 1 \text{ rounds},\;
# \frac{n-1}{n}\,S \text{ bytes sent by each rank}$$
#
# $S$ is the size of $X$ in bytes, and there are $n = t$ ranks here.

# %% tags=["figure"]
labkit.figures.two_halves(n_ranks=4)

# %% [markdown]
# This is the picture from labs 14 and 16. At the start the tensor is partial, after three rounds sharded, and at the
# end replicated.

# %% [markdown]
# ## Cut an MLP in columns, then in rows
#
# An MLP is $Y = \mathrm{GELU}(X A) B$. There are two ways to cut the first matrix:
#
# - **Rows of $A$** (and columns of $X$): on two ranks, $X A = X_1 A_1 + X_2 A_2$. Each rank has a term of the sum:
#   partial.
# - **Columns of $A$:** $X A = [X A_1, X A_2]$. Each rank has some columns of the result: sharded.
#
# GELU works on each element by itself, so a rank can apply it to its columns. It cannot apply it to a term of a sum,
# because $\mathrm{GELU}(a + b) \ne \mathrm{GELU}(a) + \mathrm{GELU}(b)$. So the first matrix is cut in columns. The
# second one is then cut in rows: row $j$ of $B$ is multiplied by column $j$ of the hidden activations, and a rank needs
# only the rows that belong to its own columns. The result is partial, and one all-reduce makes it replicated.
#
# `nn.Linear` and `F.linear` keep a matrix transposed: `F.linear(x, w)` is $x w^\top$. In code, $A$ is `w_in` and $B$ is
# `w_out`. So the columns of $A$ are the *rows* of `w_in`, and the rows of $B$ are the *columns* of `w_out`.

# %% tags=["figure"]
labkit.figures.cut_matrices_slider()

# %% [markdown]
# An MLP for 2,048 tokens of 4,096 columns, with 16,384 hidden columns. Move the slider: a rank's work shrinks as $t$
# grows, but its term of $Y$ keeps the size of the whole $Y$. So the tensor that has to be all-reduced does not shrink.
# (There is no slider on a printed page.)
#
# Here is the same MLP as a chain of tensors, with the norm before it and the residual connection after it. The upper
# row is the forward pass, and the lower row shows the gradient of each tensor. Before you write anything, colour the
# boxes: a click on a button gives its box the next of the three words. (On a printed page, say them.)

# %% tags=["figure"]
colouring = Colouring()
labkit.figures.colour_words(colouring)

# %% [markdown]
# **Predict:** look at the box "into A" in the lower row. It is the gradient of the input of $A$, as the backward pass
# computes it on a rank before anything is sent. Which of the three words describes it?

# %% nbgrader={"grade": false, "grade_id": "17-predict-gradient-into", "locked": false, "schema_version": 3, "solution": false, "task": false}
WORDS = ("replicated", "sharded", "partial")
guesses.take("gradient of what goes into A", None, among=WORDS)

# %% [markdown]
# **Predict:** and the box "x A B" in the lower row, the gradient of the term of the output that a rank has computed?

# %% nbgrader={"grade": false, "grade_id": "17-predict-gradient-term", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("gradient of x A B", None, among=WORDS)

# %% [markdown]
# [[exercise 17-tp-mlp]]
#
# Write the class `ParallelMLP`. Every rank gets the whole weights, keeps its part, and gets the same `x`. The layer is
# `F.linear(F.gelu(F.linear(x, w_in, b_in)), w_out, b_out)`. There are $t$ = `comm.world_size` ranks, and $r$ =
# `comm.rank`.
#
# - The four parameters are `nn.Parameter`s named `w_in`, `b_in`, `w_out` and `b_out`. Rank $r$ keeps its rows of `w_in`
#   and `b_in`, and its columns of `w_out`: part $r$ of the $t$ parts that `tensor_split` makes, which need not be
#   equally large and can be empty. `b_out` is replicated: every rank keeps the whole of it. Nothing else is kept.
# - The output is replicated, with the same bits on all ranks. After `backward()`, every rank has the whole gradient of
#   `x` and of `b_out`, and the gradients of its own parts.
# - The forward pass calls exactly one all-reduce, and so does the backward pass; if `x` needs no gradient, the backward
#   pass calls none. `comm.all_reduce(tensor)` works in place, and autograd does not see it.
#
# The check looks at values and gradients (also over several micro-batches), at calls and bytes, and at what a rank
# holds after the construction.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Say which word describes each tensor and each gradient. Every rank uses the whole `x` for its own columns. So what is
# the gradient of `x` that a rank computes: replicated, sharded or partial?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# You need two autograd functions. The one at the start lets `x` through and all-reduces its gradient. The one at the
# end all-reduces the output and lets the gradient through.
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
labkit.figures.tensor_words(yours=colouring)

# %% [markdown]
# The right colours: one process computed what each of four ranks would have, and compared it with the whole tensors. If
# you gave a box another word, it stands under the box in red. A matrix product changes the word without communication. Everywhere else, a change of the word takes a
# collective. The two all-reduces mirror each other: where one pass has one, the other pass has nothing to do.

# %%
_, gradients = words_of_block()
guesses.settle("gradient of what goes into A", gradients["into A"].name)
guesses.settle("gradient of x A B", gradients["x A B"].name)

# %% [markdown]
# <details><summary>Check your predictions</summary>
#
# The gradient of the input of $A$: partial. Every rank used the whole input for its own columns, and each use adds a
# term to the gradient. The all-reduce that adds up these terms is easy to forget, because the loss of the first step is
# right without it.
#
# The gradient of a rank's term: replicated. $Y$ is the sum of the terms, so the gradient of each term is the gradient
# of $Y$, which every rank has already. Autograd does not know this. If you treat the all-reduce as an operation like
# any other, its backward pass is an all-reduce, too, and the gradients of this layer's `w_in`, `b_in` and `w_out` are
# $t$ times too large. AdamW would hide such a factor.
#
# </details>

# %% [markdown]
# And this is your own class on four simulated ranks. The boxes are again coloured by comparing values with those of one
# process. "Given to all-reduce" is what a rank hands over: in the upper row in the forward pass, in the lower row in the
# backward pass. If the check fails, run these two cells and look: a word in red is not the one that belongs there.

# %% tags=["figure"]
mlp_run = flow_of_mlp(ParallelMLP)
labkit.figures.mlp_flow(mlp_run)

# %% [markdown]
# Then the gradients one by one: a row for `x` and for each parameter, and a dot for each rank. The dot stands at the
# norm of the rank's gradient, divided by the norm of the one that it should have. Everything should stand at 1.

# %% tags=["figure"]
labkit.figures.gradient_ratios(mlp_run.reference, mlp_run.ranks)

# %% [markdown]
# Your class on four real ranks, which are processes that talk through gloo, with 32 tokens and matrices of 64 × 256.
# The calls and bytes are those of one forward and one backward pass:

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
# `torch.distributed.tensor.parallel` cuts two `nn.Linear` like this. Its names refer to $A$ and $B$, as this section
# does: `ColwiseParallel` cuts the rows of `nn.Linear.weight`. In `transformers`, `from_pretrained(..., tp_plan="auto")`
# does the same in a program that `torchrun` starts.

# %% [markdown]
# ## Cut attention by heads
#
# Attention has the same structure as the MLP: a matrix (for queries, keys and values), a nonlinear part, and a matrix
# at the end. The nonlinear part mixes the columns of one head, but never those of two heads. So here the unit is not
# the column but the **head**: a rank computes a few heads from start to end, its columns of `w_o` turn them into a term
# of the output, and one all-reduce adds up the terms.
#
# Many models have fewer key and value heads than query heads (grouped-query attention). Llama 3.1 405B has 128 query
# heads, but only 8 key and value heads. Cut over 16 ranks, each key and value head has to be held by **two** ranks,
# because we do not cut a head: a score is the product of a whole query and a whole key. The two copies start equal. But
# each serves different query heads, so each gets a different gradient.

# %% [markdown]
# **Predict:** 16 query heads, 2 key and value heads, 8 ranks. How many times smaller is a rank's part of `w_k` and
# `w_v` than the whole weight?

# %% nbgrader={"grade": false, "grade_id": "17-predict-kv-share", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("keys and values", None, unit="times smaller")

# %% [markdown]
# [[exercise 17-tp-attention]]
#
# Write the class `ParallelAttention`. Every rank gets the whole weights, keeps its part, and gets the same `x` of shape
# `(batch, sequence, hidden)`. There are no biases. Attention is causal, a head has `head_dim = w_q.shape[0] // n_heads`
# columns, and scores are divided by the square root of `head_dim`. Query head $j$ is made by rows `j * head_dim` to
# `(j + 1) * head_dim - 1` of `w_q`, and uses key and value head `j // (n_heads // n_kv_heads)`.
#
# - Each rank has `n_heads // t` query heads, in the order of the ranks: their rows of `w_q`, and their columns of
#   `w_o`. It has the rows of `w_k` and `w_v` that these heads use, and nothing else, as `nn.Parameter`s `w_q`, `w_k`,
#   `w_v` and `w_o`.
# - The number of ranks $t$ divides `n_heads`. Either $t$ divides `n_kv_heads`, too, or it is a multiple of
#   `n_kv_heads`. In the second case `t // n_kv_heads` neighbouring ranks hold the same key and value head.
# - The output and the gradient of `x` are as in `ParallelMLP`, with one all-reduce for each.
# - After each `backward()`, the gradients of `w_k` and `w_v` are those of one process. This also holds on ranks with
#   copies of a head, and when gradients accumulate over several backward passes. Where there are copies, it takes one
#   or two more collectives in the backward pass, among the ranks that hold the same head.
#
# `comm.new_group(ranks)` returns a `Comm` of these ranks alone (to a rank that is one of them), and sends nothing.
# `F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)` accepts fewer key and value heads than
# query heads, and lets query head $j$ use the one given above. You need the two autograd functions of `ParallelMLP`
# again. Do not write them anew: copy them into this cell, because every exercise is graded by itself.
#
# <details><summary>Hint 1: a nudge</summary>
#
# You have written a function that lets a tensor through and all-reduces its gradient. Besides `x`, which tensors are
# used by several ranks, each for a different purpose?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A weight with copies enters the computation in the same way as `x`, but its gradient is all-reduced only among the
# ranks that have a copy. This sum happens *before* autograd adds the gradient to `.grad`, so several backward passes
# come out right.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With `copies = max(t // n_kv_heads, 1)`, rank $r$ holds part `r // copies` of the `t // copies` equal parts of `w_k`
# and `w_v`. Its group is `comm.new_group(range(first, first + copies))` with `first = r - r % copies`. Let `Enter` be
# the function of `ParallelMLP` that lets a tensor through and all-reduces its gradient. In `forward`, if `copies > 1`:
# `w_k = Enter.apply(self.w_k, self.group)`, and likewise `w_v`. To split columns into heads:
# `F.linear(x, w).unflatten(-1, (-1, head_dim)).transpose(1, 2)`.
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
# Your class on eight simulated ranks, with 16 query heads and 2 key and value heads. Which part of each weight does a
# rank hold?

# %%
shares = heads_on_ranks(ParallelAttention, n_ranks=8, n_heads=16, n_kv_heads=2)
for name, share in shares.items():
    print(f"{name}: 1/{1 / share:g} of it on a rank")
guesses.settle("keys and values", 1 / shares["w_k"])

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 2, not 8: there are only two key and value heads to divide, so four ranks hold a copy of each. Once there is one such
# head per rank, more ranks still shrink `w_q` and `w_o`, but no longer `w_k` and `w_v`. In inference the same holds for
# the cache of keys and values.
#
# </details>

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Cut what lies between the layers
#
# Each layer's weights are cut now, and so are its hidden activations. But between the layers there are norms, dropout
# and the residual stream, and all of this is replicated: every rank computes the same numbers, and keeps the same
# tensors for the backward pass. With 8 ranks, these copies can be most of the memory that a rank's activations take.
#
# Norm, dropout and addition treat each token by itself. So here we can cut along the *sequence*: rank $r$ has the
# $r$-th part of the tokens. This is called **sequence parallelism**. It needs a collective at both ends of the MLP:
#
# - Before the first matrix, a rank has its own tokens and needs all of them: **all-gather**.
# - After the second matrix, a rank has a term of the sum for all tokens, and needs the sum for its own tokens:
#   **reduce-scatter**.
#
# Before, the forward pass had an all-reduce. Now it has an all-gather and a reduce-scatter, which are the two halves of
# an all-reduce, so it sends not a byte more. In the backward pass the gather turns into a reduce-scatter and the
# reduce-scatter into a gather, which is again as much as one all-reduce. But there is one addition: the gradient of the
# first matrix needs the gathered input. If a rank kept it from the forward pass, it would keep the whole sequence
# again, in every layer. So it keeps only its own part, and gathers the input a second time in the backward pass.

# %% tags=["figure"]
labkit.figures.tensor_words(sequence_parallel=True)

# %% [markdown]
# The same chain with sequence parallelism. Horizontal stripes are parts of the tokens, and vertical ones parts of the
# columns. The second gather of the input in the backward pass is not drawn, because it does not change any gradient on
# this chain.

# %% [markdown]
# **Predict:** compared with tensor parallelism alone, how many times as many bytes does a rank send for an MLP block,
# forward and backward together?

# %% nbgrader={"grade": false, "grade_id": "17-predict-sequence-sent", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes with sequence parallelism", None, unit="times")

# %% [markdown]
# [[exercise 17-sequence-parallel]]
#
# Write the class `SequenceParallelMLP`, a block that computes `x + dropout(mlp(layer_norm(x)))`. Here `x` is this
# rank's part of the sequence, of shape `(sequence // t, batch, hidden)`: the sequence comes first, so that a part is
# one contiguous piece. `layer_norm` is `F.layer_norm` over the last dimension. The MLP is that of `ParallelMLP`, with
# the parameters `w_in`, `b_in` and `w_out` cut in the same way. Write the function `dropout_generators`, too.
#
# - `norm_weight`, `norm_bias` and `b_out` are replicated `nn.Parameter`s. After each `backward()`, their gradients are
#   those of one process, on every rank.
# - The forward pass calls two collectives: an all-gather and a reduce-scatter. The backward pass calls three of the
#   same size (two all-gathers and a reduce-scatter), and one to three small ones for the gradients of the replicated
#   parameters.
# - After the forward pass, a rank may hold the hidden activations of its own columns, before and after GELU, and at
#   most five tensors of the size of its `x` (`x` and the output are two of these). The gathered input, which is all
#   tokens with all `hidden` columns, must be gone.
# - `dropout_generators(seed, comm)` returns two `torch.Generator`s. The first one is for replicated tensors: it draws
#   the same numbers on all ranks. The second one is for sharded tensors: it draws different numbers on each rank, and
#   on no rank those of the first one. The first depends on `seed` alone, and the second on `seed` and the rank.
# - Dropout sets an element to zero with probability `p`, and divides the others by `1 - p`. The constructor makes the
#   generators from its `seed`, once, and each forward pass draws a new mask. Decide which of the two generators is the
#   right one here.
#
# `comm.all_gather_single(whole, part)` and `comm.reduce_scatter_single(part, whole)` write into their first argument,
# and work along the first dimension.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which parameters does a rank use for its own tokens only? Their gradients are partial, and the table of the three
# words says what to do with a partial tensor.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Three autograd functions: one that gathers and multiplies by the first matrix in one go (so that *it* decides what is
# kept), one that reduce-scatters (and gathers in its backward pass), and the one from `ParallelMLP` that lets a
# parameter through and all-reduces its gradient.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `gathered` and `reduce_scattered` are functions around the two collectives that allocate the result and return it.
# `GatheredLinear.forward` saves `x` and `w`, and returns `F.linear(gathered(x), w, b)`. Its `backward` computes
# `whole = gathered(x)`, `grad_w = grad.flatten(0, 1).T @ whole.flatten(0, 1)`, `grad_b = grad.sum((0, 1))`, and
# `grad_x = reduce_scattered(grad @ w)`. For dropout, with `z` the output of the MLP including `b_out`:
# `mask = torch.rand(z.shape, generator=self.generator) >= p`, then `z * mask / (1 - p)`.
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
# The block on four simulated ranks, with 512 tokens, 256 columns and 256 hidden columns, twice: with your `ParallelMLP`
# and whole tensors around it, and with your sequence-parallel block. "Held" is what a rank holds after the forward
# pass, without the weights.

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
# 1.25 times as many: five collectives of $\frac{t-1}{t}S$ bytes where there were four halves of all-reduces, and a
# little for the gradients of the three replicated parameters. The forward pass sends exactly as much as before. In
# return for this quarter, a rank holds only about a third of what it held before.
#
# </details>
#
# **In practice** the fifth collective hardly costs time: while the input is gathered again, the GPU computes
# `grad @ w`, which does not need it. In Megatron-LM the flag is `--sequence-parallel`. It sets the attribute
# `sequence_parallel = True` on every parameter whose gradient has to be summed over the tensor-parallel ranks, as you
# did for three of them. PyTorch's `parallelize_module` has `SequenceParallel()` beside `ColwiseParallel()` and
# `RowwiseParallel()`.
#
# Where dropout is applied to a *replicated* tensor, as in the first Megatron-LM, the masks have to be equal on all
# ranks: otherwise the tensor is no longer replicated. The first of your two generators is for such masks.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Compute the loss without whole logits
#
# The last layer of a language model multiplies by a matrix with one column for each token of the vocabulary. If this
# matrix is cut by columns, each rank has the logits of its part of the vocabulary. To gather them would undo the cut:
# for a micro-batch of 8,192 tokens and a vocabulary of 128,256 the logits are 4.2 GB in float32, and their softmax and
# their gradient take 4.2 GB each.
#
# The loss of a token needs only three numbers. With the token's logits $x$, its target $y$, and its largest logit $m$,
#
# $$\text{loss} = \log Z - x_y, \qquad \log Z = m + \log \sum_j e^{x_j - m}.$$
#
# A maximum, a sum and one picked element can each be computed part by part. The gradient with respect to $x_j$ is
# $e^{x_j} / Z$, less 1 for the target's column. Once a rank knows $Z$, it computes the gradient of its own columns
# without any communication.

# %% tags=["figure"]
labkit.figures.cut_logits()

# %% [markdown]
# The logits of four tokens: twelve columns on three ranks, with the targets framed. Of token 0, each rank knows the
# largest of its own logits, a part of the sum, and, if it has the target's column, the target's logit. The last line of
# the table is all that the loss needs.
#
# The **z-loss** adds a small multiple of $(\log Z)^2$ to the loss of each token. The cross-entropy does not change when
# all logits of a token grow by the same amount, so nothing else keeps them from drifting away together.

# %% [markdown]
# **Predict:** 8,192 tokens, a vocabulary of 128,256, 8 ranks, everything in float32. To gather the logits, each rank
# would send 3,677 MB. Now the ranks need only the maximum, the sum and the target's logit of each token, by three
# all-reduces, each of them a ring. How many MB does a rank send?

# %% nbgrader={"grade": false, "grade_id": "17-predict-loss-sent", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sent for the loss", None, unit="MB")

# %% [markdown]
# [[exercise 17-vocab-loss]]
#
# Write `vocab_parallel_loss(comm, logits, targets, ignore_index, z_weight)`. It returns the mean cross-entropy as a
# float32 scalar tensor, the same on all ranks, whose `backward()` gives each rank the gradient of its own logits.
#
# - `logits` has shape `(n_tokens, columns)`: rank $r$ holds columns $rc$ to $(r+1)c - 1$ of the vocabulary, where $c$
#   is `columns`. It may be in bfloat16; then compute in float32. All ranks have the same `targets`, which are column
#   numbers in the whole vocabulary.
# - Tokens whose target is `ignore_index` do not count: they add nothing to the sum, they are not counted in the number
#   that the sum is divided by, and their gradient is 0. `ignore_index` may be a number that some rank has a column for.
# - Add `z_weight` times the mean of $(\log Z)^2$ over the tokens that count.
# - The vocabulary is padded to a multiple of the number of ranks with columns whose logits are $-\infty$. It can happen
#   that a rank has no other columns.
# - Call at most three collectives, forward and backward together. In all of them, a rank contributes at most three
#   numbers for each token.
# - Besides `logits` itself, a rank may at no time hold more than six tensors of its size in float32, nor any tensor as
#   wide as the whole vocabulary.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write the formula for one process first, with the maximum subtracted. Then ask of every number in it: which rank knows
# it, and what do the others contribute instead?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# One all-reduce with `op="max"` brings the maximum, `top`. Then sum `(logits - top[:, None]).exp()` along each row. A
# target belongs to this rank if `0 <= target - rank * columns < columns`; all other ranks put 0 into the sum for it.
# Autograd does not see what a collective writes, so write a `torch.autograd.Function` whose `backward` returns the
# softmax, less 1 at the target.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Let `shifted = logits.float() - top[:, None]`, `own = targets - comm.rank * columns`, and
# `is_here = (own >= 0) & (own < columns)`. The target's logit, less the maximum, or 0:
# `picked = torch.where(is_here, shifted.gather(1, own.clamp(0, columns - 1)[:, None])[:, 0], 0.0)`. With
# `sums = torch.stack([shifted.exp().sum(1), picked])` one all-reduce brings both. The loss of a token is
# `sums[0].log() - sums[1]`, and `log_z = sums[0].log() + top`. In `backward`, the softmax of a row is multiplied by
# `(1 + 2 * z_weight * log_z) / n_counted`, and `1 / n_counted` is subtracted at the target, if it is here. Rows that
# do not count are 0. Everything is multiplied by the gradient that `backward` receives.
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
# Here is what your function sends for such a loss on 8 ranks. It is measured with 512 tokens and scaled up to 8,192:

# %%
if written(vocab_parallel_loss):
    loss_mb = 16 * loss_bytes_sent(vocab_parallel_loss, n_ranks=8, n_tokens=512) / 1e6
    print(f"a rank sends {loss_mb:.2f} MB for the loss of 8,192 tokens")
    guesses.settle("sent for the loss", loss_mb)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 0.17 MB: three numbers of 4 bytes for each of 8,192 tokens are 98 KB, and in a ring all-reduce each rank sends
# $2 \cdot 7/8$ times as many bytes as the tensor has. (With one all-gather of three numbers, as below, it is 0.69 MB.)
# The size of the vocabulary does not matter here. Gathering the logits would cost 21,000 times as much.
#
# </details>
#
# <details><summary>At most three collectives. How is one possible?</summary>
#
# Let each rank use its *own* maximum $m_r$ and its own sum $s_r = \sum e^{x_j - m_r}$. One all-gather gives every rank
# all the triples $(m_r, s_r, x_y \text{ or } 0)$. Then $m = \max_r m_r$ and $Z e^{-m} = \sum_r s_r e^{m_r - m}$, which
# each rank computes for itself. This is the online softmax of lab 13, over ranks instead of tiles. It sends four times
# the bytes on 8 ranks, but with one call instead of three, and for so few bytes the time of a call is mostly latency.
# (A rank with nothing but padding has $m_r = -\infty$, and $-\infty - (-\infty)$ is NaN. Subtract 0 there: the rank's
# sum is then 0.)
#
# </details>
#
# **In practice:** inside the context manager `torch.distributed.tensor.parallel.loss_parallel()`, `F.cross_entropy`
# does this for logits that are sharded by columns. Megatron-LM's function is `vocab_parallel_cross_entropy`. If the
# logits are still too large, cut the tokens into chunks as well, and compute one chunk's logits at a time.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Look up tokens in a table that no rank holds whole
#
# This section is optional. The embedding is a table with one *row* for each token of the vocabulary. It is cut by rows:
# with $c$ rows on each rank, rank $r$ holds rows $rc$ to $(r+1)c - 1$. For each token exactly one rank has the row. If
# all others put in 0, the results are partial, and one all-reduce makes them replicated. (With sequence parallelism it
# is a reduce-scatter.) In a model whose embedding and last layer share one weight, both cuts are the same: the last
# section's columns are the rows here, because `F.linear` keeps its matrix transposed.
#
# [[exercise 17-vocab-embedding]]
#
# Write `vocab_parallel_embedding(comm, weight, tokens)`. `weight` holds this rank's rows, the same number on every
# rank. `tokens` is a tensor of any shape with row numbers in the whole table, the same on all ranks. The result has
# shape `(*tokens.shape, width)` and is replicated. After `backward()`, each rank has the gradient of its own rows.
# There is one all-reduce in the forward pass, and no collective in the backward pass.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What does a rank look up for a token whose row it does not have, and what must it put into the sum?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Subtract the number of this rank's first row, clamp to rows that exist, look up, and multiply by 0 where the row
# belongs to another rank. Then sum over the ranks, with a backward pass that hands the gradient on unchanged.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `own = tokens - comm.rank * len(weight)`, `is_here = (own >= 0) & (own < len(weight))`, and
# `F.embedding(own.clamp(0, len(weight) - 1), weight) * is_here[..., None]`. In the `forward` of an autograd function,
# clone it and call `comm.all_reduce`. Its `backward(ctx, grad)` returns `grad, None`.
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
# **In practice:** `RowwiseParallel` on an `nn.Embedding` does this in PyTorch, and `VocabParallelEmbedding` in
# Megatron-LM.

# %% [markdown]
# ## Decide who talks to whom
#
# The exercise of this section is optional. It is worth its time if you go on to labs 18 and 19, whose stages, parts of a
# context and experts are laid over ranks like this. Read the first half in any case: it says why tensor groups stay
# inside a node.
#
# A large run cuts in several directions at once. Each rank has a place in every one of them, and talks to different
# ranks for different reasons. The ranks of a data group have different data, those of a context group different parts
# of the context, and so on:
#
# | group | its ranks have | what they send | how often, forward and backward together |
# |---|---|---|---|
# | **tensor** | the same tokens, different parts of each layer | activations, by all-reduce | four times per layer and micro-batch |
# | **context** | different parts of the same sequences | keys, values and their gradients (lab 19) | once each way per layer and micro-batch |
# | **data** | different samples, the same weights | gradients | once per step |
# | **pipeline** | different layers | activations between two stages, and their gradients (lab 18) | once each way per micro-batch |
# | **expert** | different experts of a layer | tokens, to the rank with their expert and back (lab 19) | four times per layer and micro-batch |
#
# Tensor groups send the most, and their ranks can compute nothing meanwhile, because the next operation needs the
# result. Here is a model of 70 billion parameters, with 80 layers of width 8,192, on 8 × 4 × 2 ranks (tensor, pipeline,
# data). The two data-parallel copies of the model each process 16 micro-batches of 4,096 tokens per step. Everything is
# in 16 bits.

# %%
sent = sent_by_kind(n_params=70e9, width=8192, n_layers=80, n_tokens=4096, n_micro=16)
for kind, n_bytes in sent.items():
    within, between = n_bytes / 400e9, n_bytes / 50e9
    print(
        f"{kind:9}{n_bytes / 1e9:8.1f} GB per step and rank: {within:6.2f} s within a node, "
        f"{between:6.2f} s between nodes"
    )

# %% [markdown]
# In this example, a GPU sends 400 GB/s within a node, and 50 GB/s to another node. If it computes 400 TFLOP/s, its work
# in such a step takes 2.2 s. Tensor groups inside a node add 0.4 s to that. Tensor groups across nodes would add 3 s,
# more than the computation itself. **So a tensor group never leaves its node**, and pipelines, which send the least,
# cross from node to node.
#
# In code this is only a matter of numbering. Launchers number ranks node by node: with 8 GPUs per node, ranks 0 to 7
# are on the first node. Think of the ranks as a grid in which one dimension runs fastest, like the last index of a
# tensor in memory. Ranks that differ only in the fastest dimension have consecutive numbers, so they are on one node.

# %% tags=["figure"]
labkit.figures.grid_of_ranks()

# %% [markdown]
# An example: 2 nodes of 8 GPUs, with tensor groups of 2, pipelines of 4 stages, and data groups of 2. Tensor runs
# fastest, then data, then pipeline. Under the number of each rank stand its places in the three dimensions. The
# coloured ranks are those that rank 5 talks to: each of them has two of its three places in common with rank 5.

# %% [markdown]
# **Predict:** in this picture there are 8 tensor groups, 8 data groups and 4 pipelines. How many of these 20 groups
# have ranks on both nodes?

# %% nbgrader={"grade": false, "grade_id": "17-predict-crossing", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("groups on two nodes", None, unit="groups")

# %% [markdown]
# [[exercise 17-rank-groups]]
#
# Write `rank_groups(n_nodes, ranks_per_node, tensor, context, pipeline, expert)`. The last four are sizes of groups.
# The size of a data group follows from them: the number of all ranks divided by `tensor * context * pipeline`. In the
# grid, tensor runs fastest, then context, then data, then pipeline.
#
# Return a dict with the seven keys below. Each value is a list of all groups of that kind, in any order. A group is a
# list of ranks in ascending order, and can have only one rank:
#
# - `"tensor"`, `"context"`, `"data"`, `"pipeline"`: ranks that differ in this dimension alone.
# - `"gradients"`: ranks that hold the same dense weights (all weights but those of experts), over which the gradients
#   of these weights are averaged. They differ in data or context or both, because a part of a sequence gives a part of
#   the gradient, as a sample does.
# - `"expert"`: ranks that together hold all experts of a layer. Take each group of `"gradients"` in ascending order:
#   its first `expert` ranks are one expert group, the next `expert` ranks another one, and so on.
# - `"expert_gradients"`: ranks that hold the same experts. These are the ranks of one `"gradients"` group that have the
#   same place in their expert groups.
#
# Raise `ValueError` if `tensor * context * pipeline` does not divide the number of ranks, if `expert` does not divide
# the size of the `"gradients"` groups, or if some tensor group would have ranks on two nodes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `torch.arange(n_ranks).reshape(...)` is the grid. Which of its dimensions is the last one?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# For each kind, move its dimension to the end of the grid and flatten all others: then each row is a group. For
# `"gradients"`, reshape the grid so that data and context are one dimension. For the experts, split this dimension in
# two.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `grid = torch.arange(n).reshape(pipeline, data, context, tensor)`, and
# `grid.movedim(dim, -1).reshape(-1, grid.shape[dim]).tolist()` are the groups of a dimension. The experts' grid has the
# shape `(pipeline, data * context // expert, expert, tensor)`. Some tensor group has ranks on two nodes if
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


# %% nbgrader={"grade": true, "grade_id": "17-rank-groups-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("17-rank-groups", rank_groups)

# %% [markdown]
# Your groups of the example. Each panel is one kind, and ranks with the same colour and letter are one group:

# %% tags=["figure"]
labkit.figures.rank_grid(rank_groups(2, 8, tensor=2, pipeline=4), 8, ("tensor", "data", "pipeline"))

# %%
if written(rank_groups):
    of_example = rank_groups(2, 8, tensor=2, pipeline=4)
    for kind in ("tensor", "data", "pipeline"):
        crossing = sum(len({rank // 8 for rank in group}) > 1 for group in of_example[kind])
        print(f"{kind:9}{len(of_example[kind])} groups, {crossing} on two nodes")
    guesses.settle(
        "groups on two nodes",
        sum(
            len({rank // 8 for rank in group}) > 1
            for kind in ("tensor", "data", "pipeline")
            for group in of_example[kind]
        ),
    )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Four: the four pipelines, and nothing else. Each pipeline has two stages on each node, so the activations of a
# micro-batch cross between nodes once, and their gradients once on the way back. The data groups stay inside a node as
# well, because data runs faster than pipeline.
#
# </details>
#
# Now all kinds at once, on 4 nodes: tensor groups of 2, context groups of 2, pipelines of 2 stages, and expert groups
# of 4.

# %% tags=["figure"]
labkit.figures.rank_grid(
    rank_groups(4, 8, tensor=2, context=2, pipeline=2, expert=4),
    8,
    ("tensor", "context", "data", "pipeline", "gradients", "expert"),
)

# %% [markdown]
# Look at an expert group: it consists of two context groups and has two of the four ranks of two data groups. For the
# experts it does not matter whether two ranks have different samples or different parts of one sample. Every tensor
# group is a pair of neighbours on one node.
#
# **In practice:** `init_device_mesh("cuda", (4, 2, 2), mesh_dim_names=("pp", "dp", "tp"))` makes the grid of the first
# example (the last dimension runs fastest), and `mesh["tp"].get_group()` is the tensor group of the calling rank. In
# Megatron-LM a flag, `--use-tp-pp-dp-mapping`, exchanges data and pipeline. The groups stay inside nodes only if ranks
# are numbered node by node, as `torchrun` numbers them.

# %% [markdown]
# ## Find what no loss curve shows
#
# A program that combines tensor, sequence and data parallelism has a dozen places where something must be summed over
# some group, and real frameworks have had bugs in such places. None of these bugs raises an error, and most do not
# change the loss of the first step at all.
#
# One old method finds all of them: run one step on the ranks and the same step in one process, with the same weights,
# tokens and dropout masks, and **compare the gradients, parameter by parameter, rank by rank**. In float64 the two
# agree to about 12 digits if the program is right. If they do not, which gradients differ, and how, tells you what is
# wrong.
#
# The rest of this lab uses a small transformer of two blocks on 2 × 4 ranks (data, tensor), written as in the sections
# above. Between the layers it is sequence-parallel, and the four ranks of a tensor group share two key and value heads.
# Here it is with one bug: somebody forgot to sum the gradient of one norm.

# %% tags=["figure"]
one_bug = run_with("not summed", "blocks.0.norm2.weight")
labkit.figures.gradient_ratios(one_bug.reference, one_bug.ranks)

# %% [markdown]
# A row is a parameter, in the order of the forward pass. A dot is a rank: the norm of its gradient, divided by the norm
# of the gradient that it should have. One row is wrong, and its pattern says why: the ranks' gradients have different
# norms, and they point in other directions than the right one. So each of them is only a term of a sum.
#
# These are the ten kinds of bugs. $t$ is the size of a tensor group, and $d$ the size of a data group. Here they are
# always different. The **reference** is the gradient that a rank should have: its part of the gradient of one process.
#
# | kind | what went wrong | what the gradients look like |
# |---|---|---|
# | `"not summed"` | a parameter is used on a rank's own tokens only, as a norm is, and its gradient was not summed over the tensor group | one parameter: the gradients of the ranks of a tensor group add up to the reference |
# | `"replicas not summed"` | several ranks hold the same key and value head, each for its own query heads, and its gradient was not summed over them | one parameter: the same, but only the ranks of a tensor group whose *references are equal* add up to it, and these are not all of the group |
# | `"wrong group"` | the gradient of a cut weight was averaged over all ranks, not over its data group | one parameter: every rank has the mean of the references of its tensor group |
# | `"on every rank"` | a bias was added by every rank before the sum (it is 0 at the start, so the loss is right) | one parameter: $t$ times the reference |
# | `"ties not summed"` | embedding and head are one weight, but each of the two copies kept its own gradient | two parameters with equal references: the gradients of the two add up to the reference |
# | `"backward not reduced"` | the backward pass of an all-gather took the rank's own gradient, where the gradients of all ranks should be added up | every parameter before that place is wrong, every one after it is right |
# | `"averaged twice"` | the loss was divided by $d$ before `backward()`, and then the gradients were averaged over the data group as well | all parameters: $1/d$ of the reference |
# | `"wrong world size"` | gradients were summed over the data group, but divided by the number of all ranks | all parameters: $1/t$ of the reference |
# | `"clipped locally"` | each rank clipped its gradients by the norm of what it holds itself | all parameters: one factor for each rank, which is not the same for all ranks of a tensor group |
# | `"one seed"` | all ranks of a tensor group use the same dropout mask, though they have different tokens | all parameters differ, and not by a factor |

# %% [markdown]
# **Predict:** for how many of the ten bugs does the loss of the first step, as it is logged, differ from the right one?

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
# One: `"one seed"` changes the forward pass. (Nobody would notice that either without the right loss beside it: it is a
# plausible loss, only with other dropout masks.) Eight of the others are in the backward pass or after it, and the bias
# that is added on every rank is still 0. (The run with a tied weight is one of another model, so both of its losses are
# others.) The losses of later steps do differ, but you have no right ones to compare them with.
#
# </details>
#
# [[exercise 17-compose-bugs]]
#
# Write `blame(reference_grads, rank_grads, groups)`. It returns `(parameter, kind)`, or `None` if everything is right.
#
# - `reference_grads[rank][name]` is the gradient that the rank should have, and `rank_grads[rank][name]` the one that
#   it has: float64 tensors of the same shape. The names come in the order of the forward pass.
# - `groups["tensor"]` and `groups["data"]` are lists of groups, as `rank_groups` returns them. Their sizes are not
#   always 4 and 2.
# - `kind` is one of the ten strings of the table. Tell it by the numbers: the same parameter can have bugs of several
#   kinds, so its name is not enough.
# - `parameter` is the name of the wrong parameter. For `"ties not summed"` it is the first of the two names. For
#   `"backward not reduced"` it is the wrong parameter nearest to the loss. If *all* parameters are wrong, it is `"all"`.
# - A run has at most one bug. Tensors that should be equal are: the norm of their difference is at most $10^{-8}$ of
#   their norm. All others differ by far more.
#
# <details><summary>Hint 1: a nudge</summary>
#
# First list the wrong parameters: those for which some rank differs from its reference. Then ask how many there are.
# None, one, two, all, or something in between?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# All: divide norms to get one factor for each rank, and test whether the reference times this factor is the gradient,
# for *every* parameter. If not, it is the seed. Two: test whether they are tied. One: four kinds of bugs make one
# parameter wrong, so test for them one after the other. For the two missing sums, add up the gradients of those ranks
# of the tensor group whose references are equal to the rank's own.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `def near(a, b): return (a - b).norm() <= 1e-8 * b.norm()`. If two names are wrong, and their gradients add up to the
# reference, they are tied. For one wrong name, a test has to hold on every rank. Let `got` and `ref` be the rank's
# tensors and `group` its tensor group: `near(got, t * ref)` is "on every rank", and `near(got, sum(refs of group) / t)`
# is "wrong group". With `alike = [r for r in group if torch.equal(refs[r], ref)]`, `near(sum(gots of alike), ref)` is a
# missing sum, of replicas if `len(alike) < t`. If nothing fits, it is "backward not reduced", at the last of the wrong
# names.
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
# Your tool, on all ten runs from above. Below the list is the run with an all-gather whose backward pass is wrong, this
# time behind `blocks.1.norm1`:

# %%
for kind, run in runs_of_bugs.items():
    print(f"{kind:22}{blame(run.reference, run.ranks, run.groups)}")

# %% tags=["figure"]
unreduced = run_with("backward not reduced", "blocks.1.norm1.weight")
labkit.figures.gradient_ratios(
    unreduced.reference, unreduced.ranks, "backward not reduced: norm on the ranks / in one process"
)

# %% [markdown]
# This is what a mistake in the backward pass looks like: the parameters after it in the forward pass are right, and all
# those before it are wrong. In a model of 80 layers, too, the border between wrong and right is at one row. That is why
# parameters are compared in the order of the forward pass.
#
# **In practice** nobody can run 70 billion parameters in one process. Make the model small instead: two narrow layers,
# but with the same code and the same kinds of groups, in float64 (in float32, expect 4 digits), dropout included. Write
# it as a test that runs before every large run. Most projects compare only loss curves between layouts, and nine of the
# ten bugs of the table begin with the right loss.

# %% [markdown]
# ## Mend one
#
# Here is the end of such a program: what happens between the backward pass and the optimizer. `grads` are a rank's own
# gradients, and the function changes them in place. `cuts[name]` says how a parameter is cut: `"rows"` or `"columns"`
# (each rank of a tensor group has a different part), `"kv"` (key and value heads: the ranks in `replicas` have the same
# ones), or `"whole"` (every rank has all of it, and uses it on its own tokens). `ties` are pairs of names that belong
# to one weight. One line has a bug. It makes several parameters wrong at once, which is more than `blame` was written
# for, so read its answer with care:


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
# Write `finish_gradients`: the same function without the bug. After it, each rank has its part of the gradients of one
# process. It gets the communicators of three groups: `tensor`, `replicas` (the ranks of the tensor group that hold the
# same key and value heads; it may be this rank alone) and `data`. Each tensor group has computed the mean loss of its
# own batch, and the loss of one process is the mean of these losses.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which rows of the figure are wrong? What do these parameters have in common with the norms?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The bias of a layer that is cut by rows of $B$ (`o.bias`, `down.bias`) is added after the reduce-scatter, so each rank
# adds it to its own tokens. Its gradient is partial, as that of a norm is. A name does not tell you which parameters
# these are: `up.bias` is a bias as well, but it is cut by rows and needs no sum.
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
# Megatron-LM does not go by names either: such parameters carry the attribute `sequence_parallel = True`, and the code
# that finishes the gradients looks for it. If the author of a new layer forgets the attribute, the bug is back, and no
# loss curve will show it.

# %% [markdown]
# ## What you measured
#
# What one of four ranks keeps and sends, with your own classes:

# %%
if written(ParallelMLP, SequenceParallelMLP):
    print(
        f"MLP: {cut_mlp.share:.1%} of the weights, {cut_mlp.collectives} all-reduces, {cut_mlp.sent:,} B"
    )
    for name, cost in costs.items():
        print(f"{name:22} held {cost.held:>9,} B after the forward pass, {cost.sent:>9,} B sent")

# %% [markdown]
# | technique | what it sends | memory per rank | what limits $t$ |
# |---|---|---|---|
# | MLP in columns, then rows | one all-reduce of the activations each way | weights and hidden activations divided by $t$ | bandwidth: the GPUs of one node |
# | attention by heads | the same | the same, but keys and values never less than one head | the number of query heads |
# | sequence parallelism | one all-gather more, in the backward pass | activations between the layers divided by $t$ | the same as for the layers |
# | loss over a cut vocabulary | three numbers for each token | logits divided by $t$ | hardly anything |
#
# Every tensor is replicated, sharded or partial, and a collective changes that word. When you suspect a mistake,
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
# There are two questions, worth 2 points each. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) A model with 32 layers and 4,096 columns is trained on 4,096 tokens at a time in 16 bits, with
# tensor parallelism over 8 GPUs. Each layer has an attention and an MLP block. How many bytes does a GPU send for the
# all-reduces (rings) of one forward and backward pass? How long does this take at 400 GB/s within a node, and at
# 50 GB/s between nodes? Compare both with the time for computing: each GPU computes 400 TFLOP/s, and a layer has
# $12 \cdot 4096^2$ weights.

# %% [markdown] nbgrader={"grade": true, "grade_id": "17-open-inside-a-node", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# One tensor is 4096 x 4096 x 2 B = 33.6 MB. An all-reduce sends 2 x 7/8 of it: 58.7 MB. Four of them in each of 32
# layers: 128 x 58.7 MB = 7.5 GB. Within a node 19 ms, between nodes 150 ms. Computing: 6 x 32 x 12 x 4096^2 x 4096 =
# 1.58e14 FLOP, over 8 GPUs 2.0e13, at 400 TFLOP/s 49 ms. So within a node communication adds about 38 % if it does not
# overlap, and between nodes it takes three times as long as the work: tensor groups stay inside a node.
#
# Marks: 1 for the bytes (1/2 if the factor 2 x 7/8 is missing or there are two all-reduces instead of four a layer).
# 1/2 for the time for computing. 1/2 for the comparison.
# ### END SOLUTION

# %% [markdown]
# **B.** (2 points) A colleague adds dropout after the all-reduce of the MLP, on the replicated output, and draws the
# mask from the generator for sharded tensors. The loss falls, and the gradients of all cut weights look plausible.
# What exactly goes wrong, and which comparison would have shown it in the first step?

# %% [markdown] nbgrader={"grade": true, "grade_id": "17-open-dropout", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The output should be replicated, but with a different mask on each rank the ranks go on with different activations:
# each has a residual stream of its own. The next layer's all-reduce then adds up terms that belong to different inputs.
# In the backward pass, the gradients of the replicated parameters (norms, output biases) differ between ranks, so that
# their copies drift apart. Compare a tensor that should be replicated over the ranks (the output, or a norm's gradient)
# bit by bit, or all gradients with those of one process that uses the same mask.
#
# Marks: 1 for "the copies differ from here on", with a consequence. 1 for a comparison that shows it (ranks among each
# other, or with one process; not the loss).
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Mohammad Shoeybi and others, *Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism*
#   (2019). Columns, then rows; heads; the vocabulary.
# - Vijay Korthikanti and others, *Reducing Activation Recomputation in Large Transformer Models* (MLSys 2023). Sequence
#   parallelism.
# - PyTorch's documentation of `torch.distributed.tensor.parallel`, whose `DTensor` calls the three words `Replicate`,
#   `Shard` and `Partial`.
#
# **Sources.** The texts above. Grouped-query attention: Joshua Ainslie and others, *GQA: Training Generalized
# Multi-Query Transformer Models from Multi-Head Checkpoints* (EMNLP 2023). The numbers of heads of Llama 3.1 405B: its
# model card. The seeds of sharded and replicated regions: Megatron-LM's `tensor_parallel/random.py`.
