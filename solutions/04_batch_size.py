# %% [markdown]
# # Lab 04: Batch size and gradient accumulation
#
# One text of 256 tokens and seven of 16 do not fit into memory together. So you take them one at a time, divide each
# loss by 8, call `backward` eight times and then step: eight small batches as good as one large batch, as every
# tutorial says. **A cell below compares that gradient with the right one. They point in different directions.** Nothing
# crashes and the loss goes down, and for years a widely used library trained like that. What is wrong with the recipe?
#
# At the end you can accumulate gradients that equal those of the large batch on one GPU or several, find the largest
# micro-batch that a card holds, say how large a batch keeps a GPU busy, and measure at which batch size more samples
# stop teaching the model anything new.
#
# [[time]]
#
# You should have done lab 01: it explains model states, activations and the roofline. Several GPUs appear here only as
# a function that adds up over them; lab 14 shows what is behind it.

# %% nbgrader={"grade": false, "grade_id": "04-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, has_gpu, limit_memory, progress
from labkit.material import lab04
from labkit.units import in_bytes

guesses = Predictions("04")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# ## A mean of means is not the mean
#
# The loss of a language model is a mean over **tokens**: add up the losses of all tokens in the batch and divide by
# their number. With **gradient accumulation** you cut the batch into **micro-batches**, which go through the model one
# after the other. `backward` adds to `.grad`, so after the last one `.grad` holds a sum over all of them, and
# the optimizer takes one step. One such step is a **window** of micro-batches.
#
# A loss function returns the mean of *its* micro-batch. Divided by the number of micro-batches, that becomes a mean of
# means, in which every micro-batch counts the same, however many tokens it has. The upper strip shows how much each
# token then counts, the lower one how much it should. Each row is a text, each box 8 tokens.

# %% tags=["figure"]
labkit.figures.token_weights([256, *[16] * 7])

# %% [markdown]
# **Predict:** a GPT of 2 layers computes both gradients for these eight texts. What is the cosine of the angle between
# them, where 1 means the same direction? (In the next cell, as in all cells of this kind, replace `None` with your
# answer and run the cell. A choice from `among` is written exactly as it stands there, in quotes.)

# %% nbgrader={"grade": false, "grade_id": "04-predict-cosine", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("cosine of the gradients", None, among=("0.99", "0.9", "0.55", "0.1"))

# %%
texts = lab04.random_texts([256, *[16] * 7])
gpt = lab04.small_gpt()
n_labels = sum(text.numel() - 1 for text in texts)  # the first token of a text is not a label
of_means = lab04.gradient_of(gpt, texts, lambda n: 8 * n)
of_tokens = lab04.gradient_of(gpt, texts, lambda n: n_labels)

