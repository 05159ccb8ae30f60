# %% [markdown]
# # Lab 19: Long context and experts
#
# The keys and values of one million tokens of Llama-3-8B are 131 GB. A GPU with 80 GB cannot hold them, so the text
# is cut into 8 equal parts, one for each rank. The parts are equal, but the work is not. A token attends to itself
# and to everything before it, so in attention the last rank computes 15 times as much as the first, and on average
# the ranks are idle for 47 % of the time. **How do you cut a triangle into 8 equal pieces?**
#
# You will deal out a text so that all ranks have the same work. You will send keys and values around a ring of ranks,
# so that each query meets every key before it, although no rank ever holds the whole text. The second half of the lab
# is about a mixture of experts: you will send tokens to experts on other ranks and back, and decide which tokens are
# dropped when too many choose the same expert. At the end you will plan whole training runs, of up to a trillion
# parameters on 3,072 GPUs: which of the ways to cut up training, from all the labs before, belong together?
#
# [[time]]
#
# You need to know what ranks and their collectives are (lab 14), and what online softmax is (lab 13).

# %% nbgrader={"grade": false, "grade_id": "19-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import labkit.figures
import torch
from labkit import Predictions, check, progress, run_ranks, written
from labkit.material.lab19 import (
    attend,
    attend_backward,
    expert_counts,
    moe_traffic,
    one_text,
    ring_error,
    ring_pass,
    router_logits,
    trade_blocks,
    trade_error,
)
from labkit.plan import (
    LLAMA_8B,
    LLAMA_8B_LONG,
    LLAMA_8B_SMALL_BATCH,
    LLAMA_70B,
    MEGATRON_1T,
    MIXTRAL,
    P4D,
    RECOMPUTATIONS,
    SELENE,
    SIXTEEN_EXPERTS,
    Cluster,
    Model,
    Plan,
    broken_rules,
    divisors,
    leonardo,
    step_time,
)
from labkit.ranks import Comm, measure_ranks
from torch import Tensor

guesses = Predictions("19")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# Here is where these numbers come from. Llama-3-8B has 32 layers. Each has 8 heads of keys and values, with 128
# numbers of 16 bits per token and head:

# %%
token_bytes = 32 * 2 * 8 * 128 * 2  # layers x (keys, values) x heads x numbers x bytes
n_tokens, n_ranks = 1_000_000, 8
block = n_tokens // n_ranks
pairs = [
    sum(range(rank * block + 1, (rank + 1) * block + 1)) for rank in range(n_ranks)
]  # position p sees p + 1 tokens

print(f"a token's keys and values   {token_bytes:,} bytes ({token_bytes / 2**10:.0f} KiB)")
print(f"a million tokens            {n_tokens * token_bytes / 1e9:.0f} GB")
print(f"last rank / first rank      {pairs[-1] / pairs[0]:.1f}")
print(f"idle time, mean of ranks    {1 - sum(pairs) / (n_ranks * max(pairs)):.0%}")

# %% [markdown]
# ## Cut a triangle into equal parts
#
# Splitting the *sequence* among ranks is called **context parallelism**. Everything in a transformer except attention
# works on each token alone, so for a linear layer or a norm it does not matter which rank has which token. Attention
# with a causal mask is the exception: the query at position $p$ (counted from 0) meets $p + 1$ keys. A rank's
# **work** is the sum of $p + 1$ over its positions. For a text of $s$ tokens, all ranks together have the lower
# triangle of an $s \times s$ square, diagonal included.
#
# Here is the triangle for 48 tokens on 4 ranks, in contiguous blocks. Each row is a query, in the colour of its rank.
# The bars show each rank's work:

# %%
labkit.figures.causal_deal(
    [list(range(rank * 12, rank * 12 + 12)) for rank in range(4)], "contiguous blocks"
)

# %% [markdown]
# **Predict:** 4 ranks have contiguous blocks, as in the picture, and attention is done when the last rank is done. By
# what factor does it take longer than it would if the work were perfectly even?

# %% nbgrader={"grade": false, "grade_id": "19-predict-contiguous", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("time with contiguous blocks / even work", None)

