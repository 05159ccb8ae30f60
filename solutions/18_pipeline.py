# %% [markdown]
# # Lab 18: Pipelines
#
# A model that is too large for one device is cut into four stages, one for each of four devices. One batch goes through the
# stages forward and back. The clock says: speed-up 1.00, and each device is idle for 75 % of the time. **Four devices, and
# not a second saved: what are they waiting for, and how do you get them to work at the same time?**
#
# At the end, the same four devices will be idle for less than 9 % of the time, and of two schedules that are equally fast, one
# will keep an eighth of what the other keeps. You will work out who waits for how long, cut the batch into micro-batches, and
# write the schedules that keep all stages busy (GPipe, 1F1B, interleaved). Then you train a real model on three stages that
# send and receive.
#
# [[time]]
#
# You need to know what ranks, `send` and `recv` are (lab 14), but nothing that you wrote there.

# %% nbgrader={"grade": false, "grade_id": "18-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import random
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress, written
from labkit.exercises.lab18.interleaved import Looped, run_looped
from labkit.exercises.lab18.model import Stage
from labkit.exercises.lab18.orders import Pipe, run_of
from labkit.exercises.lab18.zero_bubble import UNEVEN, run_split, uniform
from labkit.material.lab18 import naive_step, train_on_stages
from labkit.material.lab18_schedules import running_ahead, without_reserve
from labkit.pipeline import Action, run_schedule
from labkit.ranks import Comm

guesses = Predictions("18")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# Here is the question, measured on simulated devices with a virtual clock. A stage's forward pass takes 1 second, its backward
# pass 2 seconds, and messages take no time at all:

# %%
for n_stages in (1, 2, 4, 8):
    step = naive_step(n_stages)
    idle = 1 - sum(step.busy_s) / (n_stages * step.step_s)
    print(
        f"{n_stages} devices   one device alone {step.alone_s:4.0f} s   step {step.step_s:4.0f} s   "
        f"speed-up {step.alone_s / step.step_s:.2f}   idle {idle:.1%}"
    )

# %% [markdown]
# ## One batch keeps one device busy
#
# Each rank holds a **stage**: a few consecutive layers. Stage $i$ receives the activation of stage $i-1$, computes its
# forward pass, and sends its own activation to stage $i+1$. In the backward pass the gradients travel the other way. Stage 1
# cannot begin before stage 0 has finished, and stage 0 cannot continue before the gradient has come back. This is
# **naive model parallelism**: it makes room for a larger model, and at each moment only one device works.
#
# On real devices the messages take time as well. A device that sends or receives is not free for anything else, but it is
# not **idle** either: idle is the time in which it neither computes nor communicates.

# %% [markdown]
# **Predict:** two devices with equal stages: 5 ms for a forward pass, 10 ms for a backward pass, 3 ms for a message. For what
# share of a step is each of them idle?

# %% nbgrader={"grade": false, "grade_id": "18-predict-two-idle", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("idle share of two devices", None)

# %% [markdown]
# [[exercise 18-naive-idle]]
#
# One batch goes through $p$ stages and back. Stage $i$ takes `forward_ms[i]` and `backward_ms[i]`. A message between stages $i$
# and $i+1$ takes `transfer_ms[i]`, in either direction, and both stages are busy with it all the while.
#
# - `idle_shares(...)` returns a list: for each stage, the share of the step (0 to 1) in which it neither computes nor sends nor
#   receives. The step begins with the first forward pass and ends with the last backward pass.
# - `speedup(...)` returns the time of a single device that holds the whole model, divided by the time of the step.
#
# <details><summary>Hint 1: a nudge</summary>
#
# At each moment, either one stage computes, or one message travels. So how long does the step take?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The step takes the sum of all forward passes, all backward passes, and *two* messages over each link. A stage in the middle
# has two links, the first and the last stage have one, and a single stage has none.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With `links = [0, *transfer_ms, 0]`, stage $i$ talks for `2 * (links[i] + links[i + 1])` ms. Its idle share is 1 minus what it
# computes and talks, divided by the time of the step. A single device sends nothing.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "18-naive-idle", "locked": false, "schema_version": 3, "solution": true, "task": false}
def idle_shares(
    forward_ms: Sequence[float], backward_ms: Sequence[float], transfer_ms: Sequence[float]
) -> list[float]:
    """For each stage the share of a step of one batch in which it neither computes nor communicates."""
    ### BEGIN SOLUTION
    step_ms = sum(forward_ms) + sum(backward_ms) + 2 * sum(transfer_ms)
    links_ms = [0, *transfer_ms, 0]
    shares = []
    for stage, (forward, backward) in enumerate(zip(forward_ms, backward_ms)):
        talks_ms = 2 * (links_ms[stage] + links_ms[stage + 1])
        shares.append(1 - (forward + backward + talks_ms) / step_ms)
    return shares
    ### END SOLUTION


def speedup(
    forward_ms: Sequence[float], backward_ms: Sequence[float], transfer_ms: Sequence[float]
) -> float:
    """How many times as fast as one device that holds the whole model."""
    ### BEGIN SOLUTION
    alone_ms = sum(forward_ms) + sum(backward_ms)
    return alone_ms / (alone_ms + 2 * sum(transfer_ms))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-naive-idle-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("18-naive-idle", idle_shares, speedup)