cosine = float(F.cosine_similarity(of_means, of_tokens, dim=0))
print(f"weight of a token in a short text / in the long one: {255 / 15:.0f}")
print(
    f"cosine of the two gradients: {cosine:.2f}; lengths {of_means.norm() / of_tokens.norm():.2f} : 1"
)
choices = ("0.99", "0.9", "0.55", "0.1")
guesses.settle(
    "cosine of the gradients", min(choices, key=lambda choice: abs(float(choice) - cosine))
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About 0.56, an angle of 56 degrees. The seven short texts have 29 % of the labels and carry 88 % of the
# weight.
#
# </details>
#
# Texts of equal length hide the mistake, and so does every test that uses them. Here are two loops as many slides show
# them, and each has mistakes of its own. Read them before you run them. You will fix both in the exercise.


# %%
def first_loop(model, optimizer, loader, n_accumulate):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        if (i + 1) % n_accumulate == 0:
            optimizer.step()
            model.zero_grad()


def second_loop(model, optimizer, loader, n_accumulate):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / n_accumulate
        loss.backward()
        if (i + 1) % n_accumulate == 0 or i + 1 == len(loader):
            model.zero_grad()
            optimizer.step()


# %% [markdown]
# **Predict:** both train for five epochs on the same ten micro-batches, with `n_accumulate = 4`. What does the loss do
# with the second loop?

# %% nbgrader={"grade": false, "grade_id": "04-predict-second-loop", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("loss of the second loop", None, among=("falls", "stays the same", "rises"))

# %%
print(f"{'':14}{'loss before':>12}{'after':>8}{'gradient left in .grad':>24}")
for name, loop in {"first loop": first_loop, "second loop": second_loop}.items():
    model, optimizer, loader = lab04.toy_training()
    before = lab04.token_loss(model, loader)
    for _ in range(5):
        loop(model, optimizer, loader, 4)
    after = lab04.token_loss(model, loader)
    left = math.sqrt(
        sum(float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None)
    )
    print(f"{name:14}{before:>12.3f}{after:>8.3f}{left:>24.2f}")
guesses.settle(
    "loss of the second loop",
    "stays the same" if after == before else "falls" if after < before else "rises",
)

# %% [markdown]
# <details><summary>What is wrong with each?</summary>
#
# The second loop clears the gradients just before the step, so the optimizer finds none and the weights never move.
#
# The first one never divides by `n_accumulate`, so its gradient is about four times too large. Its loss falls anyway,
# because that is like a learning rate four times as large. And ten is not a multiple of four: the gradients of the last
# two micro-batches get no step and stay in `.grad`, where they are added to the first window of the next epoch.
#
# Both loops also weight every micro-batch alike, however many tokens it has.
#
# </details>
#
# On **several GPUs**, each GPU has a process with its own copy of the model and its own texts. Such a process is called a
# **rank**. A step uses the micro-batches of all ranks: 4 micro-batches of 8 texts are 32 texts on one rank, but 128 on
# four. So you divide by the number of tokens on all ranks, too.

# %% [markdown]
# [[exercise 04-accumulate]]
#
# Write `train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks)`, which trains for one epoch and
# returns nothing. The check calls it twice in a row, on every rank.
#
# - `loader` yields micro-batches `(x, y)`, token numbers of shape (texts, length). `len(loader)` is the number of
#   micro-batches, the same on all ranks. `model(x)` returns logits of shape (texts, length, vocabulary), and `y` already
#   holds the next token for each position. Padding has the label -100 and does not count. A micro-batch may be all
#   padding, but every window has at least one token that counts on some rank.
# - `n_accumulate` micro-batches make a window, and each window ends with one `optimizer.step()`. The last window of an
#   epoch may be shorter and gets its step too.
# - The gradient of a step is that of the **mean loss over all tokens of the window on all ranks**. Its norm is then
#   limited to `max_norm` (`nn.utils.clip_grad_norm_` does this).
# - `sum_over_ranks(value)` returns the sum over all ranks of a number or a tensor, and leaves its argument as it is.
#   All ranks have to call it equally often. On one rank it returns the value itself.
# - Only one micro-batch's activations may be in memory at a time.
#
# <details><summary>Hint 1: a nudge</summary>
#
# You know how many tokens a window has only after its last micro-batch, on all ranks. Either collect the window's
# micro-batches first, since token numbers are small, or divide at the end.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# With `reduction="sum"`, the loss of a micro-batch is a sum over its tokens, and sums can be added. Divide each by the
# tokens of the window on all ranks, or divide the sum of the gradients once. After the last micro-batch every `.grad`
# goes through `sum_over_ranks`; then clip, step, clear.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Append each `(x, y)` to a list. When the list has `n_accumulate` entries, or after the loop has ended, if it is not
# empty: `n = sum_over_ranks(sum(int((y != -100).sum()) for _, y in window))`; for each entry `(F.cross_entropy(...,
# reduction="sum") / n).backward()`; for each parameter `p.grad = sum_over_ranks(p.grad)`; `clip_grad_norm_`, `step`,
# `zero_grad`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "04-accumulate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader,
    n_accumulate: int,
    max_norm: float,
    sum_over_ranks: Callable,
) -> None:
    """One epoch; a step for each window of n_accumulate micro-batches, by the mean loss of its tokens on all ranks."""

    ### BEGIN SOLUTION
    def step(window: list[tuple[Tensor, Tensor]]) -> None:
        n_tokens = sum_over_ranks(sum(int((y != -100).sum()) for _, y in window))
        for x, y in window:
            losses = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum")
            (losses / n_tokens).backward()
        for parameter in model.parameters():
            parameter.grad = sum_over_ranks(parameter.grad)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()

    window = []
    for micro_batch in loader:
        window.append(micro_batch)
        if len(window) == n_accumulate:
            step(window)
            window = []
    if window:
        step(window)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-accumulate-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("04-accumulate", train_epoch)

# %% [markdown]
# First your loop on the ten micro-batches of the two loops above, for five epochs as well and without clipping:

# %%
model, optimizer, loader = lab04.toy_training()
before = lab04.token_loss(model, loader)
for _ in range(5):
    train_epoch(model, optimizer, loader, 4, math.inf, lambda value: value)
left = sum(float(p.grad.norm()) for p in model.parameters() if p.grad is not None)
print(
    f"yours: loss {before:.3f} before, {lab04.token_loss(model, loader):.3f} after; {left:.2f} left in .grad"
)

# %% [markdown]
# The first loop's gradients are about four times as large as yours, so its loss fell further at the same learning rate.
# But yours point in the right direction, and no micro-batch is left without a step.
#
# The figure shows memory while your function trains on one window of eight micro-batches, with eight texts in each. The
# other curve is a loop that adds up the eight losses first and then calls `backward` once. It computes the same gradient
# and needs more than three times the memory.

# %% tags=["figure"]
labkit.figures.accumulation_memory(train_epoch)

# %% [markdown]
# Look at the teeth: each micro-batch's activations grow in its forward pass and are gone after its backward pass. In
# the other loop they pile up, because a graph keeps them until its `backward`. The same happens with `total += loss` in
# an evaluation loop, which has no `backward`: write `loss.item()`, or evaluate under `torch.no_grad()`.
#
# **What accumulation cannot reproduce.** The gradient equals that of the large batch only if the loss of a sample
# depends neither on the other samples in its micro-batch nor on random numbers. Batch normalization uses the mean and
# variance of the *micro-batch*, and dropout draws different masks:

# %%
torch.manual_seed(0)
x, target = torch.randn(32, 16), torch.randn(32, 16)
for name, middle in {
    "layer norm": nn.LayerNorm(16),
    "batch norm": nn.BatchNorm1d(16),
    "dropout": nn.Dropout(0.1),
}.items():
    model, gradients = nn.Sequential(nn.Linear(16, 16), middle, nn.Linear(16, 16)), []
    for n_micro in (1, 8):
        model.zero_grad()
        for part, goal in zip(x.chunk(n_micro), target.chunk(n_micro)):
            (F.mse_loss(model(part), goal) / n_micro).backward()
        gradients.append(model[0].weight.grad.clone())
    error = (gradients[1] - gradients[0]).norm() / gradients[0].norm()
    print(f"{name:11} 8 micro-batches against one batch: the gradient differs by {error:.2%}")

