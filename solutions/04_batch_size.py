# %% [markdown]
# # Lab 04: Batch size and gradient accumulation
#
# One text of 256 tokens and seven of 16 do not fit into memory together. So you take them one at a time, divide each
# loss by 8, call `backward` eight times and then step: eight small batches as good as one large batch, as every
# tutorial says. **The first cell measures the gradient that this gives. It points somewhere else.** Nothing crashes and
# the loss goes down, and for years a widely used library trained like that. Which line is wrong?
#
# At the end you can accumulate gradients that equal those of the large batch on one GPU or several, find the largest
# micro-batch that a card holds, say from which batch size a GPU is busy, and measure from which batch size more
# samples stop teaching the model anything new.
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
from labkit import Predictions, check, limit_memory, progress, track_memory
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
# token counts then, the lower one how much it should. Each row is a text, each box 8 tokens.

# %% tags=["figure"]
labkit.figures.token_weights([256, *[16] * 7])

# %% [markdown]
# **Predict:** a GPT of 2 layers computes both gradients for these eight texts. What is the cosine of the angle between
# them, where 1 means the same direction? (In the next cell, as in all cells of this kind, replace `None` with your
# answer and run the cell. A choice from `among` is written exactly as it stands there, in quotes.)

# %% nbgrader={"grade": false, "grade_id": "04-predict-cosine", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("cosine of the gradients", None, among=("0.99", "0.9", "0.65", "0.1"))

# %%
texts = lab04.random_texts([256, *[16] * 7])
gpt = lab04.small_gpt()
n_labels = sum(text.numel() - 1 for text in texts)  # the first token of a text is no label
of_means = lab04.gradient_of(gpt, texts, lambda n: 8 * n)
of_tokens = lab04.gradient_of(gpt, texts, lambda n: n_labels)

cosine = float(F.cosine_similarity(of_means, of_tokens, dim=0))
print(f"weight of a token in a short text / in the long one: {255 / 15:.0f}")
print(f"cosine of the two gradients: {cosine:.2f}; lengths {of_means.norm() / of_tokens.norm():.2f} : 1")
choices = ("0.99", "0.9", "0.65", "0.1")
guesses.settle(
    "cosine of the gradients", min(choices, key=lambda choice: abs(float(choice) - cosine))
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About 0.65, an angle of 50 degrees. Seven short texts hold 29 % of the tokens and make 88 % of the gradient.
#
# </details>
#
# Texts of equal length hide the mistake, and so does every test that uses them. Here are two loops from lecture slides,
# each with other mistakes. Read them before you run them.


# %%
def first_loop(model, optimizer, loader, n_accumulate):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        if (i + 1) % n_accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def second_loop(model, optimizer, loader, n_accumulate):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / n_accumulate
        loss.backward()
        if (i + 1) % n_accumulate == 0 or i + 1 == len(loader):
            optimizer.zero_grad()
            optimizer.step()


# %% [markdown]
# **Predict:** both train for five epochs on the same ten micro-batches, with `n_accumulate = 4`. What becomes of the
# loss with the second loop?

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
    left = math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None))
    print(f"{name:14}{before:>12.3f}{after:>8.3f}{left:>24.2f}")
guesses.settle(
    "loss of the second loop",
    "stays the same" if after == before else "falls" if after < before else "rises",
)

# %% [markdown]
# <details><summary>What is wrong with each?</summary>
#
# The second loop clears the gradients just before the step, so the optimizer sees none and the weights never move.
#
# The first one never divides by anything, so the gradient grows with `n_accumulate`. And ten is not a multiple of four:
# the gradients of the last two micro-batches get no step and stay in `.grad`, where they are added to the first window
# of the next epoch. Both loops also take a mean of means.
#
# </details>
#
# On **several GPUs**, each with a copy of the model, each process is called a **rank** and has its own texts. A step
# then belongs to all their micro-batches together: a talk's effective batch of $4 \cdot 8 = 32$ is that of one rank,
# and still has to be multiplied by the number of ranks. The tokens that you divide by are those of all ranks as well.

# %% [markdown]
# [[exercise 04-accumulate]]
#
# Write `train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks)`, which trains for one epoch and
# returns nothing. The check calls it twice in a row, on every rank.
#
# - `loader` gives micro-batches `(x, y)`, token numbers of shape (texts, length); `len(loader)` is their number, the
#   same on all ranks. `model(x)` returns logits of shape (texts, length, vocabulary), and `y` already holds the next
#   token for each position. Padding has the label -100 and does not count. A micro-batch may be all padding.
# - `n_accumulate` micro-batches make a window, and each window one `optimizer.step()`. The last window of an epoch may
#   be shorter and gets its step too.
# - The gradient of a step is that of the **mean loss over all tokens of the window on all ranks**. Its norm is then
#   limited to `max_norm` (`nn.utils.clip_grad_norm_` does this).
# - `sum_over_ranks(value)` returns the sum over all ranks of a number or a tensor, and leaves its argument as it is.
#   All ranks have to call it equally often. On one rank it returns the value itself.
# - Only one micro-batch's activations may be in memory at a time.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Nobody knows how many tokens a window has until its last micro-batch has come, on all ranks. Either collect the
# window's micro-batches first, since token numbers are small, or divide at the end.
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