# %%
if written(idle_shares, speedup):
    print("stages   idle without messages   with messages of 3 ms   speed-up with them")
    for p in (1, 2, 4, 8):
        passes = ([5.0] * p, [10.0] * p)
        free, slow = (sum(idle_shares(*passes, [ms] * (p - 1))) / p for ms in (0.0, 3.0))
        print(f"{p:6}{free:24.1%}{slow:24.1%}{speedup(*passes, [3.0] * (p - 1)):21.2f}")
    guesses.settle("idle share of two devices", idle_shares([5.0, 5.0], [10.0, 10.0], [3.0])[0])

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 0.42, and not a half. The step takes 10 + 20 + 6 = 36 ms. Each device computes for 15 ms and talks for 6, so it is idle
# for the other 15. The messages make the *share* of idle time smaller, and the step longer: a share alone says nothing about
# speed.
#
# </details>
#
# With $p$ equal stages and free messages, each device is idle for $(p-1)/p$ of the time, and the step is not faster than on
# one device. All that naive model parallelism buys is memory.
#
# **In practice** this is what `device_map="auto"` of `transformers` does: it spreads the layers over the GPUs of a machine,
# and they work one after the other. That is fine for trying out a model that fits on no single GPU, and a waste for training.

# %% [markdown]
# ## Cut the batch: GPipe
#
# The stages wait because there is only one thing to work on. So cut the batch into $m$ **micro-batches**, as for gradient
# accumulation (lab 04): while stage 1 works on micro-batch 0, stage 0 can already take micro-batch 1. The gradients of all
# micro-batches add up, and the optimizer steps once, after the last one. The result is that of the whole batch.
#
# **GPipe** is the simplest order of work: every stage first runs all forward passes, then all backward passes. This is what
# two stages and three micro-batches look like, with a backward pass that takes twice as long as a forward pass:

# %% tags=["figure"]
labkit.figures.pipeline_sketch()

# %% [markdown]
# The grey time is the **bubble**: there is nothing that a stage could do then. With $p$ equal
# stages, every stage waits for $p-1$ passes forward and $p-1$ back, however many micro-batches there are. People give the
# bubble as a share, and of two different things:
#
# $$\frac{p-1}{m+p-1} \text{ of the whole step,} \qquad \frac{p-1}{m} \text{ of the ideal step, the one without waiting}$$

# %% [markdown]
# **Predict:** 8 equal stages. Into how many micro-batches do you have to cut the batch, so that at most 10 % of the step is
# idle?

# %% nbgrader={"grade": false, "grade_id": "18-predict-micro-batches", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("micro-batches for a bubble of 10 %", None)

# %% [markdown]
# [[exercise 18-gpipe]]
#
# Write `gpipe(stage, n_stages, n_microbatches)`. It returns the order in which one stage works: a list of pairs, `("F", 3)` for
# the forward pass of micro-batch 3 and `("B", 3)` for its backward pass. Stages and micro-batches are numbered from 0.
#
# The check calls it for every stage and plays the lists. Each stage goes through its own list from the first entry to the last.
# An entry begins as soon as the stage is free and what it needs is there:
#
# | entry | needs |
# |---|---|
# | `("F", i)` | the activation of micro-batch $i$ from the stage before, unless this is the first stage |
# | `("B", i)` | its own `("F", i)`, and the gradient of micro-batch $i$ from the next stage, unless this is the last one |
#
# Your order passes if every stage runs all forward passes first, and no order like that takes less time. Stages may differ,
# and messages may take time.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Does the list depend on the stage?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A stage can only work on what the stage before it has sent. If all stages take the micro-batches in the same order, nobody
# waits longer than necessary. The player takes care of the waiting: your list only says what comes after what.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `[("F", i) for i in range(n_microbatches)]`, followed by the same with `"B"`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "18-gpipe", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gpipe(stage: int, n_stages: int, n_microbatches: int) -> list[tuple[str, int]]:
    """What one stage runs, in order: ("F", micro-batch) forward, ("B", micro-batch) backward."""
    ### BEGIN SOLUTION
    microbatches = range(n_microbatches)
    return [("F", i) for i in microbatches] + [("B", i) for i in microbatches]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-gpipe-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("18-gpipe", gpipe)

# %% [markdown]
# Your schedule on a clock. Move the slider: the bubble (grey) keeps its area, and the rest grows. The strips under the bars show
# how many micro-batches each stage holds: their activations are kept from the forward pass until the end of the backward
# pass.

# %% tags=["figure"]
labkit.figures.pipeline_player(gpipe)

# %%
if written(gpipe):
    print("micro-batches   idle share of the step, 4 stages   8 stages   held by stage 0")
    for m in (1, 4, 8, 16, 32, 64, 128):
        four, eight = (run_of(gpipe, Pipe(n_stages=p, n_microbatches=m)) for p in (4, 8))
        print(f"{m:13}{four.bubble:33.1%}{eight.bubble:11.1%}{eight.peak_live[0]:18}")
    enough = (m for m in range(1, 200) if run_of(gpipe, Pipe(8, m)).bubble <= 0.1)
    guesses.settle("micro-batches for a bubble of 10 %", next(enough))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 63 micro-batches: $7/(m+7) \le 0.1$. As a rule of thumb, take at least $4p$ micro-batches, which leaves about 20 %.
#
# </details>
#
# Why not cut the batch into thousands? A micro-batch has at least one sample, and small ones use a GPU badly (lab 04). And
# if you make the *batch* larger instead, it soon exceeds the size up to which larger batches still help.
#
# Look at the last column. GPipe holds every micro-batch until the end, so it keeps the activations of the whole batch,
# however you cut it. The GPipe paper therefore recomputes all activations (lab 05). Can a better order help?

# %% [markdown]
# ## Play a schedule yourself
#
# Before you read how others do it, build a schedule by hand. A click on "forward 0" adds the next forward pass of stage 0,
# which begins as soon as it can. A pass that lacks something is refused, and you are told what it lacks. This is what the
# first moves look like, the last of which was refused:

# %% tags=["figure"]
labkit.figures.schedule_strip([("F", 0), ("F", 0), ("F", 1), ("F", 2), ("B", 0)])

# %% [markdown]
# With three stages and four micro-batches, GPipe takes 18 units of time, and every stage holds 4 micro-batches. Can you do
# it in 18 as well, with stage 0 holding 3? Can you do it with 2? (On a printed page there is nothing to click.)