# %% [markdown]
# **In practice** this is `gradient_accumulation_steps=4` of `TrainingArguments`. The `Trainer` of `transformers` made a
# mean of means until October 2024. Today it counts the tokens of the window first and hands the number to the model as
# `num_items_in_batch`. With `average_tokens_across_devices=True`, the default in version 5, it sums that number over the
# ranks. PyTorch's `DistributedDataParallel` (DDP) averages the gradients over the ranks in every `backward`. That is
# needed only after a window's last micro-batch, and `no_sync` leaves out the others (lab 15).

# %% [markdown]
# ## Find the largest micro-batch by trying
#
# Which micro-batch fits? Lab 01 computes it, but leaves out gaps between tensors that are too small to use, the libraries'
# own buffers, and any layer that you do not know. These decide whether the last few texts fit. So training frameworks
# also try sizes: they start somewhere, catch the out-of-memory error and go on with a smaller size.
# `labkit.limit_memory` limits the memory of a block of code on this machine and raises the same
# `torch.OutOfMemoryError` that CUDA raises:

# %%
try:
    with limit_memory(10_000):
        torch.ones(1000) + torch.ones(1000) * 2
except torch.OutOfMemoryError as error:
    print(error)

# %% [markdown]
# A trial must need as much memory as the training it stands for. Four things fill a GPU's memory during training, but
# not all at the same time:
#
# | | from | until |
# |---|---|---|
# | weights | the beginning | the end |
# | activations | the forward pass of a micro-batch | its backward pass |
# | gradients | the first backward pass of a window | `zero_grad` |
# | AdamW's two moments | the first `optimizer.step()` | the end |
#
# **Predict:** every micro-batch has the same size, and every window has two. In which micro-batch does memory reach its
# highest peak for the first time?

# %% nbgrader={"grade": false, "grade_id": "04-predict-peak", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take(
    "first highest peak",
    None,
    among=(
        "step 1, micro-batch 1",
        "step 1, micro-batch 2",
        "step 2, micro-batch 1",
        "step 2, micro-batch 2",
    ),
)

# %% [markdown]
# [[exercise 04-find-batch]]
#
# Write `find_batch(build, make_batch, loss_of, lengths, global_batch)`. It runs under a memory limit that it does not
# know and returns two whole numbers, `(micro_batch, n_accumulate)`:
#
# - `micro_batch` is the largest number of texts, at most `global_batch`, with which training never runs out of memory:
#   not in a later step, not in the second micro-batch of a window, and not if all of its texts are as long as the longest
#   one. Return `(0, 0)` if not even one text fits.
# - `n_accumulate` is the number of micro-batches that hold the `global_batch` texts. The last one may be smaller.
#
# `build()` returns a new `(model, optimizer)`, `make_batch(n_texts, length)` a batch, and `loss_of(model, batch)` its
# loss. `lengths` are the lengths of all texts. Try at most $2 \lceil \log_2 \text{global batch} \rceil + 3$ sizes; a
# smaller last micro-batch does not count as one.
#
# <details><summary>Hint 1: a nudge</summary>
#
# First write `fits(n)`: True or False, and nothing of the trial alive when it returns. Then it is a search for the
# place where True becomes False.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A trial takes two steps of two micro-batches each, of texts of `max(lengths)` tokens: only then are weights, gradients,
# moments and activations alive together. While you are inside `except`, the error holds the frames of the failed trial
# and all their tensors, so return from `fits` before you try again.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `try:` build, two loops, `loss_of(model, make_batch(n, max(lengths))).backward()`, `step`, `zero_grad`; `except
# torch.OutOfMemoryError: return False`; then `return True`. Start with `good, bad = 0, global_batch + 1`; while they
# are further apart than 1, try the middle and move one of them there.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "04-find-batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def find_batch(
    build: Callable,
    make_batch: Callable,
    loss_of: Callable,
    lengths: Sequence[int],
    global_batch: int,
) -> tuple[int, int]:
    """(the largest micro-batch that fits, how many of them make the global batch); (0, 0) if none fits."""

    ### BEGIN SOLUTION
    def fits(n: int) -> bool:
        try:
            model, optimizer = build()
            for _ in range(2):
                for _ in range(2):
                    loss_of(model, make_batch(n, max(lengths))).backward()
                optimizer.step()
                optimizer.zero_grad()
        except torch.OutOfMemoryError:
            return False
        return True

    good, bad = 0, global_batch + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good, math.ceil(global_batch / good) if good else 0
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-find-batch-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("04-find-batch", find_batch)

# %% [markdown]
# Your function searches under a limit of 2.52 MB. These are the peaks of each micro-batch in two steps of training with
# the size that it finds:

# %%
case = lab04.Capped(2_520_000)
with limit_memory(case.cap_bytes):
    micro_batch, n_accumulate = find_batch(*lab04.for_search(case), [5, 12, 3], case.global_batch)
peaks = lab04.peaks_of(case, micro_batch)
print(f"{micro_batch} texts, {n_accumulate} micro-batches for {case.global_batch} texts")
for moment, n_bytes in peaks.items():
    print(f"{moment:22}{in_bytes(n_bytes):>12}")
