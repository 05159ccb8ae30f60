# %% [markdown]
# # Lab 14: Collectives
#
# A model of eight billion parameters has 16 GB of gradients in 16-bit floats. With 16 GPUs that each train on a part of the
# batch, there are 16 such gradients, and before each update every GPU needs their sum. The network moves 25 GB/s into each
# GPU and 25 GB/s out of it. If every GPU sends to one, which adds up and sends the sum back, a step takes 19 seconds. A
# library call, *all-reduce*, takes 1.2 seconds, and on a thousand GPUs 1.3. **How can the time hardly depend on the number
# of GPUs?**
#
# You will write this call in four ways, from nothing but send and receive: through one rank, along a tree, by exchanges,
# and around a ring. Each is checked on its values, to the last bit, and on what it sends: bytes, messages and rounds. Then
# you write one that knows about nodes, and a model that says which one is fastest where. At the end you can read the data
# sheet of a network and say what the communication of a step costs, and you recognize a deadlock when you see one.
#
# [[time]]
#
# You need to know PyTorch's tensors, and no earlier lab. You need neither a GPU nor a network. Because the ranks of a check
# wait for each other, a check stops an endless loop only after 20 seconds.

# %% nbgrader={"grade": false, "grade_id": "14-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from collections.abc import Sequence

import torch
from torch import Tensor

import labkit.figures
from labkit import Predictions, check, progress, run_ranks, written
from labkit.material.lab14 import managers_tree
from labkit.ranks import UNIT, Cluster, Comm, CommError, Wire, measure_ranks

guesses = Predictions("14")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# **The question, measured.** The simulated network below is a hundred thousand times slower than 25 GB/s, and the tensor a
# hundred thousand times smaller than the gradients. So the seconds on its clock are those of the real network. (They are
# virtual: the cell itself takes almost no time.) The all-reduce is the library's. Once you have built the ring, you will
# know what it does inside.