# %% tags=["figure"]
labkit.figures.schedule_game(n_stages=3, n_microbatches=4)

# %% [markdown]
# <details><summary>What is possible</summary>
#
# 18 units with 3, 2 and 1 micro-batches held, by stage. With only 2 on stage 0, it has to wait for a gradient before it
# may begin its third forward pass, and no order takes less than 21 units. With 1 there is one micro-batch in the whole
# pipeline: 36 units, as in naive model parallelism.
#
# </details>

# %% [markdown]
# ## The schedule buys memory: 1F1B
#
# A micro-batch takes up memory from its forward pass to its backward pass. GPipe lets the first one wait until the last one has
# come through. But the last stage could go back through micro-batch 0 at once, and then the stage before it, and so on. Each
# backward pass frees memory for one more forward pass. After a **warm-up** of some forward passes, every stage alternates:
# one forward, one backward. This is **1F1B**. In the end, the micro-batches of the warm-up are still to go back: the
# **cool-down**.
#
# How long is the warm-up? Follow one micro-batch on its way there and back, and see how long each stage has to wait for its
# gradient:

# %% tags=["figure"]
labkit.figures.pipeline_sketch(4, 1)

# %% [markdown]
# **Predict:** 4 equal stages, 32 micro-batches, the backward pass takes twice as long as the forward pass. GPipe takes 105 units
# of time, of which a stage computes 96. How many units does 1F1B take?

# %% nbgrader={"grade": false, "grade_id": "18-predict-1f1b", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("units of time of 1F1B", None)