guesses.settle("first highest peak", max(peaks, key=peaks.get))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# In the second micro-batch of step 2: only there are weights, moments, the gradients of an earlier micro-batch and
# activations all alive. Every later window repeats it. A trial of one forward and backward pass sees the lowest of
# these four peaks.
#
# </details>
#
# Now the texts are longer and the limit is higher. The cell first computes what lab 01's `largest_batch` does: it divides
# the memory that weights and moments leave free by what one text takes. Your search finds one text less.

# %%
roomy = lab04.Capped(12_800_000, longest=48)
needs = lab04.needs_of(roomy)
free = roomy.cap_bytes - needs["weights"] - needs["optimizer"]
predicted = free // (needs["activations_per_sequence"] + needs["loss_per_sequence"])
with limit_memory(roomy.cap_bytes):
    found, _ = find_batch(*lab04.for_search(roomy), [9, 48, 20], roomy.global_batch)
print(f"lab 01's sum: {predicted} texts, your search: {found}")

# %% tags=["figure"]
labkit.figures.predicted_and_found(roomy, predicted, found)

# %% [markdown]
# <details><summary>Where does the difference come from?</summary>
#
# Both lines rise by the same bytes per text; the distance between them is the gradients, 4 bytes for each weight.
# Lab 01 counted a step of one micro-batch, where the gradients fill the room that the activations leave. With
# accumulation, the gradients of the first micro-batch stay while the second goes forward, so they need room of their own.
#
# </details>
#
# **In practice** `auto_find_batch_size=True` of `TrainingArguments` tries sizes too, with `find_executable_batch_size` of
# `accelerate`. After each out-of-memory error it goes down to nine tenths of the size (older versions to a half) and
# never up again. It leaves `gradient_accumulation_steps` as it is, so your global batch shrinks unless you raise that
# number yourself. On a real GPU, gaps between tensors make the last few percent unsafe, so leave some room. With the sum
# above as a first guess, a search needs two or three trials.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## How large a batch keeps the GPU busy?
#
# A linear layer with $n$ inputs and $n$ outputs multiplies $b$ rows, one for each token, by $n^2$ weights. With $s$
# bytes for a number, the product
#
# - takes $2bn^2$ FLOPs, and
# - moves $s\,(n^2 + 2bn)$ bytes: it reads the weights and $b$ rows, and writes $b$ rows.
#
# With few rows, reading the weights takes longer than the arithmetic, and a second row costs nothing. A GPU has its
# own **threshold**, peak FLOP/s divided by bytes/s, 153 FLOP per byte for an A100 in float16. Above it a product is
# limited by arithmetic (*compute-bound*), below it by memory.
#
# **Predict:** at $n = 4096$ the product is compute-bound on an A100 from 165 rows on, in float16 ($s = 2$). From how
# many rows at $n = 512$?

# %% nbgrader={"grade": false, "grade_id": "04-predict-rows", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("rows at n = 512", None)

# %% [markdown]
# A **training step** has three such products for each layer and micro-batch: forward, the gradient of the input, and
# the gradient of the weights. Each takes $2bn^2$ FLOPs and moves as many bytes as the first, since it reads two of
# the three arrays and writes the third. Arithmetic and memory traffic of a product overlap, so the slower one sets its
# time. The optimizer runs once a step, when all gradients are there, so its time is added to theirs. It is limited by
# memory: AdamW in float32 reads weight, gradient and two moments and writes three of them, 28 bytes for each weight.
#
# [[exercise 04-throughput]]
#
# Write two functions. All rates are in FLOP/s and bytes/s.
#
# - `compute_bound_rows(n, peak_flops, bandwidth, itemsize)` returns the number of rows $b$ from which the **forward**
#   product is compute-bound, as a float (do not round), or `math.inf` where no number of rows is enough. `itemsize`
#   is $s$.
# - `tokens_per_second(n_texts, length, n, n_accumulate, peak_flops, bandwidth, itemsize, optimizer_bytes)` returns the
#   tokens per second of a training step of one layer: `n_accumulate` micro-batches of `n_texts` texts with `length`
#   tokens each, then the optimizer, which moves `optimizer_bytes` for each weight.
#
# <details><summary>Hint 1: a nudge</summary>
#
# At the threshold, FLOPs divided by the peak rate and bytes divided by the bandwidth are equal.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Set the two times equal and solve for $b$. If the denominator is not positive, no $b$ is enough: the rows themselves are
# too much traffic.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With $\theta = s/2$ times the threshold, the times are equal at $b = \theta n / (n - 2\theta)$, if $n$ is greater than
# $2\theta$. For the step, `b = n_texts * length`. A product takes `max(2 * b * n**2 / peak_flops, itemsize * (n**2 +
# 2 * b * n) / bandwidth)` seconds, and a step `3 * n_accumulate` of them and `optimizer_bytes * n**2 / bandwidth`. Its
# tokens are `n_accumulate * b`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "04-throughput", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compute_bound_rows(n: int, peak_flops: float, bandwidth: float, itemsize: int) -> float:
    """Rows from which a product with n x n weights is limited by arithmetic; math.inf if it never is."""
    ### BEGIN SOLUTION
    theta = itemsize / 2 * peak_flops / bandwidth
    return theta * n / (n - 2 * theta) if n > 2 * theta else math.inf
    ### END SOLUTION


