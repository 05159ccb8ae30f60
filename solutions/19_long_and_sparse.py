# %% [markdown]
# # Lab 19: Long context and experts
#
# One million tokens of Llama-3-8B are 131 GB of keys and values: no GPU holds them, so the text is cut into 8 equal parts, one for
# each rank. The parts are equal, and the work is not. A token attends to itself and to everything before it, so the last rank
# computes 15 times as much as the first, and the machine waits for 47 % of the time. **How do you cut a triangle into 8 equal
# pieces?**
#
# You will deal out a text so that all ranks have the same work, and send keys and values around a ring of ranks, so that each
# query meets every key before it and no rank ever holds the whole text. Then you will send tokens to
# experts on other ranks and back, and hand out the places there.
#
# [[time]]
#
# You need to know what ranks and their collectives are (lab 14), and what online softmax is (lab 13).

# %% nbgrader={"grade": false, "grade_id": "19-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from collections.abc import Callable, Sequence

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
)
from labkit.ranks import Comm, measure_ranks
from torch import Tensor

guesses = Predictions("19")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# Where the figures come from. Llama-3-8B has 32 layers with 8 heads of keys and values, each of 128 numbers in 16 bits:

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
print(f"the machine waits for       {1 - sum(pairs) / (n_ranks * max(pairs)):.0%} of the time")

# %% [markdown]
# ## Cut a triangle into equal parts
#
# Cutting the *sequence* over ranks is called **context parallelism**. Everything in a transformer but attention works on each
# token alone, so for a linear layer or a norm it does not matter which rank has which token. Attention with a causal mask is the
# exception: the query at position $p$ (from 0) meets $p + 1$ keys. A rank's work is the sum of $p + 1$ over its positions, and all
# ranks together have the lower triangle of an $s \times s$ square.
#
# Here is the triangle for 48 tokens in contiguous blocks. Each row is a query, in the colour of its rank:

# %%
labkit.figures.causal_deal(
    [list(range(rank * 12, rank * 12 + 12)) for rank in range(4)], "contiguous blocks"
)

# %% [markdown]
# **Predict:** 4 ranks in contiguous blocks, as in the picture. How many times as long as a machine with perfectly even work
# does this one take?

# %% nbgrader={"grade": false, "grade_id": "19-predict-contiguous", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("time of contiguous blocks over even ones", None)

# %%
block_work = [sum(p + 1 for p in range(rank * 12, rank * 12 + 12)) for rank in range(4)]
print("pairs by rank:", block_work)
guesses.settle("time of contiguous blocks over even ones", max(block_work) / (sum(block_work) / 4))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 1.74. All ranks wait for the last one. It has 510 of 1,176 pairs, and a quarter of them would be 294. With more ranks the
# ratio grows towards 2: the last rank's rows are nearly full, and the average row is half full.
#
# </details>
#
# [[exercise 19-zigzag]]
#
# Think of the text as $2n$ chunks for $n$ ranks. An early chunk is cheap and a late one dear, so give each rank one of
# each.
#
# - `zigzag(n_tokens, n_ranks)` returns for each rank a list of the positions that it gets. Every position belongs to exactly one
#   rank. Where $2n$ divides the length, all ranks have exactly the same work. Elsewhere, in texts of $64\,n$ tokens or more, the
#   most work of a rank is at most 1.05 times the least. No rank gets more than $2\lceil s/2n \rceil$ positions.
# - `deal(tokens, n_ranks)` takes `tokens`, (texts, $s+1$): a text and one token more, so that each of the $s$ inputs has a label, the
#   token behind it. It returns for each rank `(inputs, labels, positions)`, two tensors of (texts, length) and one of
#   (length,), in the order of the rank's list. Ranks call collectives together, so `length` is the same for all; unused places at
#   the end have the input 0, the label -100 (which `cross_entropy` ignores) and the position -1.
# - `undo(parts, n_tokens)` takes for each rank `(values, positions)`, values being (texts, length, width) and positions as
#   above, of *any* way to deal. It returns the values in the order of the text, (texts, $s$, width).
#
# <details><summary>Hint 1: a nudge</summary>
#
# Chunk $c$ of $2n$ has work that grows evenly with $c$. Which two chunks have together as much as the first and the last?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Rank $r$ gets the chunks $r$ and $2n-1-r$. If $2n$ does not divide the length, let the sizes of chunks differ by at most one token.
# Padding all of the missing tokens at the end of the text would take them from one rank, and there each is worth the most.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Chunk $c$ reaches from position `c * n_tokens // (2 * n_ranks)` to `(c + 1) * n_tokens // (2 * n_ranks)`. In `deal`, start with tensors
# that hold nothing but padding, and fill the first `len(mine)` places. In `undo`, the places in use are those with
# `positions >= 0`.
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
# The same triangle, dealt by your function. What one chunk lacks, its partner has:

# %%
if written(zigzag):
    display(labkit.figures.causal_deal(zigzag(48, 4), "your zigzag"))
    print("tokens   ranks   most work / least, contiguous   yours")
    for s, n in ((1024, 8), (1025, 8), (4096, 32), (4159, 32)):
        blocks = [list(range(r * s // n, (r + 1) * s // n)) for r in range(n)]
        ratios = []
        for dealt in (blocks, zigzag(s, n)):
            works = [sum(p + 1 for p in mine) for mine in dealt]
            ratios.append(max(works) / min(works))
        print(f"{s:6}{n:8}{ratios[0]:24.1f}{ratios[1]:16.4f}")

# %% [markdown]
# One token more than $2n$ divides, and the work is no longer exactly even; it stays within a few percent. A training run avoids
# even that: it pads its texts to a multiple of $2n$.
#
# **In practice** Megatron-LM cuts a sequence in this way wherever `--context-parallel-size` is above 1; PyTorch does it in
# `torch.distributed.tensor.experimental.context_parallel`, which shards the buffers that you name (inputs, labels and
# positions) all alike.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Attention around a ring
#
# Each rank has queries, keys and values of its own positions, and each query has to meet the keys of *all* ranks. Gathering them
# would put the whole text on every rank again. In **ring attention** the queries stay, and blocks of keys and values travel:
#
# | step | rank 0 | rank 1 | rank 2 | rank 3 |
# |---|---|---|---|---|
# | 0 | own block | own block | own block | own block |
# | 1 | block of rank 3 | block of rank 0 | block of rank 1 | block of rank 2 |
# | 2 | block of rank 2 | block of rank 3 | block of rank 0 | block of rank 1 |
# | 3 | block of rank 1 | block of rank 2 | block of rank 3 | block of rank 0 |
#
# Between two steps everybody sends the block to rank $r+1$ and receives the next one from rank $r-1$. After $n-1$ hops each rank has
# met all of them, and never held more than two.
#
# A rank cannot finish a softmax with one block: the sum of exponentials is not complete. That is the problem of lab 13's online
# softmax, and it has the same solution. Of each block a rank works out the output $o_b$ over the keys of this block alone, and
# the logarithm of the sum of their exponentials, $\ell_b$ (lse). Two blocks together have
#
# $$\ell = \log(e^{\ell_a} + e^{\ell_b}), \qquad o = e^{\ell_a - \ell}\, o_a + e^{\ell_b - \ell}\, o_b.$$
#
# In the backward pass a share of attention is $e^{\text{score} - \ell}$ with the final $\ell$, so each block can be worked on alone
# again. But a block's gradients have parts from the queries of all ranks. They travel *with* the block and collect a part on each
# rank.

# %% [markdown]
# **Predict:** 8 ranks, and a block's keys and values together are 1 MB. How many MB does a rank send in the forward and the backward
# pass together?

# %% nbgrader={"grade": false, "grade_id": "19-predict-ring-bytes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sent in a ring of 8", None, unit="MB")

# %% [markdown]
# [[exercise 19-ring-attention]]
#
# `positions` is (ranks, length): row `r` has the positions of rank `r`, in any order. `q`, `k`, `v`, `out` and the gradients are
# (heads, length, d), `lse` is (heads, length). Of a block, two functions work out for you:
#
# - `attend(q, k, v, q_positions, k_positions)` returns `(out, lse)` over these keys alone, behind the causal mask.
# - `attend_backward(q, k, v, q_positions, k_positions, out, lse, d_out)` returns what this block adds to the gradient of `q`, and what
#   these queries add to the gradients of its `k` and `v`. `out` and `lse` are those over *all* keys.
#
# You write the ring:
#
# - `ring_forward(comm, q, k, v, positions)` returns `(out, lse)` of the rank's queries over all keys of the text.
# - `ring_backward(comm, q, k, v, positions, out, lse, d_out)` returns the gradients of the rank's own `q`, `k` and `v`.
#
# Send $n-1$ times in the forward pass. In the backward pass keys and values travel $n-1$ hops and their gradients $n$, and there
# are never more than two blocks of each. There are at least two ranks.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `torch.stack([k, v])` is one message instead of two. After `step` hops, whose block does rank $r$ have? The table above tells.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In each step start both transfers (`isend`, `irecv`), work on the block that you have, then wait for both. Begin with your own
# block: every query sees at least itself there, so `lse` is finite from the first step on. `torch.logaddexp` adds two sums in
# logarithms.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Backward: start with `grads = torch.zeros_like(block)`. In each of $n$ steps add the block's parts to `grads`, and pass `grads` on,
# also after the last step: then the sums of your own keys come home. `block` is passed on in all steps but the last.
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
# 22 MB: $n-1 = 7$ hops in the forward pass, and in the backward pass 7 for keys and values and 8 for their gradients. All of it is
# sent to a neighbour while the rank works on another block. So it costs time only where a block takes longer to send than to
# work on, and the work grows with the *square* of the block's length.
#
# </details>
#
# The same ring on real ranks, four processes that talk through gloo:

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
# **In practice** a rank does not wait before it works: it starts the transfer, works on the block that it has, and waits then. The
# blocks that lie behind the mask as a whole are skipped. Megatron-LM's `--context-parallel-size` and PyTorch's
# `context_parallel` do both, with FlashAttention for a block.

# %% [markdown]
# ## A mixture of experts
#
# A **mixture of experts** replaces one large MLP by many smaller ones, the experts. A router, one linear layer, gives each token a
# score for each expert, and the token goes to the $k$ best. A token costs $k$ experts, and the model has the parameters of all.
#
# The experts lie on different ranks, and each works on what comes to it: the slowest is the one with the most tokens. If every
# token chose at random, that would hardly matter. But tokens of a text have much in common, and a router soon has favourites:

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
# First the way there. With $n$ ranks and the same number of experts on each, expert $e$ lies on rank `e // n_local`. Tokens lie
# where their text lies. So each rank sorts its choices by expert and sends them off, works on what has come, and sends the
# results back:
#
# ```
# rank 0's choices   0 3 1 3 2 0        (experts 0 and 1 are at home, 2 and 3 on rank 1)
# sorted             0 0 1 | 2 3 3      3 rows stay, 3 go to rank 1
# rank 1 receives    2 3 3 | 2 2 3      of rank 0, then of rank 1: each sorted by expert
# ```
#
# No two ranks send the same number of rows, so this is an all-to-all with *uneven* pieces, and before the rows their numbers have to
# travel. What came is not sorted by expert: rows of expert 2 come from every sender.

# %% [markdown]
# [[exercise 19-moe-dispatch]]
#
# `moe_layer(comm, exchange, x, chosen, weights, run_expert, n_local)` returns for each token the weighted sum of what its experts
# return, (tokens, width).
#
# - `x` is (tokens, width), `chosen` (tokens, k) the numbers of experts over all ranks, `weights` (tokens, k). Ranks may have
#   different numbers of tokens.
# - `run_expert(e, rows)` runs the rank's own expert `e`, from 0 to `n_local - 1`. An expert may be given no rows.
# - `exchange(rows, send, receive)` is an all-to-all that autograd knows, with lists of one number for each rank: the first `send[0]`
#   rows go to rank 0, the next to rank 1, and so on; what comes are `receive[0]` rows of rank 0, then those of rank 1. In the
#   backward pass the gradients go back the same way.
# - `comm.all_to_all_single(output, input)` exchanges equal pieces, and needs no gradient: good for numbers of rows.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Each rank needs to know how many rows will come for each of *its* experts from each rank. Everybody has one such number for
# each expert.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `order = chosen.flatten().argsort(stable=True)` sorts the choices by expert, and `order // k` are their tokens. `bincount` counts the
# choices by expert: exchanged in equal pieces, row `r` of the result says what comes from rank `r`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With `coming` of shape (ranks, n_local), `torch.arange(n_local).repeat(n).repeat_interleave(coming.flatten())` is the expert of each row
# that came. Fill a tensor like the rows expert by expert, send it back with the two lists swapped, write it to the places
# `order`, and only then weigh and add.
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
# Each rank has two of the eight experts. In the second row the rank with the favourite works on far more than its 256 rows, and
# what it works on it has to receive and send back. The other ranks wait for it twice, forward and backward.
#
# ## Places at the experts
#
# The slowest rank is the one with the most tokens. So experts get a limited number of places.

# %% [markdown]
# **Predict:** every expert gets places for 1.25 times the mean load, and what finds no place is dropped. What share of the tokens
# with a shared direction is dropped, in percent?

# %% nbgrader={"grade": false, "grade_id": "19-predict-dropped", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("dropped at 1.25", None, unit="%")

# %% [markdown]
# [[exercise 19-moe-capacity]]
#
# - `capacity(n_tokens, n_experts, k, factor)` returns how many **places** an expert has: `factor` times its load if all choices were
#   spread evenly, rounded up to a whole number.
# - `dispatch(logits, k, places)` takes the router's scores, (tokens, experts). It returns `experts`, (tokens, k), each token's
#   choices with the best first, and `kept`, a bool tensor of the same shape: True where the choice has a place. Places are given
#   to all first choices in the order of the tokens, then to all second choices, and so on.
# - `balancing_loss(logits, k)` returns $E \sum_e f_e P_e$ over the $E$ experts: $f_e$ is the share of tokens that have expert $e$ among
#   their $k$ choices (whether they find a place or not), $P_e$ the mean over all tokens of the softmax probability of $e$.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Who comes when? Put all choices into one queue. Each then has a number among those that want the same expert.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `experts.t().flatten()` is the queue. With a 1 in the column of the chosen expert (`one_hot`), a cumulative sum over the queue counts
# how many came before. The loss: counts have no gradient, so it reaches the router through $P$ alone.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `turn = one_hot.cumsum(0)` says which number each choice has at its expert; pick it with `gather`, compare it with `places`, and bring it
# back to (tokens, k). Rounding up is `math.ceil`, or `-(-a // b)` for whole numbers.
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
# 27 %. The places are there, at experts whom nobody asks. A dropped token is not lost: it skips the experts, and only the residual
# connection carries it on.
#
# </details>
#
# The balancing loss is smallest ($k$, so 1 here) where all experts are chosen alike. It is added to the training loss with a small
# weight, 0.01 or so.
#
# **In practice** the switch is `output_router_logits=True` of a Mixtral-like configuration, with its `router_aux_loss_coef`. Mixtral drops
# no tokens and takes the imbalance in time instead; Switch Transformer and GShard have a capacity factor.

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

# %% [markdown]
# Attention over a ring is online softmax with a network in the middle. What hurts in both halves of this lab is not how many
# bytes travel but that some rank has more to do than the others: the triangle could be dealt out evenly in advance, and the tokens
# cannot, because the router decides only when they are there.
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
    "zigzag instead of blocks, 8 ranks",
    speed=lambda: (
        f"{15 / 8 / (max(sum(p + 1 for p in mine) for mine in zigzag(4096, 8)) * 8 / (4096 * 4097 / 2)):.2f} x as fast"
    ),
    memory=lambda: f"1/{len(zigzag(4096, 8))} of the tokens on each rank",
)

# %% [markdown]
# ## Open question
#
# 3 points. A person reads your answer, so no check responds at once, and `progress` does not count it. A few sentences; numbers
# count more than words.
#
# (3 points, read by a person) 8 ranks train on texts of 131,072 tokens with ring attention: 8 heads of keys and values of 128 numbers in
# bfloat16, 32 heads of queries. A rank computes 400 TFLOP/s and sends 50 GB/s to its neighbour. In one layer's forward pass, how long
# does a rank work on one block, and how long does a block travel? From which length of the text on would the transfer no longer be
# hidden?

# %% [markdown] nbgrader={"grade": true, "grade_id": "19-open-hidden-transfer", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# A rank has L = 16,384 tokens. A block of keys and values: 16,384 x 2 x 8 x 128 x 2 bytes = 67 MB, 1.34 ms at 50 GB/s. Work: two
# products of L x L x 128 for each of 32 heads, 4 x 32 x 128 x L^2 FLOPs = 4.4 TFLOP, 11 ms; with zigzag half of it lies behind the
# mask: 5.5 ms. So the transfer is hidden four times over.
# Work falls with L^2, the transfer with L: they meet where 5.5 / 1.34 = 4.1 is 1, at L = 4,000 tokens on a rank, a text of 32,000. (With
# the whole square 2,000 and 16,000.) Shorter texts are cut by other means.
#
# Marks: 1 for the transfer (67 MB, 1.3 ms). 1 for the work (11 or 5.5 ms, which of the two must be said). 1 for the length, by the ratio.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Hao Liu, Matei Zaharia and Pieter Abbeel, *Ring Attention with Blockwise Transformers for Near-Infinite Context* (ICLR 2024).
# - William Brandon and others, *Striped Attention: Faster Ring Attention for Causal Transformers* (2023): round robin in place of zigzag.
# - William Fedus, Barret Zoph and Noam Shazeer, *Switch Transformers* (JMLR 2022): capacity, dropped tokens, the balancing loss.
# - Dmitry Lepikhin and others, *GShard* (ICLR 2021): first choices before second ones.
# - Aaron Grattafiori and others, *The Llama 3 Herd of Models* (2024), section 3.3.2: context parallelism with $2n$ chunks.
#
# **Sources.** The texts above. Sizes of Llama-3-8B: its published configuration. Megatron-LM's and PyTorch's documentation of context
# parallelism.