# %%
block_work = [sum(p + 1 for p in range(rank * 12, rank * 12 + 12)) for rank in range(4)]
print("pairs by rank:", block_work)
guesses.settle("time with contiguous blocks / even work", max(block_work) / (sum(block_work) / 4))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 1.73. All ranks wait for the last one. It has 510 of the 1,176 pairs of a query and a key, and an even share would
# be a quarter, 294. With more ranks the factor grows towards 2: the last rank's rows are then nearly full, and the
# average row is half full.
#
# </details>
#
# [[exercise 19-zigzag]]
#
# Think of the text as $2n$ chunks for $n$ ranks. An early chunk is cheap and a late one is expensive, so give each
# rank one of each. Below, $s$ is `n_tokens`.
#
# - `zigzag(n_tokens, n_ranks)` returns for each rank a list of its positions, in any order. Every position belongs to
#   exactly one rank, and no rank gets more than $2\lceil s/2n \rceil$ positions. If $s$ is a multiple of $2n$, all
#   ranks have exactly the same work. If it is not, and the text has at least $64\,n$ tokens, the largest work of a
#   rank is at most 1.05 times the smallest.
# - `deal(tokens, n_ranks)` takes `tokens`, (texts, $s+1$): the texts with one token more, so that each of the $s$
#   inputs has a label, the token that follows it. It deals them as your `zigzag` says. For each rank it returns
#   `(inputs, labels, positions)`, all int64: two tensors of shape (texts, length) and one of shape (length,), in the
#   order of the rank's list. All ranks call the same collectives with the same shapes, so `length` is the same for
#   all of them, and at most $2\lceil s/2n \rceil$. A rank with a shorter list has unused places, most simply at the
#   end. There the input is 0, the label is -100 (which `cross_entropy` ignores) and the position is -1. In a text of
#   fewer than $2n$ tokens a rank may have no token at all.
# - `undo(parts, n_tokens)` takes for each rank `(values, positions)`: values of shape (texts, length, width), one for
#   each place, and positions of shape (length,), with -1 at unused places, whose values mean nothing. It returns the
#   values in the order of the text, (texts, $s$, width). It must work for *any* way to deal, not only for yours.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The work of chunk $c$ grows linearly with $c$. Which pairs of chunks have as much work as the first and the last one
# together?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Rank $r$ gets the chunks $r$ and $2n-1-r$. If $2n$ does not divide the length, let the sizes of the chunks differ by
# at most one token. If you round the size up for all of them instead, every missing token is missing at the end of
# the text, where a token costs the most, and rank 0, which has the last chunk, has too little work.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Chunk $c$ starts at position `c * n_tokens // (2 * n_ranks)` and ends before `(c + 1) * n_tokens // (2 * n_ranks)`.
# In `deal`, start with tensors that hold nothing but padding, and fill the first `len(mine)` places, where `mine` is
# the rank's list. In `undo`, the places in use are those with `positions >= 0`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "19-zigzag", "locked": false, "schema_version": 3, "solution": true, "task": false}
def zigzag(n_tokens: int, n_ranks: int) -> list[list[int]]:
    """For each rank the positions that it gets, with the same work for all under a causal mask."""
    ### BEGIN SOLUTION
    n_chunks = 2 * n_ranks
    cuts = [chunk * n_tokens // n_chunks for chunk in range(n_chunks + 1)]
    chunks = [list(range(cuts[i], cuts[i + 1])) for i in range(n_chunks)]
    return [chunks[rank] + chunks[n_chunks - 1 - rank] for rank in range(n_ranks)]
    ### END SOLUTION


def deal(tokens: Tensor, n_ranks: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each rank (inputs, labels, positions), padded to one length with 0, -100 and -1."""
    ### BEGIN SOLUTION
    n_texts, n_tokens = tokens.shape[0], tokens.shape[1] - 1
    order = zigzag(n_tokens, n_ranks)
    length = max(len(mine) for mine in order)
    parts = []
    for mine in order:
        at = torch.tensor(mine, dtype=torch.int64)
        inputs = torch.zeros(n_texts, length, dtype=torch.int64)
        labels = torch.full((n_texts, length), -100)
        positions = torch.full((length,), -1)
        inputs[:, : len(mine)] = tokens[:, at]
        labels[:, : len(mine)] = tokens[:, at + 1]
        positions[: len(mine)] = at
        parts.append((inputs, labels, positions))
    return parts
    ### END SOLUTION


def undo(parts: Sequence[tuple[Tensor, Tensor]], n_tokens: int) -> Tensor:
    """The values of all ranks in the order of the text."""
    ### BEGIN SOLUTION
    first = parts[0][0]
    whole = first.new_empty(first.shape[0], n_tokens, *first.shape[2:])
    for values, positions in parts:
        used = positions >= 0
        whole[:, positions[used]] = values[:, used]
    return whole
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "19-zigzag-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("19-zigzag", zigzag, deal, undo)

# %% [markdown]
# Here is the same triangle, above in contiguous blocks and below as your function deals it. What a rank's early chunk
# lacks, its late chunk makes up for. Move the slider: the more ranks, the longer the last one takes in contiguous
# blocks. (A printed page has no sliders. It shows 4 ranks.)

# %%
if written(zigzag):
    display(labkit.figures.deal_player(zigzag))
    print("tokens   ranks   most work / least, contiguous   yours")
    for s, n in ((1024, 8), (1025, 8), (4096, 32), (4159, 32)):
        blocks = [list(range(r * s // n, (r + 1) * s // n)) for r in range(n)]
        ratios = []
        for dealt in (blocks, zigzag(s, n)):
            works = [sum(p + 1 for p in mine) for mine in dealt]
            ratios.append(max(works) / min(works))
        print(f"{s:6}{n:8}{ratios[0]:24.1f}{ratios[1]:16.4f}")

# %% [markdown]
# If the length is not a multiple of $2n$, the work is no longer exactly even, but it stays within a few percent.
# Training runs avoid even this: they pad their texts to a multiple of $2n$.
#
# **In practice** Megatron-LM cuts a sequence in this way whenever `--context-parallel-size` is above 1. PyTorch does
# it in `torch.distributed.tensor.experimental.context_parallel`, which shards all the tensors that you name in the
# same way: the inputs, the labels and the positions.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Attention around a ring
#
# Each rank has the queries, keys and values of its own positions, and each query has to meet the keys of *all* ranks.
# If every rank gathered them, it would hold the whole text again. In **ring attention** the queries stay, and blocks
# of keys and values travel. A **block** is what one rank started with, its keys and values together. The table shows
# which block each of 4 ranks works on:
#
# | step | rank 0 | rank 1 | rank 2 | rank 3 |
# |---|---|---|---|---|
# | 0 | own block | own block | own block | own block |
# | 1 | block of rank 3 | block of rank 0 | block of rank 1 | block of rank 2 |
# | 2 | block of rank 2 | block of rank 3 | block of rank 0 | block of rank 1 |
# | 3 | block of rank 1 | block of rank 2 | block of rank 3 | block of rank 0 |
#
# Between two steps every rank $r$ sends the block that it has to rank $r+1$ and receives the next one from rank
# $r-1$; rank $n-1$ sends to rank 0. After $n-1$ such **hops** every rank has met all $n$ blocks, and it has never
# held more than two.
#
# A rank cannot finish a softmax with one block, because the sum of the exponentials is not complete. Lab 13's online
# softmax solved the same problem, and the same idea solves it here. For each block $b$ a rank computes two things
# over the keys of this block alone: the output $o_b$, and the logarithm of the sum of the exponentials of the scores,
# $\ell_b = \log \sum e^{\text{score}}$ (**lse**, for log-sum-exp). Two blocks $a$ and $b$ together have
#
# $$\ell = \log(e^{\ell_a} + e^{\ell_b}), \qquad o = e^{\ell_a - \ell}\, o_a + e^{\ell_b - \ell}\, o_b.$$
#
# In the backward pass the attention weight of a key is $e^{\text{score} - \ell}$, with the final $\ell$. So again
# each block can be computed separately. But the queries of *all* ranks contribute to the gradients of a block's keys
# and values. So these gradients travel *with* the block, and each rank adds its contribution to them.

# %% [markdown]
# **Predict:** there are 8 ranks. The keys and values of a block are 1 MB together, and so are their gradients. How
# many MB does a rank send in the forward and the backward pass together?

# %% nbgrader={"grade": false, "grade_id": "19-predict-ring-bytes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sent in a ring of 8", None, unit="MB")

# %% [markdown]
# [[exercise 19-ring-attention]]
#
# `positions` is (ranks, length): row `r` has the positions of rank `r` in the text, in any order. `q`, `k`, `v`,
# `out` and the gradients are (heads, length, d), and `lse` is (heads, length). Two functions, which are given,
# compute what concerns a single block:
#
# - `attend(q, k, v, q_positions, k_positions)` returns `(out, lse)` over these keys alone, with the causal mask
#   applied. A query that sees none of these keys has the output 0 and the lse $-\infty$.
# - `attend_backward(q, k, v, q_positions, k_positions, out, lse, d_out)` returns `(d_q, d_k, d_v)`: what these keys
#   contribute to the gradient of `q`, and what these queries contribute to the gradients of `k` and `v`. Here `out`
#   and `lse` are those over *all* keys of the text, and `d_out` is the gradient with respect to `out`.
#
# You write the ring, with `comm.isend(tensor, to_rank)` and `comm.irecv(tensor, from_rank)` from lab 14:
#
# - `ring_forward(comm, q, k, v, positions)` returns `(out, lse)` of the rank's queries over all keys of the text.
# - `ring_backward(comm, q, k, v, positions, out, lse, d_out)` returns the gradients of the rank's own `q`, `k` and
#   `v`.
#
# In the forward pass keys and values travel $n-1$ hops. In the backward pass they travel $n-1$ hops again, and their
# gradients travel $n$. A rank never holds more than two blocks of keys and values, and two of their gradients. There
# are at least two ranks.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `torch.stack([k, v])` makes one message of two. Whose block does rank $r$ have after `step` hops? Look at the table
# above.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In each step start both transfers (`isend`, `irecv`), work on the block that you have, then wait for both. Begin
# with your own block: there every query sees at least itself, so `lse` is finite from the first step on.
# `torch.logaddexp` computes $\log(e^a + e^b)$.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In the backward pass, start with `block = torch.stack([k, v])` and `grads = torch.zeros_like(block)`. In each of $n$
# steps add what your queries contribute to `grads`, then pass `grads` on. Pass it on after the last step too, and the
# gradients of your own keys and values come home. Pass `block` on in every step but the last.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "19-ring-attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring_forward(
    comm: Comm, q: Tensor, k: Tensor, v: Tensor, positions: Tensor
) -> tuple[Tensor, Tensor]:
    """(out, lse) of the rank's queries over the keys of all ranks."""
    ### BEGIN SOLUTION
    n, rank = comm.world_size, comm.rank
    block = torch.stack([k, v])
    out, lse = attend(q, k, v, positions[rank], positions[rank])
    for step in range(1, n):
        coming = torch.empty_like(block)
        works = [comm.isend(block, (rank + 1) % n), comm.irecv(coming, (rank - 1) % n)]
        for work in works:
            work.wait()
        block = coming
        o, part = attend(q, block[0], block[1], positions[rank], positions[(rank - step) % n])
        both = torch.logaddexp(lse, part)
        out = out * (lse - both).exp()[..., None] + o * (part - both).exp()[..., None]
        lse = both
    return out, lse
    ### END SOLUTION


def ring_backward(
    comm: Comm,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    positions: Tensor,
    out: Tensor,
    lse: Tensor,
    d_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the rank's own q, k and v."""
    ### BEGIN SOLUTION
    n, rank = comm.world_size, comm.rank

    def pass_on(tensor: Tensor) -> Tensor:
        coming = torch.empty_like(tensor)
        works = [comm.isend(tensor, (rank + 1) % n), comm.irecv(coming, (rank - 1) % n)]
        for work in works:
            work.wait()
        return coming

    block, d_q = torch.stack([k, v]), torch.zeros_like(q)
    grads = torch.zeros_like(block)
    for step in range(n):
        at = positions[rank], positions[(rank - step) % n]
        of_q, of_k, of_v = attend_backward(q, block[0], block[1], *at, out, lse, d_out)
        d_q += of_q
        grads[0] += of_k
        grads[1] += of_v
        grads = pass_on(grads)
        if step < n - 1:
            block = pass_on(block)
    return d_q, grads[0], grads[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "19-ring-attention-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check("19-ring-attention", ring_forward, ring_backward)

# %%
if written(ring_forward, ring_backward):
    texts = one_text(n_ranks=8, length=64, n_heads=16, d=64)
    _, ring_traffic = measure_ranks(
        lambda comm: ring_pass(comm, texts, ring_forward, ring_backward), 8
    )
    block_bytes = 2 * 16 * 64 * 64 * 4
    print(f"a block of keys and values   {block_bytes / 1e6:.2f} MB")
    print(f"sent by a rank               {max(ring_traffic.bytes_sent) / 1e6:.2f} MB")
    print(f"in blocks                    {max(ring_traffic.bytes_sent) / block_bytes:.0f}")
    guesses.settle("sent in a ring of 8", max(ring_traffic.bytes_sent) / block_bytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 22 MB: $n-1 = 7$ hops in the forward pass, and in the backward pass 7 for keys and values and 8 for their gradients.
# Nearly all of it can travel while the ranks compute; only for the gradients' last hop is there no block left to work
# on. So the transfer costs time only if a block takes longer to send than to work on. The bytes of a block grow with
# its length, but the work grows with the *square* of its length, so for long blocks the transfer is hidden.
#
# </details>
#
# The figure shows one rank's time in a forward pass: 32 heads of queries, keys and values, 128 numbers of 16 bits each,
# on GPUs with 100 TFLOP/s that send 25 GB/s. The mask hides half of each block, and this half is skipped. Above, a rank
# works, then waits for the next block. Below, it starts the transfer first and works meanwhile, as your ring does if it
# follows hint 2. From which length on is the network no longer seen?

# %% tags=["figure"]
labkit.figures.ring_steps_player()

# %% [markdown]
# From 8,192 tokens on, work on a block takes longer than its transfer, and the rank is never idle. Half the length is a
# quarter of the work but half of the transfer, so short blocks leave the rank waiting, whatever you do. (A printed page
# shows 4,096 tokens.)
#
# Here is your ring on real ranks, four processes that communicate through gloo:

# %%
if written(ring_forward, ring_backward):
    small = one_text(n_ranks=4, length=16, n_heads=2, d=8)

    def largest_error(comm: Comm) -> float:
        return ring_error(comm, small, ring_forward)

    print(
        "largest difference from attention in one process, by rank:",
        run_ranks(largest_error, 4, "gloo"),
    )

# %% [markdown]
# **In practice** a rank starts the transfer first, works on the block that it has meanwhile, and only then waits. It
# also skips what the mask hides. With zigzag that is half of every block from another rank: either the block's late
# chunk is hidden from all of the rank's queries, or the whole block is hidden from the queries of the rank's early
# chunk. Megatron-LM does both, with FlashAttention for each block. So does PyTorch's `context_parallel`, but by
# default it gathers the keys and values of all ranks; with `set_rotate_method("alltoall")` they travel around a ring.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Trade tokens for heads
#
# This section is optional. A ring moves keys and values past queries that stay. **Ulysses** (DeepSpeed's name for it)
# exchanges before and after attention instead. Attention treats each head on its own, so a rank that has *all* tokens
# for *some* heads can run any attention kernel on them, as if there were no other rank. Everywhere else in the model a
# rank has some tokens for all heads. The way from one to the other is an all-to-all:

# %%
labkit.figures.heads_for_tokens()

# %% [markdown]
# The first two panels have each cell in the colour of the rank that holds it. The frames are what rank 1 is to have.
# The last panel shows how it arrives: one sender's part after the other (each in the colour of its sender), and within
# a part head by head.

# %% [markdown]
# **Predict:** for 8 ranks and 1 MB of keys and values on each, the ring sent 22 MB in both passes together. There are
# as many heads of queries as of keys and values. How many MB does a rank send if it trades tokens for heads?

# %% nbgrader={"grade": false, "grade_id": "19-predict-trade-bytes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sent for 8 ranks' heads", None, unit="MB")

# %% [markdown]
# [[exercise 19-ulysses]]
#
# `ulysses(comm, q, k, v, attention)` returns the output for the rank's own tokens, (heads, length, d), with gradients
# for `q`, `k` and `v`.
#
# - The text is cut into contiguous parts: rank 0 has its first `length` tokens, rank 1 the next, and so on. `q` is
#   (heads, length, d) and has all heads. `k` and `v` are (kv_heads, length, d). Head $h$ of `q` belongs to head
#   `h // (heads // kv_heads)` of `k` and `v`.
# - `attention(q, k, v)` is causal attention of tensors with all tokens of the text, in their order. Autograd knows
#   it. It takes any number of heads, and finds the head of `k` and `v` that belongs to each head of `q` in the same
#   way.
# - Each rank gets neighbouring heads: rank 0 the first `heads / n` of `q`, and the first `kv_heads / n` of `k` and `v`.
#   If $n$ does not divide both numbers of heads, raise a `ValueError` on every rank before anything is sent.
# - `comm.all_to_all_single(output, input)` sends the $r$-th of $n$ equal pieces of `input` (along dimension 0) to rank
#   $r$, and writes what arrives from rank $r$ into the $r$-th piece of `output`. Real networks need both contiguous. Autograd
#   does not see it.
#
# In the forward pass a rank sends $\frac{n-1}{n}$ of its `q`, `k`, `v` and of its part of the output, and in the
# backward pass as much again.
#
# <details><summary>Hint 1: a nudge</summary>
#
# You need two exchanges: tokens to heads and heads to tokens. Each undoes what the other does. So what is the
# gradient of each?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Write the two exchanges as plain functions, then a `torch.autograd.Function` for each, whose `backward` calls the
# other function. On the way to heads, the pieces are already contiguous when they are sent, but what arrives has the
# dimensions (senders, heads of the rank, length, d), and you need (heads of the rank, senders × length, d). On the way
# back it is the other way round: first put the receivers in front, then send.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# To heads: `came.unflatten(0, (n, -1)).transpose(0, 1).flatten(1, 2)`, where `came` is what arrived. To tokens:
# `x.unflatten(1, (n, -1)).transpose(0, 1).flatten(0, 1)` is what you send. `forward(ctx, x, comm)` keeps
# `ctx.comm = comm`, and `backward(ctx, grad)` returns the gradient of `x` and `None` for `comm`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "19-ulysses", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ulysses(
    comm: Comm,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attention: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> Tensor:
    """Attention of the rank's queries to the whole text."""
    ### BEGIN SOLUTION
    if q.shape[0] % comm.world_size or k.shape[0] % comm.world_size:
        raise ValueError(
            f"{comm.world_size} ranks cannot share {q.shape[0]} heads of q and {k.shape[0]} of k and v"
        )
    mine = [ToHeads.apply(x, comm) for x in (q, k, v)]
    return ToTokens.apply(attention(*mine), comm)


def to_heads(x: Tensor, comm: Comm) -> Tensor:
    """(heads, length, d) -> (heads / n, n * length, d)"""
    x = x.contiguous()
    came = torch.empty_like(x)
    comm.all_to_all_single(came, x)
    return came.unflatten(0, (comm.world_size, -1)).transpose(0, 1).flatten(1, 2)


def to_tokens(x: Tensor, comm: Comm) -> Tensor:
    """(heads / n, n * length, d) -> (heads, length, d)"""
    x = x.unflatten(1, (comm.world_size, -1)).transpose(0, 1).flatten(0, 1).contiguous()
    came = torch.empty_like(x)
    comm.all_to_all_single(came, x)
    return came


class ToHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return to_heads(x, comm)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return to_tokens(grad, ctx.comm), None


class ToTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return to_tokens(x, comm)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return to_heads(grad, ctx.comm), None

    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "19-ulysses-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("19-ulysses", ulysses)

# %%
if written(ulysses):
    print("MB a rank sends in both passes if a block is 1 MB:   trade    ring")
    for n, heads, kv_heads in ((4, 16, 16), (8, 16, 16), (4, 16, 4), (8, 32, 8)):
        blocks = trade_blocks(ulysses, n, heads, kv_heads)
        print(
            f"{n} ranks, {heads} heads, {kv_heads:2} of keys and values {blocks:22.2f}{3 * n - 2:8}"
        )
    guesses.settle("sent for 8 ranks' heads", trade_blocks(ulysses, 8, 16, 16))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 3.5 MB. Keys and values are 1 MB, and so are the queries and the output together. A rank keeps an eighth of them and
# sends the rest: 7/8 of 2 MB, once in each pass. With twice as many ranks the ring's bytes double, because every block
# visits every rank, while these hardly grow.
#
# </details>
#
# The last two lines have fewer heads of keys and values, as today's models do. A block is still 1 MB, so queries and
# outputs are four times as large as before. The ring never moves them, but this exchange does.
#
# So why does anyone still use a ring? Transfers around a ring are hidden behind the work on a block, while attention
# cannot start before the exchange is done. And the number of ranks has to divide the heads *of keys and values*.
# Llama-3-8B has 8 of them. If tensor parallelism over 4 GPUs has already cut them, 2 are left for each, and at most 2
# ranks can share these. A ring has no such limit. As each rank has whole triangles here, no zigzag is needed.
#
# Here it is on real ranks, with the gradients:

# %%
if written(ulysses):
    print(
        "largest difference from one process, by rank:",
        run_ranks(lambda comm: trade_error(comm, ulysses), 4, "gloo"),
    )

# %% [markdown]
# **In practice** it is `DistributedAttention` in DeepSpeed, and `ulysses_sequence_parallel_size` in verl. Megatron-LM
# has it as `--cp-comm-type a2a`, and with `a2a+p2p` it exchanges inside a node and runs a ring between nodes.

# %% [markdown]
# ## A mixture of experts
#
# A **mixture of experts** replaces one large MLP by many smaller ones, the **experts**. A **router**, one linear
# layer, gives each token a score for each expert, and the token goes to the $k$ best. So a token costs the work of
# only $k$ experts, while the model has the parameters of all of them.
#
# The experts lie on different ranks, and each works on the tokens that come to it, so the expert with the most tokens
# is the slowest. If every token chose at random, this would hardly matter. But the tokens of a text have much in
# common, and then a router has favourites. Below, a random router chooses one of 8 experts for each of 4,096 random
# tokens. On the left the tokens are independent. On the right the same random vector is added to all of them, a
# direction that they share. The dashed line is at 1.25 times the mean, and the tokens above it are red (you will soon
# need them):

# %%
even, skewed = expert_counts(shared=0.0), expert_counts(shared=1.0)
display(
    labkit.figures.expert_load(
        {"independent tokens": even, "tokens with a shared direction": skewed}
    )
)
for name, counts in (("independent tokens", even), ("tokens with a shared direction", skewed)):
    print(f"{name:32} busiest of 8 experts: {max(counts) / (sum(counts) / 8):.2f} times the mean")

# %% [markdown]
# ## Send tokens to their experts and back
#
# There are $n$ ranks with `n_local` experts each, so expert $e$ lies on rank `e // n_local`. But a token lies on the
# rank that has its part of the text. A token's vector is one **row**, and it is sent once for each expert that the
# token chose. Each rank sorts these rows by expert and sends them to the experts' ranks. It runs its own experts on
# the rows that have come, and sends the results back. Here are two ranks with two experts each; the numbers are those
# of the chosen experts:
#
# ```
# rank 0's choices   0 3 1 3 2 0        (experts 0 and 1 are on rank 0, 2 and 3 on rank 1)
# sorted             0 0 1 | 2 3 3      3 rows stay, 3 go to rank 1
# rank 1 receives    2 3 3 | 2 2 3      from rank 0, then from itself: each part sorted by expert
# ```
#
# In general the number of rows is different for each pair of ranks. So this is an all-to-all with *uneven* pieces,
# and a rank has to know how many rows will come before they come. As a whole, what has come is not sorted by expert:
# rows for expert 2 come from every sender.

# %% [markdown]
# [[exercise 19-moe-dispatch]]
#
# `moe_layer(comm, exchange, x, chosen, weights, run_expert, n_local)` returns for each of the rank's tokens the
# weighted sum of what its $k$ experts return, (tokens, width).
#
# - `x` is (tokens, width). `chosen`, (tokens, k), holds each token's experts, which all differ, by their numbers over
#   all ranks: from 0 to `comm.world_size * n_local - 1`. `weights`, (tokens, k), holds the weight of each choice.
#   Ranks may have different numbers of tokens.
# - `run_expert(e, rows)` runs the rank's own expert `e`, where `e` counts from 0 to `n_local - 1`, and returns a
#   tensor like `rows`. There may be no rows at all for an expert.
# - `exchange(rows, send, receive)` is an all-to-all with uneven pieces that autograd knows. `send` and `receive` are
#   lists with one number for each rank. The first `send[0]` rows go to rank 0, the next `send[1]` to rank 1, and so
#   on. It returns `receive[0]` rows from rank 0, then `receive[1]` from rank 1, and so on. In the backward pass it
#   sends the gradients the opposite way.
# - `comm.all_to_all_single(output, input)` exchanges equal pieces and has no gradient. Use it for the numbers of
#   rows.
#
# The gradients must reach `x`, `weights` and the experts. An expert gets a row once for each choice of it, and no
# others. Only these rows, their results, and one int64 from each rank for each expert travel between ranks. The
# forward pass has no more than three exchanges: the numbers, the rows, the results.
#
# <details><summary>Hint 1: a nudge</summary>
#
# For each of *its* experts, a rank needs to know how many rows will come from each rank. The senders know: each can
# count how many of its choices are for each expert.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `order = chosen.flatten().argsort(stable=True)` sorts the choices by expert, and `order // k` are the tokens that
# they belong to. `bincount` counts the choices of each expert. Exchange these counts in equal pieces: viewed as
# (ranks, n_local), row `r` of the result says how many rows come from rank `r` for each of your experts.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Let `coming` be these counts, (ranks, n_local), and `n` the number of ranks. Then
# `torch.arange(n_local).repeat(n).repeat_interleave(coming.flatten())` is the expert of each row that has come. Make
# a tensor of the same shape as these rows and fill in the results, one expert at a time. Send it back with the two
# lists swapped, and write what comes back to the places `order` of a new tensor. Only then apply the weights and add.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "19-moe-dispatch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def moe_layer(
    comm: Comm,
    exchange: Callable[[Tensor, list[int], list[int]], Tensor],
    x: Tensor,
    chosen: Tensor,
    weights: Tensor,
    run_expert: Callable[[int, Tensor], Tensor],
    n_local: int,
) -> Tensor:
    """For each token the weighted sum of what its experts return."""
    ### BEGIN SOLUTION
    n, k = comm.world_size, chosen.shape[1]
    order = chosen.flatten().argsort(stable=True)
    going = chosen.flatten().bincount(minlength=n * n_local)
    coming = torch.empty_like(going)
    comm.all_to_all_single(coming, going)
    send = going.view(n, n_local).sum(1).tolist()
    receive = coming.view(n, n_local).sum(1).tolist()

    rows = exchange(x[order // k], send, receive)
    expert_of = torch.arange(n_local).repeat(n).repeat_interleave(coming)
    done = torch.zeros_like(rows)
    for expert in range(n_local):
        here = expert_of == expert
        done[here] = run_expert(expert, rows[here])
    back = exchange(done, receive, send)

    results = torch.zeros_like(back)
    results[order] = back
    return (results.view(len(x), k, -1) * weights[..., None]).sum(1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "19-moe-dispatch-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("19-moe-dispatch", moe_layer)

# %%
if written(moe_layer):
    print("4 ranks, 256 tokens each       rows worked on by rank      sent by rank, kB")
    for name, shared in (("independent tokens", 0.0), ("shared direction", 1.0)):
        rows, traffic = moe_traffic(moe_layer, shared)
        print(
            f"{name:25}"
            + "".join(f"{n:8}" for n in rows)
            + "".join(f"{n / 1e3:7.0f}" for n in traffic.bytes_sent)
        )

# %% [markdown]
# Each rank has two of the eight experts, $k$ is 1, and the bytes are those of a forward pass. (The tokens are not
# those of the figure above, so the favourite is another expert.) In the second line rank 0 has the favourite. It
# works on 546 rows and not on 256, and it has to receive most of them and send their results back. The other ranks
# wait for it twice, in the forward and in the backward pass.
#
# ## Places at the experts
#
# The rank with the most tokens is the slowest. So many systems limit how many choices an expert takes: it has a fixed
# number of **places**, and a choice that finds no place is **dropped**.

# %% [markdown]
# **Predict:** look at the figure with the 4,096 tokens again. Every expert has places for 1.25 times the mean load.
# What percentage of the tokens with a shared direction is dropped?

# %% nbgrader={"grade": false, "grade_id": "19-predict-dropped", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("dropped at 1.25", None, unit="%")

# %% [markdown]
# [[exercise 19-moe-capacity]]
#
# - `capacity(n_tokens, n_experts, k, factor)` returns how many places an expert has, as an int. Take the choices of
#   all tokens, $k$ each, spread them evenly over the experts, multiply by `factor` and round up.
# - `dispatch(logits, k, places)` takes the router's scores, (tokens, experts), and returns `(experts, kept)`.
#   `experts`, (tokens, k), holds each token's choices: the experts with the highest scores, the best first. `kept` is
#   a bool tensor of the same shape, True where the choice has a place. First all first choices get places, in the
#   order of the tokens, then all second choices, and so on. An expert has `places` places for all of them together.
# - `balancing_loss(logits, k)` returns $E \sum_e f_e P_e$ over the $E$ experts. $f_e$ is the share of tokens that
#   have expert $e$ among their $k$ choices, whether they find a place or not. $P_e$ is the softmax probability of
#   expert $e$, averaged over all tokens. The loss must have a gradient with respect to `logits`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Who comes first? Put all choices into one queue. Each choice then has a number among those that want the same
# expert.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `experts.t().flatten()` is the queue. Give each choice a row with a 1 in the column of its expert (`one_hot`). A
# cumulative sum down the queue then counts how many have asked for each expert so far. For the loss: counts have no
# gradient, so only $P$ passes a gradient to the router.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `turn = one_hot.cumsum(0)` has the number of each choice at its expert, counted from 1, in that expert's column.
# Pick it with `gather`, compare it with `places`, and bring the result back to (tokens, k). `math.ceil` rounds up.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "19-moe-capacity", "locked": false, "schema_version": 3, "solution": true, "task": false}
def capacity(n_tokens: int, n_experts: int, k: int, factor: float) -> int:
    """How many choices an expert can take."""
    ### BEGIN SOLUTION
    return math.ceil(factor * n_tokens * k / n_experts)
    ### END SOLUTION


def dispatch(logits: Tensor, k: int, places: int) -> tuple[Tensor, Tensor]:
    """The k best experts of each token, and which of these choices have a place."""
    ### BEGIN SOLUTION
    experts = logits.topk(k).indices
    queue = experts.t().flatten()
    wants = torch.nn.functional.one_hot(queue, logits.shape[1])
    number = wants.cumsum(0).gather(1, queue[:, None])[:, 0]
    return experts, (number <= places).view(k, -1).t()
    ### END SOLUTION


def balancing_loss(logits: Tensor, k: int) -> Tensor:
    """The larger, the more the experts that are chosen often are also those with a high probability."""
    ### BEGIN SOLUTION
    n_tokens, n_experts = logits.shape
    counts = logits.topk(k).indices.flatten().bincount(minlength=n_experts)
    return n_experts * (counts / n_tokens * logits.softmax(-1).mean(0)).sum()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "19-moe-capacity-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("19-moe-capacity", capacity, dispatch, balancing_loss)

# %%
if written(capacity, dispatch, balancing_loss):
    for name, shared in (("independent tokens", 0.0), ("shared direction", 1.0)):
        logits = router_logits(shared)
        places = capacity(len(logits), 8, 1, 1.25)
        dropped = 1 - dispatch(logits, 1, places)[1].float().mean().item()
        print(
            f"{name:20} places {places}   dropped {dropped:6.1%}   loss {balancing_loss(logits, 1).item():.2f}"
        )
    guesses.settle("dropped at 1.25", 100 * dropped)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 27 %, although there are more places than tokens (8 × 640 = 5,120 for 4,096): the free ones are at experts that few
# tokens choose. A dropped token is not lost. It skips the experts, and the residual connection alone carries it on.
#
# </details>
#
# Here is what your functions do with other factors, and with tokens that have more or less in common. Blue tokens have a
# place, red ones are dropped. How large must the factor be so that no token is dropped, and how many places are then
# empty?

# %% tags=["figure"]
labkit.figures.expert_player(capacity, dispatch, router_logits)

# %% [markdown]
# At 1, the length that the shared direction had above, the busiest expert has 3.1 times the mean. A factor of 3 still
# drops a few tokens, and with a factor of 4 three of four places are empty. Places cost memory. So the router has to
# learn to spread its choices.
#
# If all experts are chosen equally often, every $f_e$ is $k/E$ and the balancing loss is $k$, here 1, because the
# probabilities add up to 1. It is larger when the experts that are chosen often also have the high probabilities, and
# a step against its gradient lowers exactly these probabilities. It is added to the training loss with a small weight,
# such as 0.01.
#
# **In practice** you turn it on with `output_router_logits=True` in the configuration of a Mixtral-like model, and
# `router_aux_loss_coef` is its weight. Mixtral drops no tokens and pays for imbalance with time instead. Switch
# Transformer and GShard have a capacity factor.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Plan a training run
#
# You now have a whole box of ways to cut up training, and each removes one kind of bytes and pays with one kind of
# time:
#
# | degree | what it cuts | what it costs | lab |
# |---|---|---|---|
# | tensor, $t$ | every matrix, and all activations (with sequence parallelism) | 4 all-reduces a layer and micro-batch, which nothing hides | 17 |
# | pipeline, $p$ | the layers | a bubble, $(p-1)/m$ of the rest for $m$ micro-batches | 18 |
# | context, $c$ | the text, so the activations | a ring in every layer, hidden if blocks are long | 19 |
# | data, $d$ | the batch | the gradients' reduction, once a step | 15 |
# | expert, $e$ | the experts, among ranks of the data-parallel groups | all-to-alls in every layer | 19 |
# | ZeRO level | optimizer state (1), gradients (2), weights (3), among $d \times c$ replicas | for 2 and 3, communication for every micro-batch | 16 |
# | recomputation | activations | forward work a second time | 05 |
#
# The first four multiply to the number of devices, $t \times p \times c \times d$, and $e$ divides $d$. So a larger
# degree always takes devices away from another one. **Which plan is the fastest that fits?**
#
# `labkit.plan` estimates the time of a step as the sum of the costs in the table. Each comes from a published rule, and
# its docstring says which. Here is a check on the largest run that we know. In 2021, Megatron-LM trained a model with
# a trillion parameters on 384 nodes of 8 A100. From the FLOP/s that its authors measured, a step took 103 s:

# %%
theirs = Plan(tensor=8, pipeline=64, data=6, micro_batch=1, recompute="full")
print(theirs)
for term, seconds in step_time(MEGATRON_1T, SELENE, theirs).by_term().items():
    print(f"{term:15}{seconds:8.1f} s")
print(f"{'total':15}{step_time(MEGATRON_1T, SELENE, theirs).total:8.1f} s")

# %% [markdown]
# **Predict:** full recomputation runs each layer's forward pass again. **Selective** recomputation computes only the
# attention core again (softmax and the two products around it), as FlashAttention does. How long does a step take
# with the same plan and selective recomputation?

# %% nbgrader={"grade": false, "grade_id": "19-predict-selective", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("1 T, selective recomputation", None, unit="s")

# %%
selective = step_time(MEGATRON_1T, SELENE, replace(theirs, recompute="selective"))
print(f"selective recomputation: {selective.total:.1f} s")
guesses.settle("1 T, selective recomputation", selective.total)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 76 s, a quarter less. Full recomputation is one forward pass, a third of the work of a forward and a backward pass. It
# also repeats all-reduces, and it makes the bubble longer, which is a share of everything else. Selective recomputation
# is nearly free, and it fits: 63 of 80 GB. Megatron-LM's authors published it in 2022, a year after this run.
#
# </details>

# %% [markdown]
# **Predict:** on Leonardo a node has 4 GPUs, and 25 GB/s to the other nodes. Llama-3-70B is trained on 32 nodes with
# $p = 8$. By what factor does a step take longer with $t = 8$, $d = 2$ than with $t = 4$, $d = 4$?

# %% nbgrader={"grade": false, "grade_id": "19-predict-tensor-nodes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("time with t = 8 / with t = 4, nodes of 4", None)

# %%
over_nodes = {
    t: step_time(
        LLAMA_70B,
        leonardo(32),
        Plan(tensor=t, pipeline=8, data=16 // t, sharding=1, recompute="selective"),
    )
    for t in (4, 8)
}
for t, estimated in over_nodes.items():
    print(f"t = {t}: {estimated.total:6.1f} s, {estimated.tensor:5.1f} s of them all-reduces")
guesses.settle(
    "time with t = 8 / with t = 4, nodes of 4", over_nodes[8].total / over_nodes[4].total
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 2.0. The all-reduces take 96 s instead of 5 s. A ring over two nodes runs at the speed of its slowest hop, and that
# is the network, 25 GB/s where NVLink has 200. Also, with half as many replicas each has twice as many micro-batches.
# This is why a tensor group never leaves its node.
#
# </details>
#
# ### All plans at once
#
# Each point below is a plan for Llama-3-70B on 32 nodes of Leonardo. Its place to the right is the memory of the
# fullest device, and its height is the time of a step. Move the mouse over a point to see which plan it is, and which
# constraint it breaks. Blue plans fit. The best ones are at the bottom of the blue region: what do they have in common?

# %%
labkit.figures.plan_plane(LLAMA_70B, leonardo(32))

# %% [markdown]
# Here is the same figure with two menus, for other models and clusters, and with a colour for each value of a degree
# (menus work only while the notebook is running). Look for the values that never come near the lower left corner:

# %%
labkit.figures.plan_explorer()

# %% [markdown]
# **Predict:** Llama-3-8B is trained on 16 GPUs by data parallelism alone: every other degree is 1, nothing is
# sharded and nothing recomputed. How many GB would a device need, with one text of 8,192 tokens in a micro-batch?

# %% nbgrader={"grade": false, "grade_id": "19-predict-plain-memory", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("8B on 16 GPUs, nothing cut", None, unit="GB")

# %% [markdown]
# [[exercise 19-plan]]
#
# Write the half of the estimate that is missing, memory, and then the search.
#
# - `device_bytes(model, plan)` returns what the fullest device holds, in bytes, as a dict with the keys `"weights"`,
#   `"gradients"`, `"optimizer"` and `"activations"`. That device belongs to the *first* stage of the pipeline.
# - `choose(model, cluster)` returns a `Plan` that breaks no rule, needs at most `cluster.memory_bytes`, and takes at
#   most 10 % longer than the fastest such plan. There is always one.
#
# A `Plan` has the fields `tensor`, `pipeline`, `data`, `context`, `expert`, `micro_batch` (sequences), `sharding` (0 to
# 3) and `recompute` (`"none"`, `"selective"` or `"full"`). From `model` you need:
#
# - `n_layers`, `n_experts`, `global_batch` (sequences of a step, all replicas together) and `seq_len`;
# - `attention_params` of one layer, `expert_params` of one expert in one layer (a dense model has one expert, its MLP),
#   and `embedding_params` of the input embedding, which the output matrix has once more;
# - `kept_bytes(recompute)`: the activations, in bytes, that one layer keeps of one token when nothing is cut.
#
# `plan.n_microbatches(model)` is $m$. For the search there are `divisors(n)`, `RECOMPUTATIONS`, `broken_rules(model,
# cluster, plan)`, which is empty if the plan keeps all rules, and `step_time(model, cluster, plan).total` in seconds.
#
# These rules hold for `device_bytes`:
#
# - A parameter has 2 bytes of weight, 2 of gradient and 12 of optimizer state. A stage has its share of the layers. The
#   first stage also has the input embedding, and with $p = 1$ the output matrix as well. Tensor parallelism cuts all of
#   it.
# - ZeRO cuts among all ranks that hold the same parameters. These are $d \times c$ ranks, except for experts: each of
#   $e$ ranks has other experts.
# - Under 1F1B the first stage holds the activations of $\min(m, p)$ micro-batches at its peak. Tensor and context
#   parallelism both cut them.
# - With full recomputation only the layers' inputs are kept, as `kept_bytes("full")` says. But while one layer runs
#   again, for one micro-batch, all that it keeps under `"selective"` is alive too.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Count parameters first, in two groups: those of experts, and all others. What is the share of the first device of
# each, and how many ranks hold the same share?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A group of parameters takes $2 + 2 + 12$ bytes each, and each of the three is divided by the number of replicas if
# the ZeRO level is at least 3, 2 or 1. Experts have $d\,c/e$ replicas. For the search, brute force is good enough:
# only some thousand plans break no rule, as long as you let $d$ follow from the other degrees.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Loop over `t` in `divisors(cluster.devices_per_node)`, `p` in `divisors(model.n_layers)` and `c` in
# `divisors(cluster.n_devices)`; `d` is `cluster.n_devices // (t * p * c)` if that leaves no rest. Inside,
# `itertools.product` runs over `divisors(model.n_experts)`, the divisors of `model.global_batch // d`, four levels
# and three recomputations. Skip what breaks a rule or does not fit *before* you ask for its time.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "19-plan", "locked": false, "schema_version": 3, "solution": true, "task": false}
def device_bytes(model: Model, plan: Plan) -> dict[str, float]:
    """What the fullest device holds: weights, gradients, optimizer, activations."""
    ### BEGIN SOLUTION
    t, p, c = plan.tensor, plan.pipeline, plan.context
    layers, replicas = model.n_layers / p, plan.data * c
    ends = 2 if p == 1 else 1
    shared = (layers * model.attention_params + ends * model.embedding_params) / t
    experts = layers * model.expert_params * model.n_experts / (plan.expert * t)

    def held(bytes_each: int, sharded_from: int) -> float:
        if plan.sharding < sharded_from:
            return bytes_each * (shared + experts)
        return bytes_each * (shared / replicas + experts / (replicas / plan.expert))

    tokens = plan.micro_batch * model.seq_len / (t * c)
    alive = min(plan.n_microbatches(model), p)
    activations = tokens * alive * layers * model.kept_bytes(plan.recompute)
    if plan.recompute == "full":
        activations += tokens * model.kept_bytes("selective")
    return {
        "weights": held(2, 3),
        "gradients": held(2, 2),
        "optimizer": held(12, 1),
        "activations": activations,
    }
    ### END SOLUTION


def choose(model: Model, cluster: Cluster) -> Plan:
    """A plan that fits and takes at most 10 % longer than the fastest that does."""
    ### BEGIN SOLUTION
    best, least = None, math.inf
    for t, p, c in product(
        divisors(cluster.devices_per_node), divisors(model.n_layers), divisors(cluster.n_devices)
    ):
        d, rest = divmod(cluster.n_devices, t * p * c)
        if rest or model.global_batch % d:
            continue
        for e, micro_batch, sharding, recompute in product(
            divisors(model.n_experts),
            divisors(model.global_batch // d),
            range(4),
            RECOMPUTATIONS,
        ):
            plan = Plan(t, p, d, c, e, micro_batch, sharding, recompute)
            if broken_rules(model, cluster, plan):
                continue
            if sum(device_bytes(model, plan).values()) > cluster.memory_bytes:
                continue
            seconds = step_time(model, cluster, plan).total
            if seconds < least:
                best, least = plan, seconds
    return best
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "19-plan-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("19-plan", device_bytes, choose)

# %%
if written(device_bytes):
    plain = device_bytes(LLAMA_8B, Plan(data=16))
    for name, n_bytes in plain.items():
        print(f"{name:12}{n_bytes / 1e9:8.1f} GB")
    guesses.settle("8B on 16 GPUs, nothing cut", sum(plain.values()) / 1e9)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 521 GB, eight times what the GPU has. 128 GB are the 16 bytes a parameter. The other 393 GB are activations, and
# seven eighths of these are for the scores of the attention core, which no level of ZeRO touches. Selective recomputation
# removes all of them for 4 % more time.
#
# </details>
#
# Here are your plans for seven runs:

# %%
if written(device_bytes, choose):
    for model, cluster in (
        (LLAMA_8B, leonardo(4)),
        (LLAMA_8B_LONG, leonardo(16)),
        (LLAMA_8B_SMALL_BATCH, leonardo(16)),
        (LLAMA_70B, leonardo(32)),
        (MIXTRAL, leonardo(8)),
        (SIXTEEN_EXPERTS, P4D),
        (MEGATRON_1T, SELENE),
    ):
        plan = choose(model, cluster)
        taken, held = step_time(model, cluster, plan).total, sum(device_bytes(model, plan).values())
        print(
            f"{model.name} on {cluster.name}: {taken:.3g} s, {held / 1e9:.0f} of {cluster.memory_gb} GB"
        )
        print(f"    {plan}")

# %% [markdown]
# Tensor parallelism, the most famous of the cuts, is rarely in them on Leonardo. It pays in every layer, while ZeRO,
# stages and a short ring make the same room for less. Expert parallelism has its place in only one of them. Mixtral does
# not need it, because stages and ZeRO make room for its 8 experts: with $e = 2$ or 4 the best plan takes 1 or 2 %
# longer. With $e = 8$ a group spans two nodes, and a step takes 79 s, of which 23 s are all-to-alls. The run with 16
# experts has a small batch, so stages would have a large bubble. There $e = 8$ fits into a node and makes stages
# unnecessary. With $e = 1$ a step takes at least 13 % longer.
#
# The last line is faster than the run of 2021 by more than a quarter, most of it by selective recomputation. The
# estimate has its limits: it assumes that all ranks have the same work, which took you half of this lab, and that
# kernels are as fast on thin matrices as on wide ones, which is where a large $t$ or $c$ really suffers.
#
# And here is your plan among all others:

# %%
if written(device_bytes, choose):
    display(labkit.figures.plan_plane(LLAMA_70B, leonardo(32), choose(LLAMA_70B, leonardo(32))))

# %% [markdown]
# **In practice** these are flags of Megatron-LM: `--tensor-model-parallel-size`, `--pipeline-model-parallel-size`,
# `--context-parallel-size`, `--expert-model-parallel-size`, `--micro-batch-size`, `--use-distributed-optimizer` (ZeRO-1)
# and `--recompute-granularity`. People estimate first, as you did, leave a tenth of the memory free for what no estimate
# counts, and then measure a few steps of the best handful of plans.

# %% [markdown]
# ## What you measured

# %%
if written(zigzag):
    works = [sum(p + 1 for p in mine) for mine in zigzag(4096, 8)]
    print(f"zigzag, 8 ranks           most work / least          {max(works) / min(works):.3f}")
if written(ring_forward, ring_backward):
    print(
        f"ring, 8 ranks             blocks sent by a rank      {max(ring_traffic.bytes_sent) / block_bytes:.0f}"
    )
if written(moe_layer):
    print(f"experts, shared direction busiest rank / mean        {max(rows) / 256:.2f}")
if written(capacity, dispatch, balancing_loss):
    print(f"places at 1.25            tokens dropped             {dropped:.0%}")
if written(device_bytes, choose):
    faster = step_time(MEGATRON_1T, SELENE, theirs).total / taken
    print(f"a trillion parameters     your plan / that of 2021   {faster:.2f} x as fast")

# %% [markdown]
# Attention over a ring is online softmax with a network in the middle. With long texts and with experts alike, the
# problem is less the bytes that travel than a rank with more work than the others. The triangle could be dealt out
# evenly in advance. The tokens cannot, because only the router decides where they go, after they have arrived. A plan
# counts on even work: memory is a wall, time is a sum, and which cut is the cheapest depends on the cluster.
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("19", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "19",
    "attention in zigzag instead of blocks, 8 ranks",
    speed=lambda: (
        f"{15 / 8 / (max(sum(p + 1 for p in mine) for mine in zigzag(4096, 8)) * 8 / (4096 * 4097 / 2)):.2f} x as fast"
    ),
    memory=lambda: f"the same, 1/{len(zigzag(4096, 8))} of the tokens on each rank",
)

# %% [markdown]
# ## Open question
#
# This question is worth 3 points. A person reads your answer, so no check responds at once, and `progress` does not
# count it. Write a few sentences; numbers count more than words.
#
# Eight ranks train with ring attention on texts of 131,072 tokens. There are 8 heads of keys and values and 32 heads
# of queries, with 128 numbers per token and head, in bfloat16. A rank computes 400 TFLOP/s and sends 50 GB/s to its
# neighbour. In the forward pass of one layer, how long does a rank work on one block, and how long does a block
# travel? (Say whether you count work that the mask hides.) Below which length of the text would the transfer no
# longer be hidden?

# %% [markdown] nbgrader={"grade": true, "grade_id": "19-open-hidden-transfer", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# A rank has L = 16,384 tokens. A block of keys and values: 16,384 x 2 x 8 x 128 x 2 bytes = 67 MB, 1.34 ms at 50
# GB/s. Work: two products of L x L x 128 for each of 32 heads, 4 x 32 x 128 x L^2 FLOPs = 4.4 TFLOP, 11 ms. With
# zigzag the mask hides half of it: 5.5 ms. So the transfer takes a quarter of the time of the work, and is hidden.
# The work falls with L^2 and the transfer with L, so their ratio, 5.5 / 1.34 = 4.1, falls with L. It is 1 at L =
# 16,384 / 4.1 = 4,000 tokens on a rank, a text of 32,000. (With the whole square: 2,000 and 16,000.) Shorter texts
# are cut by other means.
#
# Marks: 1 for the transfer (67 MB, 1.3 ms). 1 for the work (11 or 5.5 ms; the answer must say which). 1 for the
# length, from the ratio.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Hao Liu, Matei Zaharia and Pieter Abbeel, *Ring Attention with Blockwise Transformers for Near-Infinite Context*
#   (ICLR 2024).
# - William Brandon and others, *Striped Attention: Faster Ring Attention for Causal Transformers* (2023): round robin
#   instead of zigzag.
# - William Fedus, Barret Zoph and Noam Shazeer, *Switch Transformers* (JMLR 2022): capacity, dropped tokens, the
#   balancing loss.
# - Dmitry Lepikhin and others, *GShard* (ICLR 2021): first choices before second ones.
# - Aaron Grattafiori and others, *The Llama 3 Herd of Models* (2024), section 3.3.2: context parallelism with $2n$
#   chunks.
# - Deepak Narayanan and others, *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM* (SC
#   2021): how the degrees were chosen for a trillion parameters.
# - Vijay Korthikanti and others, *Reducing Activation Recomputation in Large Transformer Models* (2022): what a layer
#   keeps, and selective recomputation.
#
# **Sources.** The texts above, and lab 16's for ZeRO. Sizes of Llama-3 and Mixtral: their published configurations. Megatron-LM's and PyTorch's
# documentation of context parallelism.