def tokens_per_second(
    n_texts: int,
    length: int,
    n: int,
    n_accumulate: int,
    peak_flops: float,
    bandwidth: float,
    itemsize: int,
    optimizer_bytes: float,
) -> float:
    """Tokens per second of a training step of a layer with n x n weights."""
    ### BEGIN SOLUTION
    b = n_texts * length
    n_bytes = itemsize * (n * n + 2 * b * n)
    product = max(2 * b * n * n / peak_flops, n_bytes / bandwidth)
    seconds = 3 * n_accumulate * product + optimizer_bytes * n * n / bandwidth
    return n_accumulate * b / seconds
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-throughput-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("04-throughput", compute_bound_rows, tokens_per_second)

# %%
A100, V100 = (312e12, 2039e9), (125e12, 900e9)
print(
    f"{'rows from which it is compute-bound':36}"
    + "".join(f"n = {n:<6}" for n in (256, 512, 1024, 4096))
)
for name, gpu in {"A100": A100, "V100": V100}.items():
    rows = [float(compute_bound_rows(n, *gpu, 2)) for n in (256, 512, 1024, 4096)]
    shown = "".join(f"{'never' if b == math.inf else f'{b:.0f}':10}" for b in rows)
    print(f"{name + ', float16':36}{shown}")
guesses.settle("rows at n = 512", float(compute_bound_rows(512, *A100, 2)))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 380 rows. A row takes $2n^2$ FLOPs and moves $2sn$ bytes, which is $n/s$ FLOPs per byte: the narrower the layer, the
# less arithmetic comes with each row. At $n = 256$ that is 128, below the threshold of 153, so even infinitely many rows
# are not enough on an A100.
#
# A common rule of thumb says 128 rows for a V100. Its threshold is 139 FLOPs per byte, which is the number of rows if
# you count the bytes of the weights alone. With those of the rows it is 149 at $n = 4096$.
#
# </details>
#
# **In practice** the rows are `per_device_train_batch_size=8` of `TrainingArguments`, multiplied by the length of your
# texts. With `include_num_input_tokens_seen="non_padding"`, the `Trainer` logs the tokens per second that it reaches.
# Double the batch while that number grows, and accumulate only to make up the rest of the global batch.

# %% [markdown]
# ## Extra credit: tiles, waves and multiples
#
# The roofline knows bytes and FLOPs, but a GPU computes a product in **tiles**. Each streaming multiprocessor (SM)
# computes one tile of the output at a time, and as many tiles as there are SMs make a **wave**. A tile that is only
# partly needed takes as long as a full one, and so does a wave with a single tile. Lab 10 shows why; here you count.
#
# A second rule is about **multiples**: tensor cores load rows in pieces of 16 bytes, and an A100 is fastest with pieces
# of 128 bytes. So a width should be a multiple of 8 numbers in float16, better of 64. In TF32 it should be a multiple
# of 4, better of 32, and in int8 of 16, better of 128. GPT-2's vocabulary of 50257 tokens is therefore often padded to
# 50304, with 47 tokens that never occur.
#
# [[exercise 04-alignment]]
#
# Write two functions.
#
# - `tiles_and_waves(rows, cols, tile_rows, tile_cols, n_sms)` returns three numbers for an output of `rows` × `cols`:
#   how many tiles it takes, how many waves, and the efficiency. That is the number of outputs divided by how many
#   outputs the waves have room for, with `n_sms` full tiles in each wave.
# - `padded(n, itemsize, multiple_bytes)` returns the smallest whole number that is at least `n` and takes a multiple of
#   `multiple_bytes`, at `itemsize` bytes for each number. `multiple_bytes` is itself a multiple of `itemsize`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Everything here rounds up.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Tiles lie in a grid: round up along the rows, round up along the columns, and multiply. For `padded`,
# `multiple_bytes // itemsize` numbers make one multiple.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `n_tiles = math.ceil(rows / tile_rows) * math.ceil(cols / tile_cols)`, `n_waves = math.ceil(n_tiles / n_sms)`, and the
# efficiency is `rows * cols` divided by `n_waves * n_sms * tile_rows * tile_cols`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "04-alignment", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiles_and_waves(
    rows: int, cols: int, tile_rows: int, tile_cols: int, n_sms: int
) -> tuple[int, int, float]:
    """(tiles, waves, efficiency) of an output of rows x cols."""
    ### BEGIN SOLUTION
    n_tiles = math.ceil(rows / tile_rows) * math.ceil(cols / tile_cols)
    n_waves = math.ceil(n_tiles / n_sms)
    return n_tiles, n_waves, rows * cols / (n_waves * n_sms * tile_rows * tile_cols)
    ### END SOLUTION


def padded(n: int, itemsize: int, multiple_bytes: int) -> int:
    """The smallest number from n on whose bytes are a multiple of multiple_bytes."""
    ### BEGIN SOLUTION
    multiple = multiple_bytes // itemsize
    return math.ceil(n / multiple) * multiple
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-alignment-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("04-alignment", tiles_and_waves, padded)

# %%
for cols, tile in ((1536, (256, 128)), (1537, (256, 128)), (1537, (128, 256))):
    n_tiles, n_waves, efficiency = tiles_and_waves(2304, cols, *tile, 108)
    print(
        f"2304 x {cols} in tiles of {tile[0]} x {tile[1]}: tiles {n_tiles}, waves {n_waves}, efficiency {efficiency:.0%}"
    )
for vocabulary in (50257, int(padded(50257, 2, 128))):
    n_tiles, n_waves, efficiency = tiles_and_waves(4096, vocabulary, 256, 128, 108)
    print(f"4096 x {vocabulary}: tiles {n_tiles}, waves {n_waves}, efficiency {efficiency:.1%}")