# %% [markdown]
# [[exercise 18-one-f-one-b]]
#
# Write `one_f_one_b(stage, n_stages, n_microbatches)`, with the same entries and the same rules as before. Two things are
# checked:
#
# - **Memory:** at no time does stage $i$ hold more than $\min(m, p-i)$ micro-batches.
# - **Time:** the step takes no longer than with PyTorch's own 1F1B.
#
# There may be fewer micro-batches than stages.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How long does stage 0 have to wait for its first gradient? What can it do in the meantime? And the last stage?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Micro-batch 0 has to pass $p-1-i$ more stages before stage $i$ can hope for its gradient. That is the warm-up of stage $i$:
# 0 for the last stage, $p-1$ for the first. Then come pairs of one forward and one backward pass. How many pairs are left when
# the forward passes run out? And what is left then?
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `warm_up = min(n_microbatches, n_stages - 1 - stage)` forward passes; then, for each `i` of the `n_microbatches - warm_up`
# others, `("F", warm_up + i), ("B", i)`; then the last `warm_up` backward passes.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "18-one-f-one-b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def one_f_one_b(stage: int, n_stages: int, n_microbatches: int) -> list[tuple[str, int]]:
    """What one stage runs, in order: ("F", micro-batch) forward, ("B", micro-batch) backward."""
    ### BEGIN SOLUTION
    warm_up = min(n_microbatches, n_stages - 1 - stage)
    order = [("F", i) for i in range(warm_up)]
    for i in range(n_microbatches - warm_up):
        order += [("F", warm_up + i), ("B", i)]
    return order + [("B", i) for i in range(n_microbatches - warm_up, n_microbatches)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-one-f-one-b-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("18-one-f-one-b", one_f_one_b)

# %%
if written(one_f_one_b):
    guesses.settle("units of time of 1F1B", run_of(one_f_one_b, Pipe(4, 32)).makespan)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 105, exactly as many as GPipe. Every stage still waits for the first micro-batch to arrive and for the last gradient to
# come back, and no order of whole passes changes that. It is a common misunderstanding that 1F1B has a smaller bubble.
#
# </details>
#
# So what is it for? Look at the strips under the bars, and then at both schedules on one axis:

# %% tags=["figure"]
labkit.figures.pipeline_player(one_f_one_b)

# %% tags=["figure"]
orders = {"GPipe": gpipe, "1F1B": one_f_one_b}
both = {name: run_of(order, Pipe(4, 32)) for name, order in orders.items() if written(order)}
labkit.figures.pipeline_memory(both) if both else None

# %% [markdown]
# GPipe's stages hold 32 micro-batches, 1F1B's hold 4, 3, 2 and 1, and the number does not grow with $m$. That is how 1F1B
# makes the step faster after all: with GPipe you stop adding micro-batches when memory is full, and with 1F1B you can go on.
#
# **Predict:** until now, messages took no time. With 4 stages, 32 micro-batches and messages of half a unit each, how many units
# longer does a step of 1F1B take? (For GPipe it is 3: three messages on the way there, and three on the way back.)

# %% nbgrader={"grade": false, "grade_id": "18-predict-slow-messages", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("units that messages add to 1F1B", None)

# %%
if written(gpipe, one_f_one_b):
    ahead = running_ahead(one_f_one_b)
    print("a message takes   GPipe   1F1B   1F1B with twice the warm-up   kept by stages 0 to 3")
    for message in (0.0, 0.1, 0.25, 0.5, 1.0):
        a, b, c = (
            run_of(order, Pipe(4, 32, transfer=message)) for order in (gpipe, one_f_one_b, ahead)
        )
        print(
            f"{message:15g}{a.makespan:8.1f}{b.makespan:7.1f}{c.makespan:30.1f}{c.peak_live!s:>24}"
        )
    with_messages, without = (run_of(one_f_one_b, Pipe(4, 32, transfer=t)) for t in (0.5, 0.0))
    guesses.settle("units that messages add to 1F1B", with_messages.makespan - without.makespan)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 26 units: the time of 52 messages. In the steady state, stage 2 waits for a gradient of stage 3 before it sends the next
# activation, and stage 3 waits for that activation. So the stages wait for messages again and again, for one and a half per
# micro-batch on average. In GPipe, a stage has other micro-batches to work on while messages travel.
#
# </details>
#
# The cure is to run ahead: with *twice* the warm-up there is always one micro-batch in reserve on each side of a message, and
# the step is as short as GPipe's again. It costs some memory, but still none that grows with $m$.
#
# Note that the first stage needs four times as much memory for activations as the last. In practice the last stage has the
# output layer and its logits to make up for it, or the stages get unequal numbers of layers.
#
# **In practice:** `torch.distributed.pipelining` has both schedules, `ScheduleGPipe(stage, n_microbatches)` and
# `Schedule1F1B(stage, n_microbatches)`. In Megatron-LM, 1F1B is what `--pipeline-model-parallel-size 4` runs.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Send and receive: a real training step
#
# So far an order was a list. Now stages compute and send: one call of your function is a training step of one stage, and all
# stages run it at the same time. The model is a small language model. Stage 0 turns token ids into vectors, the last stage
# turns vectors into logits, and both use the same matrix, the **tied embedding**. Each of the two has a copy of it.
#
# Three things can go wrong that no schedule shows:
#
# - **The scale.** Texts differ in length, so the micro-batches have different numbers of tokens. The gradient has to be that of
#   the mean over *all* tokens of the batch (lab 04).
# - **The tied embedding.** Each copy gets the gradient of its own use only. If the two differ, the copies drift apart, and nothing
#   crashes.
# - **Two that send to each other.** `comm.send` returns once the receiver has asked for the message. In 1F1B, stage 1 sends an
#   activation down while stage 2 sends a gradient up. If both wait for the other to receive, they wait forever.

# %% [markdown]
# [[exercise 18-pipeline-step]]
#
# Write `pipeline_step(comm, stage, order, shapes, tokens, targets)`. Rank $r$ runs stage $r$.
#
# - `stage(x)` is the forward pass. Rank 0 gives it token ids, every other rank the activation that it has received; the last
#   rank gets logits of shape `(rows, length, vocab)`.
# - `order` lists this rank's passes: `("F", 3)` is the forward pass of micro-batch 3, `("B", 3)` its backward pass. Run them in
#   this order. It may be GPipe's, 1F1B's, or another one.
# - `shapes[k]` is the shape of the activation of micro-batch `k`, in float32, and of its gradient. Micro-batches differ.
# - `tokens[k]` (on rank 0) are the ids of micro-batch `k`, `targets[k]` (on the last rank) what the logits should predict.
#   A target of -100 does not count. On other ranks both are None.
# - The loss is the mean of the cross-entropy over all tokens of all micro-batches that count. The last rank returns it as a
#   number or a tensor without a graph.
# - Afterwards each parameter has its gradient in `.grad`, and `stage.tied_weight.grad` is the same on the first and the last rank.
#   (Between them, `stage.tied_weight` is None. A single rank has one copy, used twice, and autograd adds up.)
#
# The check looks at losses, gradients and weights after steps of gradient descent, at the bytes sent, and at what a stage keeps:
# after the backward pass of a micro-batch, nothing of it.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A stage has to keep two tensors of each micro-batch between F and B: what went in (to read its gradient) and what came out (to
# call backward on it). A received tensor is nobody's result, so autograd has to be told that you want its gradient.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# F: receive, `stage(x)`, send the output, keep both in a dictionary. B: take them out of the dictionary, receive the gradient
# of the output, `output.backward(gradient)`, send `x.grad`. Start every send with `comm.isend`, and `wait()` for all of
# them at the end of the step. On the last rank the output is the loss: a *sum* over the tokens of the micro-batch, divided by the
# number of tokens in the whole batch.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `n_tokens = sum(int((t != -100).sum()) for t in targets)` and `F.cross_entropy(logits.flatten(0, 1), targets[k].flatten(),
# reduction="sum") / n_tokens`. At the end, if there is more than one rank, `group = comm.new_group([0, comm.world_size - 1])`
# (all ranks call it; it is None in between), and `group.all_reduce(stage.tied_weight.grad)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "18-pipeline-step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pipeline_step(
    comm: Comm,
    stage: Stage,
    order: list[tuple[str, int]],
    shapes: list[tuple[int, int, int]],
    tokens: list[Tensor] | None,
    targets: list[Tensor] | None,
) -> Tensor | None:
    """One training step of this rank's stage, up to the gradients. The last rank returns the loss."""
    ### BEGIN SOLUTION
    rank, last = comm.rank, comm.world_size - 1
    if rank == last:
        n_tokens = sum(int((target != -100).sum()) for target in targets)
    loss = torch.zeros(()) if rank == last else None
    kept, sends = {}, []
    for kind, k in order:
        if kind == "F":
            x = tokens[k] if rank == 0 else received(comm, shapes[k], rank - 1)
            out = stage(x)
            if rank == last:
                logits, target = out.flatten(0, 1), targets[k].flatten()
                out = F.cross_entropy(logits, target, reduction="sum") / n_tokens
                loss += out.detach()
            else:
                sends.append(comm.isend(out.detach(), rank + 1))
            kept[k] = x, out
        else:
            x, out = kept.pop(k)
            out.backward(None if rank == last else received(comm, shapes[k], rank + 1))
            if rank > 0:
                sends.append(comm.isend(x.grad, rank - 1))
    for send in sends:
        send.wait()
    if last > 0:
        ends = comm.new_group([0, last])
        if ends is not None:
            ends.all_reduce(stage.tied_weight.grad)
    return loss


def received(comm: Comm, shape: tuple[int, int, int], src: int) -> Tensor:
    tensor = torch.empty(shape)
    comm.recv(tensor, src)
    return tensor.requires_grad_()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-pipeline-step-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("18-pipeline-step", pipeline_step)