# %%
SCALE = 100_000
slow_network = Cluster(ranks_per_node=1, across=Wire(alpha_s=0.0, bytes_per_s=25e9 / SCALE))
gradients = torch.ones(8_000_000_000 // SCALE, dtype=torch.bfloat16)


def with_the_library(comm: Comm) -> None:
    comm.all_reduce(gradients.clone())


print("ranks   through one rank   the library")
for n in (2, 4, 8, 16, 32):
    _, traffic = measure_ranks(with_the_library, n, cluster=slow_network)
    through_one_s = 2 * (n - 1) * gradients.nbytes / slow_network.across.bytes_per_s
    print(f"{n:5}{through_one_s:16.2f} s{traffic.seconds:12.2f} s")

# %% [markdown]
# ## Ranks and messages
#
# A **rank** is one of $n$ copies of a program. All run the same function. Each has its own memory, and nothing is shared:
# what one rank knows and another needs has to be sent. The function gets a **communicator** `comm`, its access to the
# network, whose methods have the names of `torch.distributed`:
#
# | | |
# |---|---|
# | `comm.rank`, `comm.world_size` | the number of this rank, 0 to n-1, and n |
# | `comm.send(tensor, dst)` | send to rank `dst`, and return once that rank receives it |
# | `comm.recv(tensor, src)` | wait for a message from rank `src` and write it *into* `tensor`, of the same shape and dtype; returns nothing |
# | `work = comm.isend(tensor, dst)` | start to send, and return at once; you must call `work.wait()` later |
# | `work = comm.irecv(tensor, src)` | start to receive, and return at once; you must call `work.wait()` later |
# | `work.wait()` | return when that transfer is done; before that, do not change what is sent or use what is received |
#
# The simulator forgives it if you change a tensor before its `wait`. Real ranks may send wrong numbers then, and the checks of
# this lab refuse it.
#
# `run_ranks(fn, n)` calls `fn(comm)` once for each rank and returns the results in order. Here the ranks are **simulated**:
# they are threads that take turns, in the same way in every run, and every message is counted. Later in this lab the same
# functions run on real processes.


# %%
def pass_it_on(comm: Comm) -> Tensor:
    x = torch.full((3,), float(comm.rank))
    if comm.rank == 0:
        comm.send(x, 1)
    if comm.rank == 1:
        comm.recv(x, 0)
    return x


for rank, x in enumerate(run_ranks(pass_it_on, 3)):
    print(f"rank {rank} has {x}")

# %% [markdown]
# **Predict:** two ranks want to swap their tensors. Each calls `send` with its own and then `recv` for the other's. What
# happens?

# %% nbgrader={"grade": false, "grade_id": "14-predict-swap", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("send, then receive", None, among=("they swap", "deadlock", "one succeeds"))


# %%
def swap(comm: Comm) -> Tensor:
    partner = 1 - comm.rank
    mine, theirs = torch.full((3,), float(comm.rank)), torch.empty(3)
    comm.send(mine, partner)
    comm.recv(theirs, partner)
    return theirs


try:
    run_ranks(swap, 2)
    happened = "they swap"
except CommError as error:
    happened = "deadlock"
    print(error)
guesses.settle("send, then receive", happened)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# A **deadlock**: `send` returns when the other side receives, and the other side is in a `send` as well. The simulator sees
# at once that no rank can continue, and says who waits for whom. Real ranks stand still until a watchdog, a timer of the
# library, ends the job. In PyTorch it waits for 10 minutes on NCCL (the library for GPUs) and for 30 on gloo (for CPUs).
# (Some libraries buffer small messages and let `send` return early. A program that relies on it works in the test and hangs
# with the large model.)
#
# </details>
#
# The way out is to start one of the two transfers without waiting for it.


# %%
def swap_at_once(comm: Comm) -> Tensor:
    partner = 1 - comm.rank
    mine, theirs = torch.full((3,), float(comm.rank)), torch.empty(3)
    work = comm.isend(mine, partner)
    comm.recv(theirs, partner)
    work.wait()
    return theirs


results, traffic = measure_ranks(swap_at_once, 2, cluster=UNIT)
print("results:", results)
print(f"bytes sent by each rank: {traffic.bytes_sent}, messages: {traffic.messages}")
print(f"rounds: {traffic.seconds:.0f}")

# %% [markdown]
# Three things are counted, and the checks of this lab compare all of them with a formula.
#
# - **Bytes** that a rank sends. $S$ is the size of the tensor.
# - **Messages** that a rank sends.
# - **Rounds.** In one round a rank sends at most one message and receives at most one, and a message that depends on
#   another one comes in a later round. On the cluster `UNIT` a message takes one second whatever its size, so the number
#   of rounds is the number of seconds.
#
# Sending and receiving at the same time, as in the swap, is one round. In the report of a check, `bytes_sent` and messages
# are those of the rank that sends most, and `bytes_total` is the sum over all ranks.

# %% [markdown]
# ## Send everything to one rank and back
#
# An **all-reduce** starts with a tensor on each rank and ends with their sum on all of them. A call that all ranks make
# together, like this one, is a **collective**. The obvious program lets rank 0 receive the other tensors one after the
# other, add them up, and send the sum to all. If the one in the middle is a machine of its own, it is called a **parameter
# server**: often a host's memory, to which all workers push gradients and from which they pull weights.
#
# What does the rank in the middle pay? It has one port in and one port out, so for $n$ ranks
#
# $$\text{rounds} = 2(n-1), \qquad \text{bytes sent by rank 0} = (n-1)\,S, \qquad \text{by any other rank} = S$$

# %% [markdown]
# **Predict:** 16 ranks have 16 ports that can send, one each. While rank 0 receives the tensors, what share of these 16
# ports is sending at a time?

# %% nbgrader={"grade": false, "grade_id": "14-predict-ports", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("ports that send", None, unit="%")

# %% [markdown]
# [[exercise 14-naive]]
#
# Write `naive_all_reduce(comm, x)`. It returns the sum of all ranks' `x`, of the same shape and dtype, on every rank, by way
# of rank 0, and does not change `x`. The number of ranks is 1 or more. `x` has any shape (there may be no elements at all),
# and is of floats or integers. The values must be the same on all ranks to the last bit. Collectives of `comm` are not
# allowed, here and in the exercises that follow.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The function runs on every rank, so it has two branches: what rank 0 does, and what the others do. Every `send` of one
# branch needs a `recv` in the other.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Rank 0: make a copy of `x`; for each other rank in turn, receive into a second tensor and add that to the copy; then
# send the copy to each. The others: send `x` to rank 0, then receive the sum from it.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `total, got = x.clone(), torch.empty_like(x)`. On rank 0 `for other in range(1, comm.world_size):` with
# `comm.recv(got, other)` and `total += got`, then a second loop with `comm.send(total, other)`. Elsewhere
# `comm.send(x, 0)` and `comm.recv(total, 0)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "14-naive", "locked": false, "schema_version": 3, "solution": true, "task": false}
def naive_all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x, on every rank, by way of rank 0."""
    ### BEGIN SOLUTION
    total, got = x.clone(), torch.empty_like(x)
    if comm.rank > 0:
        comm.send(x, 0)
        comm.recv(total, 0)
        return total
    for other in range(1, comm.world_size):
        comm.recv(got, other)
        total += got
    for other in range(1, comm.world_size):
        comm.send(total, other)
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "14-naive-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("14-naive", naive_all_reduce)

# %% tags=["figure"]
labkit.figures.collective_steps(naive_all_reduce, n_ranks=4)

# %% [markdown]
# Time runs to the right, one column per round. A box shows what a rank has after that round, with a slot for each rank whose
# tensor is in the sum. It turns dark when it is complete. Arrows are messages. Look at how few there are. **If a check
# fails, run the figure below it and look:** it draws the messages of your function, right or wrong.

# %%
if written(naive_all_reduce):
    _, traffic = measure_ranks(lambda comm: naive_all_reduce(comm, torch.ones(1)), 16, cluster=UNIT)
    guesses.settle("ports that send", 100 * sum(traffic.messages) / (traffic.seconds * 16))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 1 of 16 ports, 6.25 %. The others wait, in every round. (In the figure it is one of four.)
#
# </details>
#
# **In practice** parameter servers come back to this idea with more servers, each of which keeps a part of the parameters,
# and without rounds: a worker does not wait for the others and uses weights that are a little old (lab 15 measures what
# that costs). They fit where workers come and go, or where each step touches few rows of a huge embedding table. In GPU
# training, all-reduce has replaced them.

# %% [markdown]
# ## Add up along a tree
#
# While rank 0 adds two tensors, ranks 2 and 3 could add theirs. In the first round every odd rank sends to the rank below it,
# and is done. In the second round the ranks 2, 6, 10, ... send to the rank two below. In round $k$, counted from 0, every
# rank $r$ with $r \bmod 2^{k+1} = 2^k$ sends to rank $r - 2^k$. When only rank 0 is left, it has the sum, which goes down
# the same way:
#
# $$\text{rounds} = 2\,\lceil \log_2 n \rceil, \qquad \text{bytes sent by rank 0} = \lceil \log_2 n \rceil\,S, \qquad
# \text{by all together} = 2(n-1)\,S$$
#
# The same number of messages as before, but now several go in one round.

# %% [markdown]
# **Predict:** in another tree, rank $r$ reports to rank $\lfloor (r-1)/2 \rfloor$, so every rank has up to two children. For
# 8 ranks it has depth 3 as well. On the way up and on the way down, each rank serves the child with the lower number first.
# How many rounds does an all-reduce along this tree take?

# %% nbgrader={"grade": false, "grade_id": "14-predict-two-children", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("rounds, two children each", None, exact=True)

# %% [markdown]
# [[exercise 14-tree]]
#
# Write `tree_all_reduce(comm, x)`, with the same contract as before, in $2\lceil \log_2 n \rceil$ rounds for any $n$.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Draw it for $n = 8$ and cross out ranks from the end: for $n = 5$, who has no partner, and in which round?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Let `width` be 1, 2, 4, ... as long as it is below n. A rank that is a multiple of `2 * width` receives from
# `rank + width` if there is such a rank; any other rank sends to `rank - width` and is out. Downwards is the same loop
# backwards, with sender and receiver swapped.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `while width < n and rank % (2 * width) == 0:` receive from `rank + width` if that is below n, add, double `width`.
# After the loop a rank other than 0 sends to `rank - width` and receives the sum from there. Then `while width > 1:`
# halve `width` and send to `rank + width` if that is below n. The largest distance goes first on the way down.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "14-tree", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tree_all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x, on every rank, up a tree with its root at rank 0 and down again."""
    ### BEGIN SOLUTION
    rank, n = comm.rank, comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    width = 1
    while width < n and rank % (2 * width) == 0:
        if rank + width < n:
            comm.recv(got, rank + width)
            total += got
        width *= 2
    if rank > 0:
        comm.send(total, rank - width)
        comm.recv(total, rank - width)
    while width > 1:
        width //= 2
        if rank + width < n:
            comm.send(total, rank + width)
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "14-tree-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("14-tree", tree_all_reduce)

# %% tags=["figure"]
labkit.figures.collective_steps(tree_all_reduce, n_ranks=8)

# %% [markdown]
# Six rounds for 8 ranks, where the naive way takes 14.

# %%
_, traffic = measure_ranks(lambda comm: managers_tree(comm, torch.ones(1)), 8, cluster=UNIT)
guesses.settle("rounds, two children each", traffic.seconds)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 9, because a rank with two children can receive from only one at a time, and send to only one at a time. The longest chain
# up has five messages: 7 → 3, 3 → 1, 4 → 1, 1 → 0, 2 → 0. Four more rounds lead down: 0 → 1, 0 → 2, 2 → 5, 2 → 6. (If every
# rank first serves the child that is ready first, one round is saved.) Your tree is **binomial**: the root has
# $\lceil \log_2 n \rceil$ children, and each is ready just when its turn comes.
#
# </details>
#
# Most ranks still do nothing most of the time. In the first round half of them send, in the last round half of them receive.
#
# **In practice** `reduce` is the first half of this program and `broadcast` the second. MPI libraries use binomial trees for
# both if messages are short. NCCL's tree all-reduce cuts the tensor into pieces that follow each other through the tree. It
# uses two trees, so that a rank that is a leaf in one is an inner node of the other.

# %% [markdown]
# ## Exchange with partners ever farther away
#
# On the way up, a sender has nothing to do after its message. Why not let both partners send, and both add? In round 0 ranks 0
# and 1 swap tensors, ranks 2 and 3, and so on. Then both of a pair have the same sum of two. In round 1 rank $r$ swaps with
# the rank whose number differs in bit 1, in round $k$ with $r \oplus 2^k$. After $\log_2 n$ rounds every rank has the whole
# sum, and there is no way down. The picture of this is called a **butterfly**, and the algorithm **recursive doubling**:
#
# $$\text{rounds} = \log_2 n, \qquad \text{bytes sent by each rank} = S \log_2 n$$
#
# If $n$ is not a power of two, some $r \oplus 2^k$ do not exist. Then the $n - 2^{\lfloor \log_2 n \rfloor}$ ranks past the
# largest power of two hand in their tensors before the exchanges and get the sum after them. That makes
# $\lfloor \log_2 n \rfloor + 2$ rounds.

# %% [markdown]
# **The order of additions.** In floats, $(a + b) + c$ and $a + (b + c)$ differ in the last bits (lab 02), but $a + b$ and
# $b + a$ never do. If two partners add the same two numbers, one as "mine + theirs" and the other as "theirs + mine", both
# get the same bits. This keeps the replicas of a model identical, and it is why pairs swap: if rank $r$ sent to $r + 2^k$ and
# received from $r - 2^k$, each rank would add in an order of its own.
#
# Would it matter? At first nothing would happen. A few gradients differ by one unit in the last place. But then each replica
# goes its own way, nothing brings them together again, and after many thousand steps the ranks average gradients of
# different models. PyTorch's DistributedDataParallel (DDP, lab 15) sends the weights of rank 0 to all ranks when it
# starts, and never again.
#
# [[exercise 14-butterfly]]
#
# Write `butterfly_all_reduce(comm, x)`, with the same contract, in $\log_2 n$ rounds, or $\lfloor \log_2 n \rfloor + 2$
# if $n$ is not a power of two. The bits on all ranks must agree, in bfloat16 as well.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Both partners send and both receive: remember the swap from the beginning. The partner of rank r at distance d = 1, 2,
# 4, ... is `r ^ d`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Let `inner` be the largest power of two that is not above n. A rank from `inner` on sends to `rank - inner`, then receives
# the sum from there, and does nothing else. A rank r with `r + inner < n` receives once before the exchanges and sends once
# after them.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `inner = 1 << (n.bit_length() - 1)`. In the loop `while distance < inner:` start `work = comm.isend(total, rank ^
# distance)`, receive into `got` from the same rank, `work.wait()`, *then* `total += got` and double the distance.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "14-butterfly", "locked": false, "schema_version": 3, "solution": true, "task": false}
def butterfly_all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x, on every rank, by exchanges between pairs of ranks."""
    ### BEGIN SOLUTION
    rank, n = comm.rank, comm.world_size
    inner = 1 << (n.bit_length() - 1)
    total, got = x.clone(), torch.empty_like(x)
    if rank >= inner:
        comm.send(total, rank - inner)
        comm.recv(total, rank - inner)
        return total
    if rank + inner < n:
        comm.recv(got, rank + inner)
        total += got
    distance = 1
    while distance < inner:
        work = comm.isend(total, rank ^ distance)
        comm.recv(got, rank ^ distance)
        work.wait()
        total += got
        distance *= 2
    if rank + inner < n:
        comm.send(total, rank + inner)
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "14-butterfly-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("14-butterfly", butterfly_all_reduce)

# %% tags=["figure"]
labkit.figures.collective_steps(butterfly_all_reduce, n_ranks=8)

# %% [markdown]
# Follow the crossing arrows: distance 1, 2, 4. Every rank sends in every round, and after three rounds all boxes are dark.
# Fewer are not possible, because what a rank knows can at most double in a round. The price is bytes: each rank sends the
# whole tensor three times.

# %% [markdown]
# ## Send chunks around a ring
#
# The tree and the butterfly save rounds. For 16 GB of gradients, rounds cost nothing: they take microseconds. What counts is
# how many bytes go through the busiest port, and the butterfly sends $S \log_2 n$ through each. How few could it be?
#
# Cut the tensor into $n$ chunks and put the ranks in a ring, each sending only to the next one. Count the steps from 0. In
# step 0 rank $r$ sends its chunk $r$. From step 1 on, it sends in step $k$ chunk $r - k$, the one that it has just received
# and to which it has added its own numbers. (All chunk numbers are modulo $n$.)

# %% tags=["figure"]
labkit.figures.ring_plan(n_ranks=4)

# %% [markdown]
# The red chunk travels. The blue level shows how many ranks' numbers have been added to it. After $n - 1$ steps each
# chunk has visited all ranks, and rank $r$ holds the finished chunk $r + 1$. Then the finished chunks travel once more around
# the ring, in another $n - 1$ steps, and replace what is there.
#
# $$\text{rounds} = 2(n-1), \qquad \text{bytes sent by each rank} = 2\,\frac{n-1}{n}\,S$$
#
# In each of the two halves a rank sends all of the $n$ chunks but one.

# %% [markdown]
# **Predict:** by which factor do the bytes that each rank sends grow from 2 ranks to 32?

# %% nbgrader={"grade": false, "grade_id": "14-predict-ring-bytes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes, 2 to 32 ranks", None, unit="times")

# %% [markdown]
# [[exercise 14-ring]]
#
# Write `ring_all_reduce(comm, x)`, with the same contract. The number of elements is seldom a multiple of $n$, and may
# be smaller than $n$. The lengths of the chunks may differ by one at most. Do not pad them.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Do it on paper for three ranks and a tensor of three elements: six boxes, two steps of adding, two of passing on.
# Which chunk does rank 0 send in each of the four steps?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `chunks = list(x.clone().reshape(-1).tensor_split(n))` gives n views, the first ones longer by one if there is a
# remainder. In every step start to send one chunk to the next rank, receive into a buffer from the one before, wait, and
# then add the buffer to its chunk (first half) or copy it there (second half).
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# For `step in range(2 * (n - 1))` rank r sends `chunks[(r - step) % n]` and receives what belongs to `chunks[(r - step
# - 1) % n]`, in both halves. Use `mine += got` while `step < n - 1`, and `mine.copy_(got)` from there on.
# `torch.cat(chunks).reshape(x.shape)` at the end.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "14-ring", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring_all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x, on every rank, in chunks that go twice around the ring of ranks."""
    ### BEGIN SOLUTION
    rank, n = comm.rank, comm.world_size
    chunks = list(x.clone().reshape(-1).tensor_split(n))
    for step in range(2 * (n - 1)):
        mine = chunks[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(chunks[(rank - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        if step < n - 1:
            mine += got
        else:
            mine.copy_(got)
    return torch.cat(chunks).reshape(x.shape)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "14-ring-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("14-ring", ring_all_reduce)

# %% tags=["figure"]
labkit.figures.collective_steps(ring_all_reduce, n_ranks=4)

# %% [markdown]
# A box is now one chunk with its four slots, and the chunk that has just arrived has a red frame. In the first three rounds
# the framed chunk gains a slot per round. In the last three, the dark chunks go around. Every port is busy in every round,
# with a quarter of the tensor each time.

# %%
if written(ring_all_reduce):
    sent = {}
    for n in (2, 32):
        _, traffic = measure_ranks(lambda comm: ring_all_reduce(comm, torch.ones(64)), n)
        sent[n] = max(traffic.bytes_sent)
    guesses.settle("bytes, 2 to 32 ranks", sent[32] / sent[2])

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# From $2 \cdot \tfrac{1}{2} S = S$ to $2 \cdot \tfrac{31}{32} S$: less than twice, and it stays below twice for any number
# of ranks. That is the answer to the lab's question.
#
# </details>
#
# No algorithm needs fewer bytes in all. For each element, $n - 1$ additions need a number from another rank, and $n - 1$
# ranks have to be told the sum. That makes $2(n-1)S$ bytes over all ranks. Naive and tree do not send more than this, but
# of the four only the ring spreads it evenly over the ports.
#
# But the messages get short. With 1000 ranks there are 1998 rounds of $S/1000$, each with its latency. For a small tensor the
# ring is as slow as the way through rank 0.
#
# The bits agree for another reason than in the butterfly: each chunk is finished in one place and then copied. Each chunk
# is finished in a different place, so the order of additions differs from chunk to chunk, but all ranks get the same result.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Split the all-reduce into its two halves
#
# The ring consists of two calls that are useful alone. **Reduce-scatter**: each rank has a list of $n$ parts, and rank $r$
# ends with the sum of all ranks' part $r$. **All-gather**: rank $r$ has one part, and all ranks end with the list of all
# parts.
#
# $$\text{all-reduce} = \text{reduce-scatter} + \text{all-gather}, \qquad \text{each: } n - 1 \text{ rounds},\;
# \frac{n-1}{n}\,S \text{ bytes sent by each rank}$$
#
# Why stop half-way? If rank $r$ updates only the $r$-th part of the weights, it needs only that part of the summed
# gradients, and only that part of the optimizer's state. This is the idea of ZeRO (lab 16), and the two halves send not one
# byte more than an all-reduce. FSDP stores the weights in parts, too. It gathers them for the forward pass and again for the
# backward pass, so it sends half as much again.
#
# One thing changes. In the ring, rank $r$ finished chunk $r + 1$. Here it has to end with part $r$. Before you write it:
# which part does each rank send first?
#
# [[exercise 14-reduce-scatter]]
#
# Write three functions, the first two with the arguments of `torch.distributed`.
#
# - `reduce_scatter(comm, output, input_list)` writes the sum over all ranks of `input_list[r]` into `output` of rank r.
#   The parts may have different lengths; those with the same number have the same length on all ranks.
# - `all_gather(comm, output_list, tensor)` writes `tensor` of rank r into `output_list[r]` on every rank. The tensors
#   of the list have the right lengths already.
# - `all_reduce(comm, x)` calls these two and returns the sum, in the shape of `x`.
#
# None of them changes its input. Each of the first two takes $n - 1$ rounds, in which a rank sends $n - 1$ parts.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Both loops are in your ring already. Only three things are new: where they start, where the result is written, and that
# the lists are arguments.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A part that starts at rank r + 1 and goes around the ring is finished when it comes to rank r. So in step k rank r
# sends part `r - 1 - k` and receives `r - 2 - k`. For all-gather: in step k send part `r - k`, and receive `r - 1 - k`
# straight into the list.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Copy the parts first: `parts = [part.clone() for part in input_list]`, and at the end `output.copy_(parts[rank])`. In
# all-gather begin with `output_list[rank].copy_(tensor)`. In all-reduce: `parts = list(x.reshape(-1).tensor_split(n))`,
# an `empty_like` of your own part for the one, a list of `empty_like` of all parts for the other, `torch.cat`,
# `reshape`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "14-reduce-scatter", "locked": false, "schema_version": 3, "solution": true, "task": false}
def reduce_scatter(comm: Comm, output: Tensor, input_list: list[Tensor]) -> None:
    """Write the sum over all ranks of their input_list[comm.rank] into output."""
    ### BEGIN SOLUTION
    rank, n = comm.rank, comm.world_size
    parts = [part.clone() for part in input_list]
    for step in range(n - 1):
        mine = parts[(rank - 2 - step) % n]
        got = torch.empty_like(mine)
        work = comm.isend(parts[(rank - 1 - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine += got
    output.copy_(parts[rank])
    ### END SOLUTION


def all_gather(comm: Comm, output_list: list[Tensor], tensor: Tensor) -> None:
    """Write the tensor of each rank r into output_list[r]."""
    ### BEGIN SOLUTION
    rank, n = comm.rank, comm.world_size
    output_list[rank].copy_(tensor)
    for step in range(n - 1):
        work = comm.isend(output_list[(rank - step) % n], (rank + 1) % n)
        comm.recv(output_list[(rank - 1 - step) % n], (rank - 1) % n)
        work.wait()
    ### END SOLUTION


def all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x, on every rank, from reduce_scatter and all_gather."""
    ### BEGIN SOLUTION
    parts = list(x.reshape(-1).tensor_split(comm.world_size))
    mine = torch.empty_like(parts[comm.rank])
    reduce_scatter(comm, mine, parts)
    gathered = [torch.empty_like(part) for part in parts]
    all_gather(comm, gathered, mine)
    return torch.cat(gathered).reshape(x.shape)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "14-reduce-scatter-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("14-reduce-scatter", reduce_scatter, all_gather, all_reduce)

# %% tags=["figure"]
labkit.figures.two_halves(all_reduce, n_ranks=4)

# %% [markdown]
# Cut this picture in the middle. On the left is the reduce-scatter, at whose end each rank has one dark chunk, now its own:
# the diagonal. On the right is the all-gather. Every part starts one rank later than in the ring, so rank $r$ begins with part
# $r - 1$. You will meet this picture again in labs 16 and 17.

# %% [markdown]
# ## Compare them round by round
#
# Choose an algorithm and pull the slider, or press play. (There is no slider on a printed page; the pictures above show the
# same.)

# %%
ways = {
    "naive": naive_all_reduce,
    "tree": tree_all_reduce,
    "butterfly": butterfly_all_reduce,
    "ring": ring_all_reduce,
}
ways = {name: way for name, way in ways.items() if written(way)}

# %% tags=["figure"]
labkit.figures.collective_player(ways, n_ranks=8) if ways else None

# %% tags=["figure"]
labkit.figures.bytes_by_rank(ways, n_ranks=8) if ways else None

# %% [markdown]
# The bytes that each of 8 ranks sends, in units of $S$, counted from your functions. Naive and tree load a few ranks heavily
# and the others little. Butterfly and ring load all ranks alike, the ring least. Read the rounds above the bars: few rounds
# and few bytes are different goals, and none of the four reaches both. Which goal counts depends on $S$, on $n$ and on the
# network. The cost model below decides.
#
# Now the question of the opening once more, with your functions on the same slow network. Which column is the library's?

# %%
print(f"{'ranks':10}" + "".join(f"{name:>12}" for name in ways))
for n in (2, 4, 8, 16):
    seconds = []
    for way in ways.values():
        _, traffic = measure_ranks(
            lambda comm, way=way: way(comm, gradients), n, cluster=slow_network
        )
        seconds.append(traffic.seconds)
    print(f"{n:<10}" + "".join(f"{one:10.2f} s" for one in seconds))

# %% [markdown]
# <details><summary>Which one it is, and why</summary>
#
# The ring's: 0.64 s, 0.96 s, 1.12 s and 1.20 s, in every row what the table of the opening says. It is the only one whose
# seconds hardly grow from 8 ranks to 16, because each rank sends $2\frac{n-1}{n}\,S$, always less than $2S$. The other three
# send the whole tensor in every round, so their seconds grow with the number of rounds. With 2 ranks the butterfly needs
# no more than the ring: one swap of $S$ in place of two swaps of $S/2$.
#
# </details>
#
# ## Run them on real ranks
#
# So far everything ran in threads that take turns. The same functions run unchanged on processes of the operating system
# that communicate over *gloo*, PyTorch's library for CPUs (`backend="nccl"` on a machine with several GPUs). Your sums are
# compared with `torch.distributed.all_reduce` in the same processes, in three dtypes.


# %%
def against_torch(comm: Comm) -> dict[str, float]:
    """For each of the functions, the largest difference from torch.distributed, relative to the sum."""
    import torch.distributed as dist

    worst = {}
    for name, way in on_processes.items():
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            x = (torch.arange(1, 1002) * (comm.rank + 1) % 97 + 1).to(dtype)
            by_torch = x.clone()
            dist.all_reduce(by_torch)
            error = (way(comm, x).double() - by_torch.double()).abs() / by_torch.double()
            worst[f"{name}, {dtype}"] = error.max().item()
    return worst


on_processes = {**ways, "two halves": all_reduce} if written(all_reduce) else ways
differences = run_ranks(against_torch, 4, backend="gloo")
for what, error in differences[0].items():
    print(f"{what:28} largest relative difference {error:.4f}")

# %% [markdown]
# Integers agree exactly. So do these float32 numbers: they are small and whole, and every sum of them fits into 24 bits. In
# bfloat16, with 8 bits, whole numbers above 256 are 2 apart. A sum of four numbers near 100 is rounded on the way, so the
# order of the additions shows. Correct all-reduces differ here by 0.6 %. This is why gradients are often summed in float32
# even if they are stored in 16 bits. If one of your functions differs by 0 in bfloat16 as well, it adds in the order in
# which gloo does, which uses a ring. Your ring may differ from it and be right: it may start each chunk at another rank.
#
# On real ranks a mistake looks different. A deadlock is not detected at once: somebody has to give up waiting. Here
# `run_ranks` does, after two seconds. A `wait` that you forgot can make real ranks hang, too.

# %% tags=["varies"]
try:
    run_ranks(swap, 2, backend="gloo", timeout_s=2)
    print("it went through: gloo had buffered the small messages")
except CommError as error:
    print(error)

# %% [markdown]
# ## Know the other collectives
#
# Libraries offer a small family of such operations. In the table, each rank $r$ starts with a tensor of $S$ bytes or with a
# part of $S/n$. The bytes are those of a good algorithm for long messages.
#
# | | before | after | most bytes sent by a rank | met in |
# |---|---|---|---|---|
# | broadcast | $S$ on the root | $S$ on all | $S$, in pieces along a chain | start of DDP (15) |
# | reduce | $S$ on each | the sum on the root | $S$ | logging a loss |
# | scatter | $S$ on the root | part $r$ on rank $r$ | $\frac{n-1}{n}S$ | loading a sharded checkpoint |
# | gather | part $r$ on rank $r$ | all parts on the root | $\frac{1}{n}S$ | collecting metrics |
# | all-gather | part $r$ on rank $r$ | all parts on all | $\frac{n-1}{n}S$ | FSDP: weights (16) |
# | reduce-scatter | $S$ on each | part $r$ of the sum on rank $r$ | $\frac{n-1}{n}S$ | FSDP: gradients (16) |
# | all-reduce | $S$ on each | the sum on all | $2\frac{n-1}{n}S$ | DDP (15), tensor parallel (17) |
# | all-to-all | $n$ parts on each | part $r$ of every rank on rank $r$ | $\frac{n-1}{n}S$ | mixture of experts |
# | barrier | | no rank continues before all have arrived | none | timing |
#
# Two rules avoid most problems. All ranks must call the same collectives in the same order: a collective inside
# `if comm.rank == 0:` is a deadlock. And no rank leaves an all-reduce, an all-gather or a barrier before
# the last one has entered it.

# %% [markdown]
# ## Tell two kinds of parallelism apart
#
# What do the ranks compute between two collectives? There are two answers, and the rest of the course combines them.
#
# - **Data parallel.** Each rank has the whole model and its own part of the batch. The ranks communicate once per step, to
#   sum the gradients: an all-reduce of the model's size, however large the batch is (lab 15). ZeRO and FSDP are data
#   parallel too, and store the model in parts (lab 16).
# - **Model parallel.** Each rank has a part of the model, and all see the same data. They communicate inside each layer
#   (tensor parallel: an all-reduce of the activations) or between layers (pipeline parallel: a send and a receive).
#   What travels are activations, not weights or their gradients. So the traffic grows with the batch and with the width
#   of the layers. With tensor parallel it also grows with the number of layers (lab 17).
#
# Tensor parallel ranks wait for each other several times in every layer. Data parallel ranks communicate once per step, and
# that can be hidden behind the backward pass. Hence the usual plan: tensor parallel within a node, where the wires are
# several times as fast, and data parallel across nodes. The next section shows what a collective gains from knowing about
# nodes.

# %% [markdown]
# ## Use the fast wires within a node
#
# On a real machine not all wires are alike. Eight GPUs share a **node**, and within it each moves some 200 GB/s. What leaves the
# node goes through a network port, here one of 25 GB/s that all of its GPUs share. A ring only has neighbours, and which
# neighbours are on the same node depends on how the launcher numbers the ranks: torchrun fills one node after the other, and
# `mpirun --map-by node` deals them round-robin, like cards.

# %% tags=["figure"]
labkit.figures.ring_over_nodes()

# %% [markdown]
# The same ring of 16 ranks on four nodes. Red links cross between nodes.
#
# Within a node, communication is nearly free, so only the sum of the whole node should leave it, once. Each rank can carry
# a part of it:
#
# 1. Within each node, a reduce-scatter: then the rank in place $p$ has part $p$ of the node's sum.
# 2. Between the nodes, an all-reduce of part $p$ among the ranks in place $p$, for all $p$ at once.
# 3. Within each node, an all-gather.
#
# With $N$ nodes, each rank sends $2(N-1)/N$ of its part in step 2, as in any ring of $N$. The parts of a node
# add up to $S$, so for a node
#
# $$\text{bytes that leave a node} = 2\,\frac{N-1}{N}\,S, \qquad \text{rounds between nodes} = 2(N-1)$$

# %% [markdown]
# **Predict:** 4 nodes of 4 ranks each, and a flat ring of 16 ranks that are dealt round-robin. How many times $S$ leaves each
# node?

# %% nbgrader={"grade": false, "grade_id": "14-predict-round-robin", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("leaves a node, round-robin", None, unit="S")

# %% [markdown]
# [[exercise 14-hierarchical]]
#
# Write `hierarchical_all_reduce(comm, x, nodes)`. It returns the sum over all ranks and does not change `x`. `x` has one
# dimension and the same length everywhere. `nodes` lists the ranks of each node, for instance `[[0, 2], [1, 3]]`; all nodes
# have the same number of ranks. There may be one node, or one rank in each.
#
# `comm` knows no groups of ranks. Write a helper that goes around a ring of *any list* of ranks, and use it for all steps.
# The check counts the bytes that leave each node and the longest chain of messages between nodes. How you add up within a
# node is up to you.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A ring does not have to go through all ranks. Your reduce-scatter and all-gather work among any list of ranks if "next"
# means next *in the list*. You need them for two lists: the rank's own node, and the ranks in the same place of all nodes.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Cut a copy of `x` into one chunk for each rank of the node, as views. A reduce-scatter among the node's ranks completes
# chunk p on the rank in place p. Cut *that chunk* into one piece for each node, and do a reduce-scatter and an all-gather of
# the pieces among the ranks in place p. Then an all-gather of the chunks within the node. Views make all of it land in the
# copy.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# One helper serves all four calls: `go_round(comm, chunks, ranks, adds)`. With `place = ranks.index(comm.rank)`, in step k
# of `len(ranks) - 1` it sends chunk `place - k` (`place - k - 1` if it adds) to `ranks[(place + 1) % n]`, receives from
# `ranks[place - 1]` the chunk before that one, and adds it or copies it. All numbers of chunks are modulo n. So an adding
# round ends with chunk `place` complete, and a copying one starts with it.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "14-hierarchical", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hierarchical_all_reduce(comm: Comm, x: Tensor, nodes: list[list[int]]) -> Tensor:
    """The sum over all ranks of x (size,), which stays as it is; nodes[i] are the ranks on node i."""
    ### BEGIN SOLUTION
    node = next(ranks for ranks in nodes if comm.rank in ranks)
    place = node.index(comm.rank)
    peers = [ranks[place] for ranks in nodes]
    total = x.clone()
    chunks = total.tensor_split(len(node))
    pieces = chunks[place].tensor_split(len(peers))
    go_round(comm, chunks, node, adds=True)
    go_round(comm, pieces, peers, adds=True)
    go_round(comm, pieces, peers, adds=False)
    go_round(comm, chunks, node, adds=False)
    return total


def go_round(comm: Comm, chunks: Sequence[Tensor], ranks: list[int], adds: bool) -> None:
    """Half a ring among some of the ranks: each ends with its own chunk summed up, or with a copy of all."""
    n, place = len(ranks), ranks.index(comm.rank)
    for step in range(n - 1):
        sent = (place - step - adds) % n
        mine = chunks[sent - 1]
        got = torch.empty_like(mine)
        work = comm.isend(chunks[sent], ranks[(place + 1) % n])
        comm.recv(got, ranks[place - 1])
        work.wait()
        mine.copy_(mine + got if adds else got)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "14-hierarchical-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("14-hierarchical", hierarchical_all_reduce)

# %% tags=["figure"]
crossings = []
if written(ring_all_reduce, hierarchical_all_reduce):
    crossings = labkit.figures.between_nodes(ring_all_reduce, hierarchical_all_reduce)
    guesses.settle("leaves a node, round-robin", crossings[0].tensors)
labkit.figures.between_nodes_bars(crossings) if crossings else None

# %% [markdown]
# Your ring and your hierarchical function on 4 nodes of 4 ranks, with 3 µs and 200 GB/s within a node, 10 µs and 25 GB/s
# between nodes. Compare the two upper bars: it is the same ring and the same sum. Only the numbers of the ranks differ. The
# lowest bar was drawn for ranks that are dealt round-robin, too, but it does not depend on that.
#
# <details><summary>Check your prediction</summary>
#
# 7.5 $S$: each of the four ranks of a node sends $2 \cdot \tfrac{15}{16} S$ to another node. If the nodes are filled in
# order, one of the four does, and $2 \cdot \tfrac{15}{16} S$ leave the node in all.
#
# </details>

# %% [markdown]
# **In practice** you create the groups of ranks once and pass them to the library's collectives. A **device mesh** names
# them. Here are four real ranks as two nodes of two, beside your function:


# %%
def by_mesh(comm: Comm) -> tuple[Tensor, Tensor]:
    """The same three steps with the collectives of torch.distributed, and the student's function."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("between", "within"))
    x = torch.arange(8.0) * (comm.rank + 1)
    part, parts = torch.empty(4), [torch.empty(4), torch.empty(4)]
    dist.reduce_scatter(part, list(x.chunk(2)), group=mesh.get_group("within"))
    dist.all_reduce(part, group=mesh.get_group("between"))
    dist.all_gather(parts, part, group=mesh.get_group("within"))
    return torch.cat(parts), hierarchical_all_reduce(comm, x, [[0, 1], [2, 3]])


if written(hierarchical_all_reduce):
    by_torch, yours = run_ranks(by_mesh, 4, backend="gloo")[0]
    print("torch.distributed on a mesh:", by_torch.tolist())
    print("yours:                      ", yours.tolist())

# %% [markdown]
# FSDP calls this *hybrid sharding* and does exactly these steps with gradients (lab 16). NCCL looks at the machine and builds
# such hierarchies itself: chains within the nodes, rings or trees between them. In machines built for training, each GPU
# usually has a network port of its own. Then the parts of step 2 leave through all ports at once.

# %% [markdown]
# ## Predict the time of each
#
# The rounds and bytes of all programs stand above, also of those that you skipped. The butterfly has fewer rounds, the ring
# has fewer bytes. To compare them, both need a price in seconds. The usual model has two numbers. A message of $k$ bytes
# takes
#
# $$t(k) = \alpha + k\,\beta$$
#
# where $\alpha$ is the **latency** in seconds, paid for each message however short it is, and $\beta$ is the number of seconds
# for each byte, one over the bandwidth. A rank sends one message at a time and receives one at a time. The time of an algorithm
# is then that of its longest chain of messages, round after round.

# %% [markdown]
# **Predict:** 8 ranks, $\alpha$ = 10 µs, a bandwidth of 25 GB/s. From which size on, in MB, is the ring faster than the
# butterfly?

# %% nbgrader={"grade": false, "grade_id": "14-predict-crossing", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("ring beats butterfly from", None, unit="MB")

# %% [markdown]
# [[exercise 14-cost-model]]
#
# Write two functions.
#
# - `all_reduce_time(algorithm, n, n_bytes, alpha_s, beta_s)` returns the seconds that `"naive"`, `"tree"`, `"butterfly"`
#   or `"ring"` takes. `n_bytes` is $S$ and a multiple of `n`, so all chunks are equal; `n` is any number from 1 on.
#   `beta_s` is in seconds per byte. Adding up takes no time.
# - `fastest(n, n_bytes, alpha_s, beta_s)` returns the name of the one that takes least, for `n` from 2 on. The cases of
#   the check have no ties.
#
# The check compares with the clock of the simulated network, on which programs like yours send messages.
#
# <details><summary>Hint 1: a nudge</summary>
#
# All messages on an algorithm's longest chain have the same size. So its time is a number of rounds times the time of one
# message.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# You have counted the rounds already, and the figures above show them. Be careful with numbers of ranks that are not powers
# of two: in one algorithm they mean one more level, in another two more rounds. Rank 0 of the naive way has one port.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `up, down = math.ceil(math.log2(n)), math.floor(math.log2(n))`. The rounds are 2(n-1) for naive and ring, 2 up for the tree,
# and for the butterfly up where up equals down, else down + 2. The ring's messages have `n_bytes / n`, all others
# `n_bytes`. `min(names, key=...)` finds the fastest.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "14-cost-model", "locked": false, "schema_version": 3, "solution": true, "task": false}
def all_reduce_time(algorithm: str, n: int, n_bytes: int, alpha_s: float, beta_s: float) -> float:
    """Seconds of an all-reduce of n_bytes among n ranks; a message of k bytes takes alpha_s + k * beta_s."""
    ### BEGIN SOLUTION
    up, down = math.ceil(math.log2(n)), math.floor(math.log2(n))
    rounds = {
        "naive": 2 * (n - 1),
        "tree": 2 * up,
        "butterfly": up if up == down else down + 2,
        "ring": 2 * (n - 1),
    }
    message_bytes = n_bytes / n if algorithm == "ring" else n_bytes
    return rounds[algorithm] * (alpha_s + message_bytes * beta_s)
    ### END SOLUTION


def fastest(n: int, n_bytes: int, alpha_s: float, beta_s: float) -> str:
    """The algorithm that takes least: "naive", "tree", "butterfly" or "ring"."""
    ### BEGIN SOLUTION
    names = ("naive", "tree", "butterfly", "ring")
    return min(names, key=lambda name: all_reduce_time(name, n, n_bytes, alpha_s, beta_s))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "14-cost-model-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("14-cost-model", all_reduce_time, fastest)

# %% tags=["figure"]
labkit.figures.time_against_size(all_reduce_time, ways)

# %% [markdown]
# Lines are your formulas, dots are your programs on the simulated network. On the left only $\alpha$ counts. The lines are flat
# and in the order of the rounds: the ring is as slow as the naive way. On the right only bytes count, one message after the
# other: 14 $S$ through rank 0, 6 $S$ for the tree, 3 $S$ for the butterfly, 1.75 $S$ for the ring.

# %%
if written(all_reduce_time):
    sizes = [8 * 1000 * k for k in range(1, 10_000)]
    times = {
        way: [all_reduce_time(way, 8, s, 10e-6, 1 / 25e9) for s in sizes]
        for way in ("butterfly", "ring")
    }
    faster = [s for s, b, r in zip(sizes, times["butterfly"], times["ring"]) if r < b]
    guesses.settle("ring beats butterfly from", min(faster) / 1e6)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# The lines of butterfly and ring cross where $3\,(\alpha + S\beta) = 14\,\alpha + 1.75\,S\beta$, that is at
# $S = 8.8\,\alpha/\beta$: 2.2 MB.
#
# </details>

# %% tags=["figure"]
labkit.figures.cost_map(all_reduce_time)

# %% [markdown]
# Who wins where, with the same $\alpha$ and $\beta$? The paler the colour, the closer the second. Naive and tree are nowhere on
# the map. The tree sends as many bytes per round as the butterfly and never has fewer rounds. Its merit is that it loads most
# ranks little, and that long messages can be cut up and **pipelined** through it. Look at the teeth at 4, 8, 16 and 32 ranks:
# one rank more than a power of two costs the butterfly two rounds, and the ring is faster from a smaller size on.

# %% [markdown]
# **In practice** libraries choose by such a model. NCCL estimates a time from a latency and a bandwidth for each of its
# algorithms, rings and trees among them, and takes the fastest. MPI libraries switch at sizes that somebody has measured. You
# can measure $\alpha$ and $\beta$, too: gloo's all-reduce is a ring, so on 2 ranks a tiny tensor takes $2\alpha$, and a large
# one $2\alpha + S\beta$.


# %% tags=["varies"]
def gloo_times(comm: Comm) -> dict[int, float]:
    """Seconds of gloo's own all-reduce for a few sizes in bytes, the best of several."""
    import time

    import torch.distributed as dist

    best = {}
    for n_bytes in (8, 2**16, 2**20, 2**23):
        x, seconds = torch.ones(n_bytes // 4), []
        for _ in range(8):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(x)
            seconds.append(time.perf_counter() - start)
        best[n_bytes] = min(seconds)
    return best


times_s = run_ranks(gloo_times, 2, backend="gloo")[0]
smallest, largest = min(times_s), max(times_s)
alpha_s = times_s[smallest] / 2
beta_s = (times_s[largest] - 2 * alpha_s) / largest
print(f"this machine: alpha = {1e6 * alpha_s:.0f} µs, bandwidth {1e-9 / beta_s:.1f} GB/s")
for n_bytes, measured_s in times_s.items() if written(all_reduce_time, fastest) else ():
    model_s = all_reduce_time("ring", 2, n_bytes, alpha_s, beta_s)
    print(
        f"{n_bytes:>10,} bytes: measured {1e6 * measured_s:>8,.0f} µs, your formula {1e6 * model_s:>8,.0f} µs, "
        f"fastest on 8 ranks: {fastest(8, n_bytes, alpha_s, beta_s)}"
    )

# %% [markdown]
# The first and the last line agree because they were used to find the two numbers. The lines between them show how good the
# model is. A factor of two or three is common, and more on a busy machine: memory that fits into a cache is faster, and all
# ranks share the cores.

# %% [markdown]
# ## What you measured
#
# Your functions on two simulated machines: 8 ranks on one node, and 16 ranks on 4 nodes of 4, filled in order. Wires have
# 3 µs and 200 GB/s within a node. Between nodes they have 10 µs, and one port of 25 GB/s per node.


# %%
small = torch.ones(960)


def on_machine(way, n: int, n_bytes: float, ranks_per_node: int | None = None):
    """The traffic of an all-reduce of n_bytes: of a small tensor, over wires that are slower by as much."""
    scale = n_bytes / small.nbytes
    machine = Cluster(ranks_per_node, Wire(3e-6, 200e9 / scale), Wire(10e-6, 25e9 / scale))
    return measure_ranks(lambda comm: way(comm, small), n, cluster=machine)[1]


def rounds_of(way, n: int) -> float:
    """Seconds where every message takes one."""
    return measure_ranks(lambda comm: way(comm, small), n, cluster=UNIT)[1].seconds


print(f"{'8 ranks, one node':24}{'rounds':>8}{'busiest rank sends':>20}{'8 kB':>10}{'100 MB':>12}")
for name, way in ways.items():
    short, long = on_machine(way, 8, 8e3), on_machine(way, 8, 100e6)
    rounds = rounds_of(way, 8)
    sent = max(long.bytes_sent) / small.nbytes
    print(
        f"{name:24}{rounds:>8.0f}{sent:>18.2f} S{1e6 * short.seconds:>7.0f} µs{1e3 * long.seconds:>9.2f} ms"
    )

four_nodes = [list(range(first, first + 4)) for first in range(0, 16, 4)]
by_nodes = {}
if written(hierarchical_all_reduce):
    by_nodes["hierarchical"] = lambda comm, x: hierarchical_all_reduce(comm, x, four_nodes)
print(f"\n{'16 ranks, 4 nodes':24}{'rounds':>8}{'leaves a node':>20}{'8 kB':>10}{'100 MB':>12}")
for name, way in {**ways, **by_nodes}.items():
    short, long = on_machine(way, 16, 8e3, 4), on_machine(way, 16, 100e6, 4)
    rounds = rounds_of(way, 16)
    left = max(long.bytes_across) / small.nbytes
    print(
        f"{name:24}{rounds:>8.0f}{left:>18.2f} S{1e6 * short.seconds:>7.0f} µs{1e3 * long.seconds:>9.2f} ms"
    )

# %% [markdown]
# In the upper table no row has both the fewest rounds and the fewest bytes (unless you skipped both the tree and the
# butterfly).
#
# In the lower table the butterfly, which was the fastest for 8 kB a moment ago, sends eight tensors out of each node. In two of
# its four rounds all four ranks of a node have their partners elsewhere, and wait for one port. The tree is better here, because
# its first two levels stay within the nodes.
#
# Short messages of the hierarchical function wait for the port as well, four parts in each round. (This port sends the next
# message only when the one before has arrived. Real ports overlap the latencies and lose less.) Long messages cross with the
# fewest bytes. The ring comes close, because these nodes are filled in order.
#
# | what counts | take | because |
# |---|---|---|
# | a short message, equal wires | the butterfly | fewest rounds |
# | a short message, several ranks on each node | a tree | few messages through the nodes' ports |
# | a long message, equal wires | the ring | fewest bytes through the busiest port |
# | long messages, several ranks on each node | the hierarchical one | fewest bytes and rounds between nodes |
# | a message from one rank to all | a tree | log n rounds, and no rank needs a partner |
# | something to test the others against | the naive way | it is short and obviously right |
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("14", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "14",
    "all-reduce along a ring, 8 ranks, 100 MB",
    speed=lambda: " instead of ".join(
        f"{1e3 * on_machine(ways[name], 8, 100e6).seconds:.1f} ms" for name in ("ring", "naive")
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) There is a way with few rounds *and* few bytes. For $n$ a power of two, do the reduce-scatter by
# halving: exchange half of the tensor with the rank at distance $n/2$, then a quarter with the one at $n/4$, and so on;
# and the all-gather the same way back. Write down its time in $\alpha$, $\beta$, $n$ and $S$, and compare it with
# butterfly and ring for 64 ranks, 1 MB, 10 µs and 25 GB/s. Where in the cost map would it win, and what does the model
# leave out that makes libraries use rings on GPUs all the same?

# %% [markdown] nbgrader={"grade": true, "grade_id": "14-open-halving", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# log2(n) rounds each way, and S/2 + S/4 + ... = (n-1)/n S bytes each way: T = 2 log2(n) alpha + 2 (n-1)/n S beta. For 64
# ranks, alpha = 10 us, S beta = 40 us: 12 x 10 + 2 x 63/64 x 40 = 120 + 79 = 199 us. Butterfly: 6 x (10 + 40) = 300 us.
# Ring: 126 x 10 + 79 = 1339 us. It needs the bytes of the ring and twice the rounds of the butterfly, so for powers of two
# it beats the ring at every size, and the butterfly from about log2(n) alpha = (log2(n) - 2 (n-1)/n) S beta on (here
# 60 us = 4.03 S beta, S = 0.37 MB). In the map: all of the ring's region in the rows 4, 8, 16, 32.
#
# Left out: partners at distance n/2 are on other nodes, and all ranks of a node exchange with theirs at the same time
# through the node's few ports, while a ring crosses each border once; switches and torus links that are shared; numbers of
# ranks that are no power of two; that a ring's messages can be streamed and several rings use several links at once.
#
# Marks: 1/2 for the formula. 1/2 for the three times (two of them right: 1/4). 1/2 for "like the ring in bytes, so it wins
# where the ring did for powers of two, and only the shortest messages stay with the butterfly". 1/2 for shared ports, or
# another thing that the model leaves out, with a reason.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) You train a model of 7 billion parameters with bfloat16 gradients (14 GB) on 8 nodes of 8 GPUs.
# Within a node a GPU moves 200 GB/s. A node has one network port of 25 GB/s. The backward pass takes 1.5 s. Estimate
# the all-reduce of a step in seconds for a flat ring with the ranks dealt round-robin, for a flat ring with the nodes
# filled in order, and for the hierarchical one. Which of them can be hidden behind the backward pass? What changes with
# one network port for each GPU? And how many seconds would it take with a single parameter server, a host with one such
# port, to which every GPU sends its gradients and from which it fetches the new weights?

# %% [markdown] nbgrader={"grade": true, "grade_id": "14-open-64-gpus", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Rounds do not matter: 126 rounds of 10 us are 1.3 ms. Bytes do. Flat ring, round-robin: all 8 ranks of a node send across,
# 8 x 2 x 63/64 x 14 GB = 220 GB through one port, 8.8 s. Flat ring, filled: 2 x 63/64 x 14 GB / 25 GB/s = 1.10 s.
# Hierarchical: 2 x 7/8 x 14 / 25 = 0.98 s between the nodes and 2 x 7/8 x 14 / 200 = 0.12 s within them, 1.10 s one after
# the other and less if they overlap. The last two fit behind 1.5 s of backward pass if they start early (buckets, lab 15);
# round-robin does not. So at these rates the hierarchy gains nothing over a well-dealt ring with one port: its gain is that
# it does not depend on the deal, that it has fewer rounds, and that with a port for each GPU step 2 goes through eight at
# once: 0.98 / 8 = 0.12 s, 0.25 s in all. (The flat ring dealt round-robin then takes 1.10 s and can be hidden. Filled in
# order it still crosses through one port of a node; eight rings, each through another port, get to 0.14 s.)
# Parameter server: 64 x 14 GB = 896 GB in and as many out through one port, 36 s each way. It grows with the workers, where
# an all-reduce does not. Adding up within the nodes first makes it 8 x 14 / 25 = 4.5 s each way; dealing the parameters to
# as many servers as there are nodes makes it as good as an all-reduce.
#
# Marks: 1 for the three times within 20 % (1/2 for two). 1/2 for what can be hidden. 1/2 for the port for each GPU with a
# time. 1 for the server: 1/2 for 36 s (or 72 s), 1/2 for "it grows with the number of workers, the all-reduce does not".
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Rajeev Thakur, Rolf Rabenseifner and William Gropp, *Optimization of Collective Communication Operations in MPICH*
#   (International Journal of High Performance Computing Applications 19, 2005). The algorithms of this lab, those of
#   question A, and which one MPI takes when.
# - Pitch Patarasuk and Xin Yuan, *Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations* (Journal of
#   Parallel and Distributed Computing 69, 2009). Why nothing sends less than the ring, and rings on trees of switches.
# - NVIDIA, *NCCL documentation*: the collectives, and `NCCL_ALGO` and `NCCL_DEBUG=INFO`, which say what it chose.
# - PyTorch, *Distributed communication package* and *Getting started with DeviceMesh*.
#
# **Sources.** The texts above. The two-number model: Roger Hockney, *The communication challenge for MPP* (Parallel
# Computing 20, 1994). Halving and doubling: Rolf Rabenseifner, *Optimization of Collective Reduction Operations* (ICCS
# 2004). Trees that use both directions of every link: Peter Sanders, Jochen Speck and Jesper Larsson Träff, *Two-tree
# algorithms for full bandwidth broadcast, reduction and scan* (Parallel Computing 35, 2009). Rings in deep learning:
# Alexander Sergeev and Mike Del Balso, *Horovod: fast and easy distributed deep learning in TensorFlow* (2018). All-reduce
# over nodes: Minsik Cho and others, *BlueConnect: Decomposing All-Reduce for Deep Learning on Heterogeneous Network
# Hierarchy* (MLSys 2019). Parameter servers: Mu Li and others, *Scaling Distributed Machine Learning with the Parameter
# Server* (OSDI 2014).