# %% tags=["figure"]
labkit.figures.wave_staircase(tiles_and_waves)

# %% [markdown]
# On an A100, one column more than 1536 doubles the waves and halves the rate; an H100 has its steps elsewhere. The
# orientation of the tile counts too: the last column takes 9 more tiles of 256 × 128 (117 in all), but 18 more of
# 128 × 256 (126). The padded vocabulary takes as many tiles and waves as before, so all that it gains is alignment. A
# library can mend a bad last wave with **split-K**: several SMs share one tile, each sums a part of its products, and
# the parts are added.
#
# A checklist for a linear layer: inputs, outputs, vocabulary and rows are multiples of 8 numbers in float16 (better of
# 64), there are enough rows to be compute-bound, and enough tiles for many waves. For a convolution, the same holds for
# its input and output channels; three colour channels are best padded to 4 or 8.
#
# **In practice** `TrainingArguments` pads nothing. For the vocabulary, call
# `model.resize_token_embeddings(len(tokenizer), pad_to_multiple_of=64)`; for the texts,
# `DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)`.

# %% [markdown]
# ## Extra credit: channels last
#
# A batch of images has the shape (images, channels, height, width). In the ordinary layout, the pixels of a channel lie
# side by side in memory. In **channels-last**, the channels of a pixel do: the shape stays the same, only the strides
# change. A convolution multiplies the channels of each pixel by its weights. Tensor cores load them fastest where they
# lie side by side, so on a GPU convolutions in float16 are faster in channels-last. Attention and layer norms want this
# layout too: for them, the channels of a pixel are a token. The gain is lost if an operation in between copies to the
# other layout, and PyTorch does not tell you.
#
# This block converts back and forth. The cell counts its copies.


# %%
def copying_block(block, x):
    n, channels, height, width = x.shape
    h = F.relu(block.conv1(x)).contiguous()
    gate = torch.sigmoid(block.gate(h.view(n, channels, -1).mean(2)))
    h = h * gate.view(n, channels, 1, 1)
    pixels = block.norm(h.view(n, channels, -1).transpose(1, 2).contiguous())
    h = pixels.transpose(1, 2).reshape(n, channels, height, width).contiguous()
    y = (block.conv2(h) + x).contiguous()
    return y, y.view(n, channels, -1).transpose(1, 2)


print(lab04.copies_of(copying_block, lambda block: block))

# %% [markdown]
# [[exercise 04-memory-format]]
#
# Write two functions.
#
# - `prepare(block)` is called once and returns the block with the weights of its convolutions in channels-last.
# - `run_block(block, x)` computes the same `(y, tokens)` as the block above, and the same gradients, without any copy.
#   `x` is in channels-last, and `y` must be too. `tokens`, of shape (images, height · width, channels), must share the
#   memory of `y`.
#
# The check counts `clone`, `copy_` and `contiguous` in the forward pass. (PyTorch's own backward pass makes a copy
# that you cannot avoid.) With one channel or one pixel, both layouts are the same.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Most of these operations work in both layouts and keep the one they get. What makes them copy are the `view`s, which
# ask for `contiguous` first.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `mean((2, 3))` needs no view. A layer norm over the channels wants them last: `permute` them there and back, which
# copies nothing.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `block.to(memory_format=torch.channels_last)`; `gate[:, :, None, None]`; `block.norm(h.permute(0, 2, 3,
# 1)).permute(0, 3, 1, 2)`; `y.flatten(2).transpose(1, 2)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "04-memory-format", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prepare(block: nn.Module) -> nn.Module:
    """The block with its convolutions' weights in channels-last."""
    ### BEGIN SOLUTION
    return block.to(memory_format=torch.channels_last)
    ### END SOLUTION