# %% [markdown]
# Your step on three real processes, with eight micro-batches of 30 to 63 tokens: five steps of gradient descent in one process,
# and over three stages in two orders.

# %%
m = 8
forward, back = ([(kind, k) for k in range(m)] for kind in "FB")
orders = {"one process": [forward + back], "3 stages, GPipe": [forward + back] * 3}
if written(one_f_one_b):
    orders["3 stages, 1F1B"] = [one_f_one_b(stage, 3, m) for stage in range(3)]
if written(pipeline_step):
    for name, by_rank in orders.items():
        run = train_on_stages(pipeline_step, by_rank)
        losses = " ".join(f"{loss:.5f}" for loss in run.losses)
        sent = ", ".join(f"{n_bytes:,}" for n_bytes in run.sent)
        print(
            f"{name:16} losses {losses}   sent by each rank {sent} B   embeddings apart {run.apart}"
        )

# %% [markdown]
# The losses are those of one process, and the two copies of the embedding have the same bits. Both orders send the same
# bytes: the middle stage sends activations down and gradients up, the other two send in one direction only, and the
# gradient of the embedding on top. Compare that with data parallelism: what crosses a link of a pipeline is the activation of
# a few tokens, not the gradient of all parameters. That is why pipelines run *between* nodes, where links are slow.
#
# **In practice** this function is `schedule.step(tokens)` of `torch.distributed.pipelining` (`PipelineStage(module, rank, n_stages,
# device)` around each stage), or `engine.train_batch(...)` of DeepSpeed's `PipelineModule`. Both average the loss by micro-batch
# unless you hand them a loss function that does not. A tied embedding is `TiedLayerSpec` in DeepSpeed; in PyTorch you add up
# its gradients yourself, as here.

# %% [markdown]
# ## Smaller stages, smaller bubble: interleaved
#
# A rank waits for $p-1$ stages forward and $p-1$ back. More micro-batches do not change that, but *shorter stages* would. So cut
# the model into $v \cdot p$ stages instead of $p$, and deal them out in turn: rank 0 gets stages 0, $p$, $2p$, ..., rank 1 gets
# stages 1, $p+1$, and so on. Each rank now has $v$ **chunks** of the model, and each chunk takes $1/v$ of the time. With 2
# ranks and 2 chunks, a micro-batch travels like this, forward:
#
# | stage | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | rank | 0 | 1 | 0 | 1 |
# | chunk on this rank | 0 | 0 | 1 | 1 |
#
# From stage 1 to stage 2 it wraps around from the last rank to the first. The backward pass goes the same way back. A rank
# still waits for $p-1$ passes each way, but only through *chunks*, so the bubble is $v$ times smaller:
#
# $$\frac{p-1}{v m+p-1} \text{ of the whole step}$$
#
# This is how two micro-batches travel. The pale passes are those through the second chunk:

# %% tags=["figure"]
labkit.figures.pipeline_sketch(2, 2, n_chunks=2)

# %% [markdown]
# The chunks have to be **interleaved**. A micro-batch that leaves rank 0 is back $p$ passes later, if nobody waits. What
# does rank 0 do with these $p$ passes? It takes $p$ micro-batches through chunk 0, then the same $p$ through chunk 1, and so
# on. Then come the next $p$ micro-batches. Therefore $m$ has to be a multiple of $p$.

# %% [markdown]
# **Predict:** 2 ranks, and 4 chunks on each instead of one. How many times as many messages are sent in a step?

# %% nbgrader={"grade": false, "grade_id": "18-predict-messages", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("messages of 4 chunks on 2 ranks", None, unit="times")