def run_block(block: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """(y, tokens) of images x in channels-last, without a copy."""
    ### BEGIN SOLUTION
    h = F.relu(block.conv1(x))
    gate = torch.sigmoid(block.gate(h.mean((2, 3))))
    h = h * gate[:, :, None, None]
    h = block.norm(h.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    y = block.conv2(h) + x
    return y, y.flatten(2).transpose(1, 2)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-memory-format-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("04-memory-format", prepare, run_block)

# %%
print(lab04.copies_of(run_block, prepare))
if has_gpu():
    blocks = {"with copies": (lambda block: block, copying_block), "yours": (prepare, run_block)}
    print(lab04.gpu_times(blocks))

# %% [markdown]
# **In practice** convert the model and every batch: `model.to(memory_format=torch.channels_last)`. Two switches belong to
# convolutions on a GPU as well. `torch.backends.cudnn.benchmark = True` tries several algorithms for each new shape
# and keeps the fastest, which pays if shapes repeat. `torch.backends.cudnn.deterministic = True` allows only those that
# give the same bits every time, which may be slower. On a machine with a GPU, the cell above times all of this.

# %% [markdown]
# ## At which batch size do more samples stop teaching anything new?
#
# The gradient of one sample is the **true gradient** $G$, the mean over all data, plus noise. A batch of $B$ samples
# divides the noise's variance by $B$. So a small batch mostly measures noise, and doubling it makes each step much
# better; in a large batch the noise is gone, and doubling it only doubles the work. Two numbers say where one regime
# ends and the other begins: the **signal** $|G|^2$, and the **noise** $\operatorname{tr} \Sigma$, the sum of the
# variances of all elements of one sample's gradient. Their ratio
#
# $$B_{\text{crit}} = \operatorname{tr} \Sigma \,/\, |G|^2$$
#
# is the **gradient noise scale**, an estimate of the **critical batch size**. A run with batches of $B$ reaches a target
# after $S$ steps and $E = BS$ samples, and $(S / S_{\min} - 1)(E / E_{\min} - 1) = 1$. Here $S_{\min}$ is the number of
# steps with huge batches, and $E_{\min}$ the number of samples with tiny ones. At the critical batch, you need twice the
# fewest steps and twice the fewest samples.
#
# Accumulation lets you measure it for free. The gradient of a micro-batch of $b$ samples and that of the window of $kb$
# samples are gradients at two batch sizes, and for both
#
# $$\mathbb{E}\,|g_B|^2 = |G|^2 + \operatorname{tr} \Sigma \,/\, B$$
#
# The figure draws both terms for a gradient with $|G| = 0.5$ and $\operatorname{tr} \Sigma = 40$.

# %% tags=["figure"]
labkit.figures.gradient_noise(0.5, 40.0)

# %% [markdown]
# Far to the left, a squared length is nearly all noise; far to the right, nearly all signal. At the critical batch they
# are equal.
#
# **Predict:** $\operatorname{tr} \Sigma / |G|^2 = 160$, and a window has four micro-batches of $b = 8$ samples. From the
# squared lengths at $b = 8$ and at $4b = 32$ you can solve the two equations for $|G|^2$. In what percentage of windows
# does the result come out *negative*?

# %% nbgrader={"grade": false, "grade_id": "04-predict-negative", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("negative estimates", None, unit="%")

# %% [markdown]
# [[exercise 04-noise-scale]]
#
# Write two functions.
#
# - `noise_scale(micro_gradients, micro_batch)` gets the gradients of a window's $k \geq 2$ micro-batches, a float64
#   tensor of shape ($k$, parameters), each the mean over `micro_batch` samples. It returns two numbers, estimates
#   of the signal $|G|^2$ and of the noise $\operatorname{tr} \Sigma$, both **unbiased**: over many windows their means
#   are the true values. A single signal may come out negative; return it as it is.
# - `critical_batch(signals, noises)` gets the estimates of many windows as two sequences of floats and returns
#   $B_{\text{crit}}$ in samples.
#
# The check calls the first function on 1200 windows and compares the means with those of unbiased estimates.
#
# <details><summary>Hint 1: a nudge</summary>
#
# You know the mean squared length at two batch sizes, $b$ and $kb$, and the formula above has two unknowns.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Subtract the two equations to get the noise. Then subtract what noise the window's gradient still has from its squared
# length. For many windows, average first, then divide: a single signal near zero ruins a mean of ratios.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `micro_gradients.var(0).sum()`, with $k - 1$ in the denominator as torch has it, is the noise of a micro-batch's mean;
# one sample's is `micro_batch` times as large. The signal is the squared length of `micro_gradients.mean(0)` minus that
# noise of a micro-batch divided by $k$.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "04-noise-scale", "locked": false, "schema_version": 3, "solution": true, "task": false}
def noise_scale(micro_gradients: Tensor, micro_batch: int) -> tuple[float, float]:
    """Unbiased estimates of (|G|^2, tr Sigma) from the gradients of a window's micro-batches."""
    ### BEGIN SOLUTION
    of_micro_batch = float(micro_gradients.var(0).sum())
    length = float(micro_gradients.mean(0).square().sum())
    return length - of_micro_batch / len(micro_gradients), micro_batch * of_micro_batch
    ### END SOLUTION


def critical_batch(signals: Sequence[float], noises: Sequence[float]) -> float:
    """The batch size at which noise and signal are equal, from the estimates of many windows."""
    ### BEGIN SOLUTION
    return sum(noises) / sum(signals)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-noise-scale-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("04-noise-scale", noise_scale, critical_batch)

# %%
drawn = lab04.noisy_windows(n_micro=4, micro_batch=8, length=0.5, trace=40.0)
pairs = [noise_scale(window, 8) for window in drawn]
signals, noises = zip(*pairs)
negative = 100 * sum(signal < 0 for signal in signals) / len(signals)
print(
    f"signal {sum(signals) / len(signals):.3f} (true 0.25), noise {sum(noises) / len(noises):.1f} (true 40)"
)
print(f"{negative:.0f} % of the estimates of the signal are negative")
print(f"critical batch: {critical_batch(signals, noises):.0f} samples (true 160)")
guesses.settle("negative estimates", negative)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About 40 %: a window of 32 samples is a fifth of the critical batch, so the noise hides the signal. Only the mean over
# hundreds of windows is worth anything.
#
# </details>
#
# The noise scale of a language model is measured in tokens, and it grows during training, because the true gradient
# shrinks faster than its noise. So a run may start with small batches and end with large ones.
#
# **In practice** `TrainingArguments` has no flag that measures it. GPT-NeoX has `log_gradient_noise_scale`, and
# Megatron-LM lets the batch grow, with `--rampup-batch-size`. In the `Trainer`, the batch size that you choose with its
# help is the product of `per_device_train_batch_size`, `gradient_accumulation_steps` and the number of ranks.
#
# ## Two batch sizes that matter
#
# The figure puts both questions on one axis: above, your `tokens_per_second` for a layer of width 4096 on an A100;
# below, what it takes to reach a target loss when the critical batch is 65,536 tokens.

# %% tags=["figure"]
labkit.figures.batch_slider(tokens_per_second, float(compute_bound_rows(4096, *A100, 2)), 65536)

# %% [markdown]
# To the left of the upper line the machine waits for memory. (The curve still rises after it, because the optimizer's
# 28 bytes for each weight are shared by more tokens.) To the right of the lower line, samples are wasted. **Train between
# the two.** The ratio of the two also says how many GPUs can usefully share a step.
#
# Accumulation only helps where memory stands in the way. It does not make a step faster, and on *one* GPU it buys a
# batch size that you may not need: if the micro-batch alone keeps the machine busy and lies below the critical batch,
# stepping after every micro-batch learns more for the same work. With a smaller batch, AdamW has to average over more
# steps: keep the **half-life** of its second moment, the number of tokens after which a gradient counts half, constant.
# A batch $k$ times smaller then takes $\beta_2^{1/k}$ in place of $\beta_2$.

# %%
beta2, half_life = 0.95, math.log(0.5) / math.log(0.95)
for k in (1, 8, 64):
    print(f"batch / {k:<3} beta2 = {beta2 ** (1 / k):.5f}, half-life {k * half_life:6.1f} steps")

# %% [markdown]
# ## What you measured

# %%
rows = {
    "a mean of means, cosine with the right gradient": lambda: f"{cosine:.2f}",
    "largest micro-batch under 2.52 MB": lambda: f"{micro_batch} texts",
    "under 12.8 MB, by lab 01's sum / found": lambda: f"{predicted} / {found} texts",
    "peak, step 2 micro-batch 2 / step 1 micro-batch 1": lambda: (
        f"{peaks['step 2, micro-batch 2'] / peaks['step 1, micro-batch 1']:.2f}"
    ),
    "rows that keep an A100 busy, n = 4096": lambda: (
        f"{float(compute_bound_rows(4096, *A100, 2)):.0f}"
    ),
    "tokens per second, 512 a step / 65,536 a step": lambda: (
        f"{float(tokens_per_second(1, 512, 4096, 1, *A100, 2, 28) / tokens_per_second(1, 65536, 4096, 1, *A100, 2, 28)):.0%}"
    ),
    "critical batch of the drawn gradients (true 160)": lambda: (
        f"{critical_batch(signals, noises):.0f} samples"
    ),
}
for label, value in labkit.each_written(rows).items():
    print(f"{label:50}{value:>14}")

# %% [markdown]
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("04", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "04",
    "gradient accumulation",
    speed=lambda: (
        f"{float(tokens_per_second(1, 512, 4096, 8, *A100, 2, 28) / tokens_per_second(8, 512, 4096, 1, *A100, 2, 28)):.0%} "
        "of the tokens per second of one batch (sum)"
    ),
    memory=lambda: f"{micro_batch} of {case.global_batch} texts at a time",
)

# %% [markdown]
# ## Open question
#
# This question is worth 3 points. A person reads your answer, so no check responds at once, and `progress` does not
# count it. Write a few sentences; numbers count more than words.
#
# Why do large batches save computation time on a GPU at all, although every sample takes the same FLOPs? Your run uses
# windows of 8 micro-batches of 2048 tokens on one A100 ($n = 4096$), with a critical batch of about 8,000 tokens.
# What would you change first, and what do you expect of it?

# %% [markdown] nbgrader={"grade": true, "grade_id": "04-open-batch", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The weights are read once for a batch, not once for a sample, so with few rows the time is that of reading n^2 weights
# and further rows cost nothing, up to 165 rows here. Launches and the optimizer's 28 bytes for each weight are shared
# by more samples too. Above that, time grows with the batch and nothing is saved.
#
# 2048 tokens are 12 times what keeps the GPU busy, so memory does not limit the speed. The window of 16,384 tokens is
# twice the critical batch: it takes 1 + 2 = 3 times the fewest tokens and 1.5 times the fewest steps. Smaller windows: 2
# micro-batches (4096 tokens) take 1.5 times the fewest tokens, half the work for the same loss. The optimizer runs four
# times as often: 28 n^2 bytes take 0.23 ms, the products of a micro-batch 0.66 ms, so its share of a step grows from 4 to
# 15 %. beta2 becomes its fourth root, and the learning rate goes down.
#
# Marks: 1 for the weights that are read once (with 165 rows or the threshold). 1 for a smaller window, with the factor
# 3 against 1.5, or a similar one. 1/2 for the optimizer that runs more often, with a number. 1/2 for beta2 or the
# learning rate.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Sam McCandlish and others, *An Empirical Model of Large-Batch Training* (2018): noise scale and critical batch.
# - Martin Marek and others, *Small Batch Size Training for Language Models: When Vanilla SGD Works, and Why Gradient
#   Accumulation Is Wasteful* (2025, arXiv 2507.07101): half-life in tokens, and why not to accumulate on one GPU.
# - Hugging Face's *Fixing Gradient Accumulation* (October 2024): how `transformers` got rid of its mean of means.
# - NVIDIA's *Linear/Fully-Connected Layers User's Guide*: batch size, alignment and tiles; lab 10 covers tiles.
#
# ## Sources
#
# The texts above. The roofline: Samuel Williams and others, *Roofline: An Insightful Visual Performance Model*
# (Communications of the ACM 52, 2009). Rates: NVIDIA's whitepapers of the V100 (2017) and A100 (2020). Trying sizes:
# `find_executable_batch_size` of `accelerate`. The two loops, the effective batch of 4 · 8 and the rule of 128 rows are
# from the lecture decks on efficient training.