# %% [markdown]
# [[exercise 18-interleaved]]
#
# Write `interleaved(rank, n_ranks, n_chunks, n_microbatches)`. It returns what one rank runs, in order, now as triples:
# `("F", chunk, i)` takes micro-batch $i$ forward through this rank's chunk number `chunk`, and `("B", chunk, i)` takes it back.
# Chunk $c$ of rank $r$ is stage $c \cdot p + r$.
#
# `n_microbatches` is a multiple of `n_ranks`, and all stages take equally long. Two things are checked:
#
# - **Time:** if messages are free, the bubble is the one above. If they take time, the step takes no longer than with
#   PyTorch's own interleaved schedule.
# - **Memory:** rank $r$ keeps the activations of at most $\min(v m,\; 2(p-r-1) + (v-1)p + 1)$ passes through a chunk.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Number a rank's forward passes $k = 0, 1, \dots, vm-1$. Through which chunk does the $k$-th one go, and which micro-batch is
# it? What about the $k$-th backward pass? When you know that, all that is left is 1F1B with another warm-up.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The chunk changes every $p$ passes, and after $v p$ passes the next group of $p$ micro-batches begins. Backward, the groups are
# the same and the chunks run from the last to the first.
#
# The last rank gets its first gradient when micro-batch 0 has gone through all its chunks: after $(v-1)p$ warm-up passes and the
# forward pass of the first pair. For each rank before it, add two: one for the way there, and one in reserve, which the rank runs
# while messages travel.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# The $k$-th forward pass takes micro-batch `k // (p * v) * p + k % p` through chunk `k % (p * v) // p`; the $k$-th backward pass takes
# the same micro-batch through chunk `v - 1` minus that. The warm-up has `min(v * m, 2 * (p - rank - 1) + (v - 1) * p)` passes.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "18-interleaved", "locked": false, "schema_version": 3, "solution": true, "task": false}
def interleaved(
    rank: int, n_ranks: int, n_chunks: int, n_microbatches: int
) -> list[tuple[str, int, int]]:
    """What one rank runs, in order: ("F" or "B", chunk on this rank, micro-batch)."""
    ### BEGIN SOLUTION
    group = n_ranks * n_chunks
    n_passes = n_chunks * n_microbatches
    warm_up = min(n_passes, 2 * (n_ranks - rank - 1) + (n_chunks - 1) * n_ranks)

    def at(k: int) -> tuple[int, int]:
        return k % group // n_ranks, k // group * n_ranks + k % n_ranks

    def forward(k: int) -> tuple[str, int, int]:
        chunk, microbatch = at(k)
        return "F", chunk, microbatch

    def backward(k: int) -> tuple[str, int, int]:
        chunk, microbatch = at(k)
        return "B", n_chunks - 1 - chunk, microbatch

    order = [forward(k) for k in range(warm_up)]
    for k in range(n_passes - warm_up):
        order += [forward(warm_up + k), backward(k)]
    return order + [backward(k) for k in range(n_passes - warm_up, n_passes)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-interleaved-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("18-interleaved", interleaved)

# %% [markdown]
# The bars with a white line are passes through a rank's second (fourth, ...) chunk. A step of plain 1F1B takes 33 units
# here; drag the number of chunks and watch the bubble and the memory under the bars. What is kept is counted in whole
# micro-batches, so that the numbers can be compared: one that is in one of two chunks counts half.

# %% tags=["figure"]
labkit.figures.interleaved_player(interleaved)

# %%
if written(interleaved):
    print("chunks   step   idle share   messages   kept by rank 0, in micro-batches")
    for v in (1, 2, 4, 8):
        run = run_looped(interleaved, Looped(4, v, 8, forward=1 / v, backward=2 / v))
        kept = run.peak_live[0] / v
        print(f"{v:6}{run.makespan:7.2f}{run.bubble:13.1%}{run.n_transfers:11}{kept:35.2f}")
    one, four = (run_looped(interleaved, Looped(2, v, 8)).n_transfers for v in (1, 4))
    guesses.settle("messages of 4 chunks on 2 ranks", four / one)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 7 times: $v p$ stages have $v p - 1$ borders, and every border lies between two ranks, so the messages grow by
# $(vp-1)/(p-1)$. With many ranks this is nearly $v$; with two it is much more.
#
# </details>
#
# So interleaving buys a smaller bubble, and pays with messages, and with a little memory: plain 1F1B keeps 4 micro-batches on
# rank 0. (With one chunk, your schedule is the 1F1B that runs ahead.) The messages are of the same size as before, since
# an activation between two layers does not depend on where you cut.
#
# What is the second pass per rank in the warm-up for? Here is your schedule with and without it:

# %%
if written(interleaved):
    print("a message takes   step   kept by rank 0   without the reserve: step   kept")
    for message in (0.0, 0.1, 0.25, 0.5):
        case = Looped(4, 2, 32, transfer=message)
        yours, other = run_looped(interleaved, case), run_looped(without_reserve(interleaved), case)
        print(
            f"{message:15g}{yours.makespan:7.1f}{yours.peak_live[0]:17}{other.makespan:29.1f}{other.peak_live[0]:7}"
        )

# %% [markdown]
# While messages are free, the reserve is a waste of memory. As soon as they take time, it hides them.
#
# **In practice:** `ScheduleInterleaved1F1B` of `torch.distributed.pipelining` takes a list of stages per rank. In Megatron-LM
# it is `--num-layers-per-virtual-pipeline-stage`.

# %% [markdown]
# ## Split the backward pass: zero bubble
#
# This section is optional, and its exercise is a puzzle. A backward pass computes two things. For a linear layer $y = xW$:
#
# $$\underbrace{\frac{\partial L}{\partial x} = \frac{\partial L}{\partial y}\, W^\top}_{\text{I: the input gradient}} \qquad\qquad
# \underbrace{\frac{\partial L}{\partial W} = x^\top \frac{\partial L}{\partial y}}_{\text{W: the weight gradient}}$$
#
# The stage before waits for the input gradient only. Nobody waits for the weight gradient, except the optimizer at the end of
# the step. So a stage can run W where it would otherwise wait. It pays with memory, because $x$ is needed until then:
# now a micro-batch is kept from its forward pass to the end of its W.

# %% [markdown]
# **Predict:** 4 stages and 8 micro-batches; F, I and W take one unit each. With 1F1B each stage waits for 9 units. Stages may
# hold 4 micro-batches, as stage 0 does with 1F1B. How many units does each stage have to wait at least, if you put the weight
# gradients in the best places?

# %% nbgrader={"grade": false, "grade_id": "18-predict-least-waiting", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("least waiting of a stage", None, unit="units")

# %% [markdown]
# [[exercise 18-zero-bubble]]
#
# Write `zero_bubble(forward, input_grad, weight_grad, n_microbatches, memory)`. The first three are lists: how long each pass
# takes, by stage. It returns the orders of *all* stages, a list of lists. Entries are `("F", i)`, `("I", i)` and `("W", i)`:
#
# | entry | needs |
# |---|---|
# | `("F", i)` | the activation of micro-batch $i$ from the stage before, unless this is the first stage |
# | `("I", i)` | its own `("F", i)`, and the next stage's `("I", i)`, unless this is the last stage |
# | `("W", i)` | its own `("I", i)` |
#
# No stage may hold more than `memory` micro-batches at once, each from the beginning of its F to the end of its W. The
# waiting time of all stages together may be 5 % longer than in the best schedule. There are two kinds of cases:
#
# - All passes take equally long, there are at least as many micro-batches as stages, and `memory` is the number of stages. The
#   best schedule is ZB-H1 of the paper.
# - Two or three stages that differ, three or four micro-batches. The best schedule was found by trying all.
#
# `run_schedule(orders, costs, memory_cap=memory)` plays an order: see the cell below the check for how to call it. You may use
# it inside your function.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Begin with your 1F1B and replace each B by I and W. Where does a stage wait for the next one? What if the next one had put
# off a weight gradient?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# If all passes take equally long: the warm-up is that of 1F1B, and stage $i$ runs each weight gradient $i$ micro-batches late.
# The last stage then holds $p$ micro-batches too. At the end, each stage runs the weight gradients that are left.
#
# If the stages differ, build schedules pass by pass: of all passes that could come next, take one, at random. Play a thousand
# such schedules, and keep the shortest.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Most random schedules wait where they need not. Give chance less room: of all passes that could come next, find the one
# that would *end* first. On its stage, choose among the passes that can *begin* before that end. The best schedule is still
# among those that you can reach. Use `random.Random(0)`, so that you get the same schedule every time.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "18-zero-bubble", "locked": false, "schema_version": 3, "solution": true, "task": false}
def zero_bubble(
    forward: list[float],
    input_grad: list[float],
    weight_grad: list[float],
    n_microbatches: int,
    memory: int,
) -> list[list[tuple[str, int]]]:
    """For each stage what it runs, in order: ("F", i) forward, ("I", i) and ("W", i) the halves of backward."""
    ### BEGIN SOLUTION
    n_stages, times = len(forward), {"F": forward, "I": input_grad, "W": weight_grad}

    def put_off(stage: int) -> list[tuple[str, int]]:
        """ZB-H1: 1F1B, where stage i runs each weight gradient i micro-batches late."""
        order = [("F", i) for i in range(min(n_microbatches, n_stages - 1 - stage))]
        for i in range(n_microbatches):
            ahead = i + n_stages - 1 - stage
            order += [("F", ahead)] if ahead < n_microbatches else []
            order += [("I", i)] + ([("W", i - stage)] if i >= stage else [])
        return order + [("W", i) for i in range(max(0, n_microbatches - stage), n_microbatches)]

    def by_chance(rng: random.Random) -> tuple[float, list[list[tuple[str, int]]]]:
        """A schedule in which no stage waits longer than it takes to run something else first."""
        ends: dict[tuple[str, int, int], float] = {}
        orders: list[list[tuple[str, int]]] = [[] for _ in forward]
        count = [dict.fromkeys("FIW", 0) for _ in forward]
        free = [0.0] * n_stages
        for _ in range(3 * n_stages * n_microbatches):
            choices = []
            for stage, n in enumerate(count):
                needs = {
                    "F": [("F", stage - 1, n["F"])] if stage else [],
                    "I": [("F", stage, n["I"])]
                    + ([("I", stage + 1, n["I"])] if stage < n_stages - 1 else []),
                    "W": [("I", stage, n["W"])],
                }
                for kind, wanted in needs.items():
                    is_full = kind == "F" and n["F"] - n["W"] == memory
                    if (
                        n[kind] < n_microbatches
                        and not is_full
                        and all(one in ends for one in wanted)
                    ):
                        begin = max([free[stage], *(ends[one] for one in wanted)])
                        choices.append((begin + times[kind][stage], stage, begin, kind))
            first_end, stage, _, _ = min(choices)
            end, _, _, kind = rng.choice([c for c in choices if c[1] == stage and c[2] < first_end])
            i = count[stage][kind]
            ends[kind, stage, i] = free[stage] = end
            orders[stage].append((kind, i))
            count[stage][kind] += 1
        return max(free), orders

    if len({*forward, *input_grad, *weight_grad}) == 1:
        return [put_off(stage) for stage in range(n_stages)]
    rng = random.Random(0)
    return min((by_chance(rng) for _ in range(1500)), key=lambda found: found[0])[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-zero-bubble-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("18-zero-bubble", zero_bubble)

# %% [markdown]
# The same work as 1F1B, with the weight gradients (dark) in the gaps:

# %% tags=["figure"]
labkit.figures.pipeline_chart(run_split(zero_bubble, uniform(4, 8)), "zero_bubble")

# %%
if written(zero_bubble):
    guesses.settle("least waiting of a stage", run_split(zero_bubble, uniform(4, 8)).idle[0])
    orders = zero_bubble(UNEVEN.forward, UNEVEN.input_grad, UNEVEN.weight_grad, 4, 3)
    actions = [[Action(kind, stage, i) for kind, i in order] for stage, order in enumerate(orders)]
    yours = run_schedule(actions, UNEVEN.costs, memory_cap=UNEVEN.memory)
    print(
        f"three stages that differ: your step takes {yours.makespan:g} units, the best {UNEVEN.best:g}"
    )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 3 units, a third of what 1F1B waits. The last stage cannot begin before an activation has passed the three stages before it,
# and this one bubble of $p-1$ passes cannot be filled: there is nothing to run yet. We looked at all schedules to be sure.
#
# </details>
#
# So why does the paper say *zero*? If every stage may hold $2p-1$ micro-batches (ZB-H2), no stage waits in the middle any more: stage
# $i$ waits for $i$ passes at the beginning of the step, and for $p-1-i$ at its end. Then the next step can begin on stage 0
# while the last stages still finish this one, if the optimizer of one stage does not wait for those of the others.
#
# **In practice:** `ScheduleZBVZeroBubble`, `ScheduleInterleavedZeroBubble` and `ScheduleDualPipeV` of
# `torch.distributed.pipelining` split the backward pass. DeepSeek-V3 was trained with DualPipe, which also hides the messages of
# its experts in it.

# %% [markdown]
# ## What you measured
#
# The same model on four devices, by your own functions. The batch is one piece, then 32 micro-batches; a forward pass through
# a stage takes 1 unit of time for a micro-batch, a backward pass 2, and messages are free. One device alone takes 384 units.

# %%
alone = 32 * 4 * 3


def played(order):
    """A schedule of yours on a clock, with four stages and 32 micro-batches."""
    return run_of(order, Pipe(4, 32))


print(f"{'four devices':24}{'step':>10}{'speed-up':>10}{'idle':>8}{'kept by stage 0':>24}")
if written(idle_shares, speedup):
    passes = ([32.0] * 4, [64.0] * 4, [0.0] * 3)
    times, idle = speedup(*passes), sum(idle_shares(*passes)) / 4
    print(f"{'one batch':24}{alone / times:10.1f}{times:10.2f}{idle:8.1%}{'the whole batch':>24}")
for name, order in {"GPipe": gpipe, "1F1B": one_f_one_b}.items():
    if written(order):
        run = played(order)
        kept = f"{run.peak_live[0]} of 32"
        print(
            f"{name:24}{run.makespan:10.1f}{alone / run.makespan:10.2f}{run.bubble:8.1%}{kept:>24}"
        )
if written(interleaved):
    run = run_looped(interleaved, Looped(4, 2, 32, forward=0.5, backward=1.0))
    kept = f"{run.peak_live[0] / 2:g} of 32"
    times = alone / run.makespan
    print(
        f"{'interleaved, 2 chunks':24}{run.makespan:10.1f}{times:10.2f}{run.bubble:8.1%}{kept:>24}"
    )
if written(zero_bubble):
    run = run_split(zero_bubble, uniform(4, 32))
    kept, times = f"{run.peak_live[0]} of 32", alone / run.makespan
    print(f"{'zero bubble':24}{run.makespan:10.1f}{times:10.2f}{run.bubble:8.1%}{kept:>24}")

# %% [markdown]
# | feature | speed | memory | where it ends |
# |---|---|---|---|
# | naive model parallelism | one device's, minus the messages | weights divided by $p$ | when you want to train and not only to fit |
# | micro-batches, GPipe | idle $(p-1)/(m+p-1)$ of the step | activations of the whole batch | $m$ ends where memory is full, or micro-batches become too small |
# | 1F1B | as GPipe | activations of $p - i$ micro-batches on stage $i$ | the first stage needs most |
# | interleaved, $v$ chunks | idle $(p-1)/(vm+p-1)$ | a little more than 1F1B | messages times $(vp-1)/(p-1)$ |
# | zero bubble (optional) | most of what is left | as 1F1B | the gradients of weights have to wait, and the optimizer with them |
#
# Micro-batches buy time, the schedule buys memory, and splitting the backward pass in two buys what is left.
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("18", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "18",
    "1F1B, 4 stages, 32 micro-batches",
    speed=lambda: f"{alone / played(one_f_one_b).makespan:.2f} x one device",
    memory=lambda: (
        f"{played(one_f_one_b).peak_live[0]} micro-batches kept by stage 0, with GPipe {played(gpipe).peak_live[0]}"
    ),
)

# %% [markdown]
# ## Open questions
#
# Two questions, 2 + 3 points. A person reads your answers, so no check responds at once, and `progress` does not count
# them. A few sentences each; numbers count more than words.
#
# **A.** (2 points, read by a person) A colleague trains with GPipe on 8 stages and 16 micro-batches, and has memory for no more
# of them. "I switch to 1F1B, its bubble is smaller", they say. What happens to the idle time if they change nothing else? What
# should they change, and what do they get?

# %% [markdown] nbgrader={"grade": true, "grade_id": "18-open-smaller-bubble", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Nothing else changed, the idle time stays as it is: 7/23 = 30 % of the step with both. But stage 0 keeps 8 micro-batches now and
# not 16, however many there are. So they can take more and smaller shares of a larger batch: with 64 micro-batches of the same
# size 7/71 = 10 % are idle, and stage 0 still keeps 8. (If the batch must not grow, the memory that is free lets them recompute
# less, or they cut the batch finer, as long as the GPU stays busy.)
#
# Marks: 1/2 for "the same", with the share. 1/2 for 8 against 16. 1 for more micro-batches and what that makes of the share.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points, read by a person) 16 GPUs in two nodes of 8; within a node a GPU sends 200 GB/s, and 25 GB/s leave a node.
# The model has 13 billion parameters in bfloat16, 40 layers and a width of 5120. A step has 64 micro-batches of 4096 tokens. You
# can cut the model into 2 stages (one on each node), or average gradients between the nodes as in data parallelism. How many
# bytes leave a node in a step with each, and how long do they take? What else decides?

# %% [markdown] nbgrader={"grade": true, "grade_id": "18-open-between-nodes", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Pipeline: an activation has 4096 x 5120 x 2 B = 42 MB. 64 of them go out, and 64 gradients come back: 2.7 GB leave each node, which
# takes 0.11 s, and nearly all of it hides behind the passes of other micro-batches. Data parallelism: an all-reduce among 2 nodes sends
# 2 x 1/2 x 26 GB = 26 GB out of each node: 1.04 s once a step, which can be hidden behind the last backward pass at most.
# So the pipeline sends a tenth. It pays with a bubble of 1/65 = 1.5 %, and needs stages of equal cost (embedding and logits!).
# Data parallelism has no bubble, but each node has to hold the whole model, and its half of the batch is 32 micro-batches. With fewer
# or shorter micro-batches the pipeline's bytes shrink and its bubble grows.
#
# Marks: 1 for the pipeline's bytes and time, 1 for the all-reduce's. 1 for two of: bubble, balance, memory, what can be hidden.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Yanping Huang and others, *GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism* (NeurIPS 2019).
# - Deepak Narayanan and others, *PipeDream: Generalized Pipeline Parallelism for DNN Training* (SOSP 2019), where 1F1B comes from.
# - Deepak Narayanan and others, *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM* (SC 2021):
#   1F1B with a flush, and interleaved stages.
# - Penghui Qi and others, *Zero Bubble Pipeline Parallelism* (ICLR 2024).
# - PyTorch's documentation of `torch.distributed.pipelining`.
#
# **Sources.** The texts above. `device_map`: the documentation of `transformers` and `accelerate`. Tied layers and
# `train_batch`: DeepSpeed's documentation of pipeline parallelism.
