# %% [markdown]
# # Lab 18: Pipelines
#
# A model that is too large for one device is cut into four stages, one for each of four devices. One batch goes through
# the stages forward and back. A clock gives a speed-up of 1.00 over one device, and each device is idle for 75 % of the
# time. **Four devices, and not a second saved: what are they waiting for, and how do you get them to work at the same
# time?**
#
# At the end, the same four devices will be idle for less than 9 % of the time. And of two schedules that are equally
# fast, one will need an eighth of the other's memory for activations on the first device. You will work out who waits
# for how long, cut the batch into micro-batches, and write the schedules that keep all stages busy (GPipe, 1F1B,
# interleaved). You will also train a real model on three stages that send and receive.
#
# [[time]]
#
# You need to know what ranks, `send`, `isend` and `recv` are (lab 14), but nothing that you wrote there.

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
# Here is the problem, measured on simulated devices with a virtual clock. A stage's forward pass takes 1 second, its
# backward pass 2 seconds, and messages take no time at all. With more devices the model has more stages, so it takes
# longer on one device:

# %%
for n_stages in (1, 2, 4, 8):
    step = naive_step(n_stages)
    idle = 1 - sum(step.busy_s) / (n_stages * step.step_s)
    print(
        f"devices: {n_stages}   one device alone {step.alone_s:4.0f} s   step {step.step_s:4.0f} s   "
        f"speed-up {step.alone_s / step.step_s:.2f}   idle {idle:.1%}"
    )

# %% [markdown]
# ## One batch keeps one device busy
#
# Each rank holds a **stage**: a few consecutive layers. Stage $i$ receives the activation of stage $i-1$, computes its
# forward pass, and sends its own activation to stage $i+1$. In the backward pass the gradients travel the other way.
# Stage 1 cannot begin before stage 0 has finished, and stage 0 cannot continue before the gradient has come back. This
# is **naive model parallelism**: it makes room for a larger model, but at each moment only one device works.
#
# On real devices the messages take time as well. In this section, a device can do nothing else while it sends or
# receives. It is not **idle** then: a device is idle while it neither computes nor communicates.

# %% [markdown]
# **Predict:** two devices with equal stages: 5 ms for a forward pass, 10 ms for a backward pass, 3 ms for a message.
# For what share of a step (between 0 and 1) is each of them idle?

# %% nbgrader={"grade": false, "grade_id": "18-predict-two-idle", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("idle share of two devices", None)

# %% [markdown]
# [[exercise 18-naive-idle]]
#
# One batch goes through $p$ stages and back. Stage $i$ takes `forward_ms[i]` and `backward_ms[i]`. A message between
# stages $i$ and $i+1$ takes `transfer_ms[i]`, in either direction, and both stages are busy with it all that time. All
# times are in milliseconds. There may be a single stage, and then `transfer_ms` is empty.
#
# - `idle_shares(...)` returns a list: for each stage, the share of the step (0 to 1) in which it neither computes nor
#   sends nor receives. The step begins with the first forward pass and ends with the last backward pass, on stage 0.
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
# The step takes the sum of all forward passes, all backward passes, and *two* messages over each link. A stage in the
# middle has two links, the first and the last stage have one, and a single stage has none.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With `links = [0, *transfer_ms, 0]`, stage $i$ sends and receives for `2 * (links[i] + links[i + 1])` ms. Add the time
# for which it computes, divide by the time of the step, and subtract the result from 1. A single device sends nothing.
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
# 0.42, not 0.5. The step takes 10 + 20 + 6 = 36 ms. Each device computes for 15 ms and communicates for 6 ms, so it is
# idle for the other 15 ms. The messages make the *share* of idle time smaller, although they make the step longer: a
# share alone says nothing about speed.
#
# </details>
#
# With $p$ equal stages and messages that take no time (free messages), each device is idle for $(p-1)/p$ of the time,
# and the step is not faster than on one device. All that naive model parallelism buys is memory.
#
# **In practice** this is what `device_map="auto"` of `transformers` does: it spreads the layers over the GPUs of a
# machine, and they work one after the other. That is fine for trying out a model that fits on no single GPU, and a
# waste for training.

# %% [markdown]
# ## Cut the batch: GPipe
#
# The stages wait because there is only one thing to work on. So cut the batch into $m$ **micro-batches**, as for
# gradient accumulation (lab 04): while stage 1 works on micro-batch 0, stage 0 can already take micro-batch 1. The
# gradients of all micro-batches add up to that of the whole batch, and the optimizer steps once, after the last
# micro-batch.
#
# **GPipe** is the simplest order of work: every stage first runs all forward passes, then all backward passes. This is
# what two stages and three micro-batches look like. A forward pass takes one unit of time and a backward pass two, here
# and wherever nothing else is said:

# %% tags=["figure"]
labkit.figures.pipeline_sketch()

# %% [markdown]
# The grey time is the **bubble**: a stage has nothing to do then. With $p$ equal stages, every stage waits for as long
# as $p-1$ forward passes and $p-1$ backward passes take, however many micro-batches there are. People give the bubble
# as a share, but of two different things:
#
# $$\frac{p-1}{m+p-1} \text{ of the whole step,} \qquad \frac{p-1}{m} \text{ of the ideal step, the one without waiting}$$

# %% [markdown]
# **Predict:** 8 equal stages. Into how many micro-batches do you have to cut the batch at least, so that every stage is
# idle for at most 10 % of the step?

# %% nbgrader={"grade": false, "grade_id": "18-predict-micro-batches", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("micro-batches for a bubble of 10 %", None)

# %% [markdown]
# [[exercise 18-gpipe]]
#
# Write `gpipe(stage, n_stages, n_microbatches)`. It returns the order in which one stage works: a list of pairs,
# `("F", 3)` for the forward pass of micro-batch 3 and `("B", 3)` for its backward pass. Stages and micro-batches are
# numbered from 0.
#
# The check calls it for every stage and plays the lists. Each stage goes through its own list from the first entry to
# the last. An entry begins as soon as the stage is free and what it needs is there:
#
# | entry | needs |
# |---|---|
# | `("F", i)` | the activation of micro-batch $i$ from the stage before, unless this is the first stage |
# | `("B", i)` | its own `("F", i)`, and the gradient of micro-batch $i$ from the next stage, unless this is the last one |
#
# Your order passes if every stage runs all forward passes first, and no order that does so takes less time. Stages may
# take different times, and messages may take time. From here on, sending and receiving do not keep a stage busy: it can
# compute while its messages travel.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Does the list depend on the stage?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A stage can only work on what the stage before it has sent. If all stages take the micro-batches in the same order, no
# stage waits longer than necessary. The check takes care of the waiting: your list only says what comes after what.
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
# Here is your schedule on a clock. Move the slider of the micro-batches: with 4 stages, the bubble (grey) stays at 36
# units, those of all stages added up, while the step grows (the time axis shrinks with it). The strips under the bars
# show how many micro-batches each stage **holds**: it keeps a micro-batch's activations from the beginning of its
# forward pass to the end of its backward pass.

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
# 63 micro-batches, from $7/(m+7) \le 0.1$. As a rule of thumb, take at least $4p$ micro-batches: then less than 20 % is
# idle.
#
# </details>
#
# Why not cut the batch into thousands? A micro-batch has at least one sample, and small ones use a GPU badly (lab 04).
# And if you make the *batch* larger instead, it soon exceeds the size up to which larger batches still help.
#
# Look at the last column. With GPipe a stage holds all micro-batches when its backward passes begin, so it keeps the
# activations of the whole batch, however you cut it. That is why the GPipe paper keeps only what goes into each stage,
# and computes all other activations again (lab 05). Can a better order help?

# %% [markdown]
# ## Play a schedule yourself
#
# Before you read how others do it, build a schedule by hand. A click on "forward 0" adds the next forward pass of stage
# 0, which begins as soon as it can. If something that a pass needs has not been played, the pass is refused, and you
# are told what is missing. Here are five moves, the last of which was refused:

# %% tags=["figure"]
labkit.figures.schedule_strip([("F", 0), ("F", 0), ("F", 1), ("F", 2), ("B", 0)])

# %% [markdown]
# With three stages and four micro-batches, GPipe takes 18 units of time, and every stage holds 4 micro-batches. Can you
# do it in 18 units if stage 0 holds at most 3 micro-batches? And if it holds at most 2? (On a printed page there is
# nothing to click.)

# %% tags=["figure"]
labkit.figures.schedule_game(n_stages=3, n_microbatches=4)

# %% [markdown]
# <details><summary>What is possible</summary>
#
# With at most 3 it works: 18 units, in which stages 0, 1 and 2 hold 3, 2 and 1 micro-batches. With at most 2, stage 0
# has to wait for a gradient before it may begin its third forward pass, and no order takes less than 21 units. With 1
# there is only one micro-batch in the whole pipeline at a time: 36 units, as in naive model parallelism.
#
# </details>

# %% [markdown]
# ## The schedule buys memory: 1F1B
#
# A micro-batch takes up memory from its forward pass to its backward pass. In GPipe, micro-batch 0 has to wait until
# the last micro-batch has gone forward. But the last stage could run the backward pass of micro-batch 0 at once, then
# the stage before it could, and so on. Each backward pass frees memory for one more forward pass. So after a
# **warm-up** of some forward passes, every stage alternates: one forward, one backward. This is **1F1B**. When the
# forward passes run out, a stage still has as many backward passes to run as its warm-up had forward passes: the
# **cool-down**.
#
# How long is the warm-up? Follow one micro-batch forward and back, and see how long each stage has to wait for its
# gradient:

# %% tags=["figure"]
labkit.figures.pipeline_sketch(4, 1)

# %% [markdown]
# **Predict:** 4 equal stages and 32 micro-batches; as before, a forward pass takes 1 unit of time, a backward pass 2.
# GPipe takes 105 units, and each stage computes for 96 of them. How many units does 1F1B take?

# %% nbgrader={"grade": false, "grade_id": "18-predict-1f1b", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("units of time of 1F1B", None)

# %% [markdown]
# [[exercise 18-one-f-one-b]]
#
# Write `one_f_one_b(stage, n_stages, n_microbatches)`. It returns one stage's list, as `gpipe` does. The entries mean
# and need the same as there; stages may again take different times, and messages may take time. With $p$ stages and $m$
# micro-batches, two things are checked:
#
# - **Memory:** at no time does stage $i$ hold more than $\min(m, p-i)$ micro-batches.
# - **Time:** the step takes no longer than with PyTorch's own 1F1B.
#
# There may be fewer micro-batches than stages. PyTorch refuses that, so the check takes its order for $p$ micro-batches
# and leaves out those that do not exist.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How long does stage 0 have to wait for its first gradient? What can it do in the meantime? And the last stage?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Micro-batch 0 has to go forward through $p-1-i$ more stages before its gradient can start on its way back to stage
# $i$. The warm-up of stage $i$ has that many forward passes: $p-1$ on the first stage, none on the last. Then come
# pairs of one forward and one backward pass. After how many pairs do the forward passes run out? And what is left to
# run then?
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `warm_up = min(n_microbatches, n_stages - 1 - stage)` forward passes; then, for each `i` of the
# `n_microbatches - warm_up` others, `("F", warm_up + i), ("B", i)`; then the last `warm_up` backward passes.
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
# 105, exactly as many as GPipe. The last stage computes for 96 units. It cannot begin before micro-batch 0 has passed
# the three stages before it (3 units), and after its last backward pass a gradient has to go back through these three
# (6 units). No order of whole passes changes that. It is a common misunderstanding that 1F1B has a smaller bubble.
#
# </details>
#
# So what is it for? Look at the strips under the bars, and then at both schedules in one chart:

# %% tags=["figure"]
labkit.figures.pipeline_player(one_f_one_b)

# %% tags=["figure"]
orders = {"GPipe": gpipe, "1F1B": one_f_one_b}
both = {name: run_of(order, Pipe(4, 32)) for name, order in orders.items() if written(order)}
labkit.figures.pipeline_memory(both) if both else None

# %% [markdown]
# GPipe's stages hold 32 micro-batches. Those of 1F1B hold 4, 3, 2 and 1, and these numbers do not grow with $m$. That
# is how 1F1B makes the bubble smaller after all: with GPipe you have to stop adding micro-batches when memory is full,
# but with 1F1B you can go on.
#
# **Predict:** until now, the messages in the figures and tables took no time. With 4 stages, 32 micro-batches and
# messages of half a unit each, how many units longer does a step of 1F1B take? A stage may compute while its messages
# travel. (GPipe takes 3 units longer, those of six messages: three on the way forward, and three on the way back.)

# %% nbgrader={"grade": false, "grade_id": "18-predict-slow-messages", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("units that messages add to 1F1B", None)

# %%
if written(gpipe, one_f_one_b):
    ahead = running_ahead(one_f_one_b)
    print("a message takes   GPipe   1F1B   1F1B with twice the warm-up  and it keeps, by stage")
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
# 26 units: the time of 52 messages. Stage 0 holds at most 4 micro-batches, so it starts the fifth only when the
# gradient of the first is back. Until then six messages have travelled one after the other: three forward and three
# back. So every group of 4 micro-batches waits for 6 messages, which makes 48 for the 8 groups, and the last group
# waits for 4 more while the pipeline empties. In GPipe, a stage has other micro-batches to work on while messages
# travel.
#
# </details>
#
# The cure is to run ahead: with *twice* the warm-up, a stage has other micro-batches to work on here too, and in this
# table the step is as short as GPipe's again. Stage 0 now holds 7 micro-batches and not 4, but the number still does
# not grow with $m$.
#
# With four stages, plain 1F1B needs four times as much memory for activations on the first stage as on the last. In
# practice the output layer and its logits, which are on the last stage, make up for some of it, or the stages get
# unequal numbers of layers.
#
# **In practice:** `torch.distributed.pipelining` has both schedules, `ScheduleGPipe(stage, n_microbatches)` and
# `Schedule1F1B(stage, n_microbatches)`. In Megatron-LM, 1F1B is what `--pipeline-model-parallel-size 4` runs.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Send and receive: a real training step
#
# So far an order was only a list. Now the stages really compute and send: one call of your function is a training step
# of one stage, and all stages run it at the same time. The model is a small language model. Stage 0 turns token ids
# into vectors, the last stage turns vectors into logits, and both use the same matrix, the **tied embedding**. Each of
# the two has a copy of it.
#
# Three things can go wrong that no schedule shows:
#
# - **The scale.** Texts differ in length, so the micro-batches have different numbers of tokens. The gradient has to be
#   that of the mean over *all* tokens of the batch (lab 04).
# - **The tied embedding.** On its own, each copy gets only the gradient of its own use. Both need the sum of the two,
#   or they drift apart, and nothing crashes.
# - **Deadlock.** `comm.send` returns only when the receiver has asked for the message. In 1F1B, stage 1 sends an
#   activation down to stage 2 while stage 2 sends a gradient up to stage 1. If each waits for the other to receive,
#   both wait forever.

# %% [markdown]
# [[exercise 18-pipeline-step]]
#
# Write `pipeline_step(comm, stage, order, shapes, tokens, targets)`. Rank $r$ runs stage $r$.
#
# - `stage(x)` is the forward pass. Rank 0 gives it token ids, every other rank the activation that it has received. On
#   the last rank it returns logits of shape `(rows, length, vocab)`, on all others an activation to send on.
# - `order` lists this rank's passes: `("F", 3)` is the forward pass of micro-batch 3, `("B", 3)` its backward pass. Run
#   them in this order. It may be GPipe's, 1F1B's, or another one.
# - `shapes[k]` is the shape `(rows, length, width)` of micro-batch `k`'s activation between two stages, and of its
#   gradient. Both are float32. Micro-batches may have different shapes.
# - `tokens[k]` are the token ids of micro-batch `k`; `tokens` is None on every rank but the first. `targets[k]` are the
#   ids that the logits should predict; `targets` is None on every rank but the last. A token with target -100 does not
#   count.
# - The loss is the mean of the cross-entropy over all tokens that count, of all micro-batches together. The last rank
#   returns it as a number or as a tensor without a graph; what the others return does not matter.
# - When the step begins, every `.grad` is None. Afterwards each parameter has its gradient in `.grad`, and
#   `stage.tied_weight.grad` is the same on the first and the last rank. (On the ranks between them, `stage.tied_weight`
#   is None. If there is only one rank, it has one copy and uses it twice, and autograd adds up the two gradients.)
#
# The check looks at losses, and at gradients and weights after steps of gradient descent. It counts the bytes sent:
# each activation and each gradient crosses its link once, and the embedding's gradient is exchanged once a step. And it
# looks at what a stage keeps: after the backward pass of a micro-batch, nothing of it.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A stage has to keep two tensors of each micro-batch between F and B: what went in (to read its gradient) and what came
# out (to call backward on it). Autograd does not know where a received tensor comes from, so tell it that you want the
# gradient.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# F: receive, `stage(x)`, send the output, keep both in a dictionary. B: take them out of the dictionary, receive the
# gradient of the output, `output.backward(gradient)`, send `x.grad` (rank 0 sends none). Start every send with
# `comm.isend`, and `wait()` for all of them at the end of the step. On the last rank, keep a loss in place of the
# output: the *sum* over the tokens of the micro-batch, divided by the number of tokens that count in the whole batch.
# It needs no gradient from elsewhere.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `n_tokens = sum(int((t != -100).sum()) for t in targets)` and
# `F.cross_entropy(logits.flatten(0, 1), targets[k].flatten(), reduction="sum") / n_tokens`. At the end, if there is
# more than one rank, `group = comm.new_group([0, comm.world_size - 1])` (all ranks call it; it returns None on those in
# between), and on the two ends `group.all_reduce(stage.tied_weight.grad)`.
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
# Here your function runs five steps of gradient descent, with eight micro-batches of 30 to 63 tokens: first in one
# process, then over three stages in three real processes, in two orders.

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
# The losses are those of one process, and the two copies of the embedding are equal to the bit. Both orders send the
# same number of bytes: the middle stage sends activations down and gradients up; the other two send in one direction
# only, plus the gradient of the embedding. Compare that with data parallelism: what crosses a link of a pipeline is the
# activation of a few tokens, not the gradient of all parameters. That is why pipelines run *between* nodes, where links
# are slow.
#
# **In practice** this function is `schedule.step(tokens)` of `torch.distributed.pipelining`
# (`PipelineStage(module, rank, n_stages, device)` around each stage), or `engine.train_batch(...)` of DeepSpeed's
# `PipelineModule`. By default both take the mean over micro-batches. In PyTorch, give the schedule `scale_grads=False`
# and a loss function that divides by all tokens. A tied embedding is `TiedLayerSpec` in DeepSpeed; in PyTorch you add
# up its gradients yourself, as here.

# %% [markdown]
# ## Smaller stages, smaller bubble: interleaved
#
# A rank waits for as long as $p-1$ forward and $p-1$ backward passes take. More micro-batches do not change that, but
# *shorter stages* do. So cut the model into $v \cdot p$ stages instead of $p$, and deal them out in turn: rank 0 gets
# stages 0, $p$, $2p$, ..., rank 1 gets stages 1, $p+1$, and so on. Each rank now has $v$ **chunks** of the model, and a
# pass through one chunk takes $1/v$ of the time. With 2 ranks and 2 chunks on each, a micro-batch travels forward like
# this:
#
# | stage | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | rank | 0 | 1 | 0 | 1 |
# | chunk on this rank | 0 | 0 | 1 | 1 |
#
# From stage 1 to stage 2 it wraps around from the last rank to the first. The backward pass goes the same way back. A
# rank still waits for $p-1$ passes each way, but for passes through a *chunk*, so it waits for $1/v$ of the time. The
# bubble is
#
# $$\frac{p-1}{v m+p-1} \text{ of the whole step.}$$
#
# This is how two micro-batches travel, forward and back; all forward passes come first here. A white line marks the
# passes through a rank's second chunk:

# %% tags=["figure"]
labkit.figures.pipeline_sketch(2, 2, n_chunks=2)

# %% [markdown]
# The chunks have to be **interleaved**. A micro-batch visits all $p$ ranks before it is back on rank 0, so it can begin
# chunk 1 there at the earliest $p$ passes after it began chunk 0. What does rank 0 do in this time? It takes $p$
# micro-batches through chunk 0, then the same $p$ through chunk 1, and so on through all chunks. Then come the next $p$
# micro-batches. That is why $m$ has to be a multiple of $p$.

# %% [markdown]
# **Predict:** 2 ranks with 4 chunks on each, instead of one chunk on each. How many times as many messages are sent in
# a step?

# %% nbgrader={"grade": false, "grade_id": "18-predict-messages", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("messages of 4 chunks on 2 ranks", None, unit="times")

# %% [markdown]
# [[exercise 18-interleaved]]
#
# Write `interleaved(rank, n_ranks, n_chunks, n_microbatches)`. It returns what one rank runs, in order, now as triples:
# `("F", chunk, i)` takes micro-batch $i$ forward through this rank's chunk number `chunk`, and `("B", chunk, i)` takes
# it back. With $p$ ranks, $v$ chunks on each and $m$ micro-batches, chunk $c$ of rank $r$ is stage $c \cdot p + r$.
# Both numbers in a triple count from 0.
#
# $m$ is a multiple of $p$, and all stages take equally long. There may be a single rank, or a single chunk on each. Two
# things are checked:
#
# - **Time:** if messages are free, the bubble is no larger than the one above. If they take time, the step takes no
#   longer than with PyTorch's own interleaved schedule.
# - **Memory:** a rank keeps the activations of each forward pass through a chunk until the backward pass of the same
#   micro-batch through the same chunk has ended. At no time does rank $r$ keep those of more than
#   $\min(v m,\; 2(p-r-1) + (v-1)p + 1)$ forward passes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Number a rank's forward passes $k = 0, 1, \dots, vm-1$. Through which chunk does the $k$-th one go, and which
# micro-batch is it? What about the $k$-th backward pass? When you know that, all that is left is 1F1B with another
# warm-up.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The chunk changes every $p$ passes, and after $v p$ passes the next group of $p$ micro-batches begins. Backward, the
# groups are the same and the chunks run from the last to the first.
#
# The last rank can run its first backward pass when micro-batch 0 has gone through all its chunks: after $(v-1)p$
# warm-up passes and the forward pass of the first pair. Each rank has two more warm-up passes than the next one: one
# because micro-batch 0 has one rank more to visit, and one in reserve, which the rank runs while messages travel.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# The $k$-th forward pass takes micro-batch `k // (p * v) * p + k % p` through chunk `k % (p * v) // p`; the $k$-th
# backward pass takes the same micro-batch through chunk `v - 1` minus that. The warm-up has
# `min(v * m, 2 * (p - rank - 1) + (v - 1) * p)` passes.
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
# Bars with a white line are passes through a rank's second (fourth, ...) chunk. Plain 1F1B takes 33 units for the same
# step. Change the number of chunks, and watch the bubble, and the memory under the bars. With two chunks, a micro-batch
# whose activations are kept in one of them counts as half a micro-batch, so that the numbers can be compared.

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
# 7 times. $v p$ stages have $v p - 1$ borders, and every border lies between two ranks, so the number of messages grows
# by a factor of $(vp-1)/(p-1)$. With many ranks this is nearly $v$; with two it is $2v-1$.
#
# </details>
#
# So interleaving buys a smaller bubble, and pays with messages and with some memory: plain 1F1B keeps only 4
# micro-batches on rank 0. (In the row of one chunk it is 7, because with one chunk your schedule is the 1F1B that runs
# ahead.) Each message is as large as before, because the size of an activation does not depend on where you cut.
#
# In the warm-up, each rank runs two passes more than the next one. What is the second one, the reserve, good for? Here
# is your schedule with 4 ranks, 2 chunks and 32 micro-batches, with and without it. In this table, a pass through a
# *chunk* takes 1 unit forward and 2 backward, and what is kept is counted in passes through a chunk:

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
# While messages are free, the reserve only wastes memory. As soon as they take time, it hides most of them.
#
# **In practice:** `ScheduleInterleaved1F1B` of `torch.distributed.pipelining` takes a list of stages per rank. In
# Megatron-LM it is `--num-layers-per-virtual-pipeline-stage`.

# %% [markdown]
# ## Split the backward pass: zero bubble
#
# This section is optional, and its exercise is a puzzle. A backward pass computes two things. For a linear layer
# $y = xW$:
#
# $$\underbrace{\frac{\partial L}{\partial x} = \frac{\partial L}{\partial y}\, W^\top}_{\text{I: the input gradient}} \qquad\qquad
# \underbrace{\frac{\partial L}{\partial W} = x^\top \frac{\partial L}{\partial y}}_{\text{W: the weight gradient}}$$
#
# The stage before waits for the input gradient only. Nothing waits for the weight gradient except the optimizer, at the
# end of the step. So a stage can run W where it would otherwise be idle. It pays with memory, because $x$ and
# $\partial L / \partial y$ are needed until then: a stage now holds a micro-batch from the beginning of its F to the
# end of its W.

# %% [markdown]
# **Predict:** 4 stages and 8 micro-batches; F, I and W take one unit each. With 1F1B each stage waits for 9 units. Now
# every stage may hold up to 4 micro-batches, as stage 0 does with 1F1B. How many units does each stage have to wait at
# least, if you put the weight gradients in the best places?

# %% nbgrader={"grade": false, "grade_id": "18-predict-least-waiting", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("least waiting of a stage", None, unit="units")

# %% [markdown]
# [[exercise 18-zero-bubble]]
#
# Write `zero_bubble(forward, input_grad, weight_grad, n_microbatches, memory)`. The first three are lists: how long
# each pass takes, by stage. It returns the orders of *all* stages, a list of lists. Entries are `("F", i)`, `("I", i)`
# and `("W", i)`:
#
# | entry | needs |
# |---|---|
# | `("F", i)` | the activation of micro-batch $i$ from the stage before, unless this is the first stage |
# | `("I", i)` | its own `("F", i)`, and the next stage's `("I", i)`, unless this is the last stage |
# | `("W", i)` | its own `("I", i)` |
#
# Messages are free. No stage may hold more than `memory` micro-batches at once, each from the beginning of its F to the
# end of its W. The waiting time of all stages together may be at most 5 % longer than in the best schedule. There are
# two kinds of cases:
#
# - All passes take equally long, there are at least as many micro-batches as stages, and `memory` is the number of
#   stages. The best schedule is called ZB-H1 in the paper (see the end of the lab).
# - Two or three stages whose passes take different times, three or four micro-batches, and `memory` is again the number
#   of stages. The best schedule was found by trying all.
#
# All calls of the check together may take 60 seconds. Inside your function you may use
# `run_schedule(orders, costs, memory_cap=memory).makespan`, the time of a step. The second cell below the check shows
# how to write the orders for it; `costs` is `labkit.pipeline.Costs(forward, input_grad, weight_grad)`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Begin with your 1F1B and replace each B by I and W. Where does a stage wait for an input gradient of the next stage?
# What if the next stage had put off a weight gradient?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# If all passes take equally long: the warm-up is that of 1F1B, and stage $i$ runs each weight gradient $i$
# micro-batches late, so right after `("I", k)` comes `("W", k - i)`. All stages then hold $p$ micro-batches. At the
# end, each stage runs the weight gradients that are left.
#
# If the stages differ, build schedules pass by pass: of all passes that could come next on any stage, take one at
# random. Build a thousand schedules like that, and keep the shortest. That is a start, and not yet enough for every
# case.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Most random schedules wait where they need not. So leave less to chance: of all passes that could come next, find the
# one that would *end* first. On its stage, choose at random among the passes that can *begin* before that end. The best
# schedule is still among those that you can reach. Use `random.Random(0)`, so that you get the same schedule every
# time.
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
# 3 units, a third of the 9 with 1F1B. The last stage cannot begin before an activation has passed the three stages
# before it, and in these $p-1$ units it has nothing to run yet. So the step takes at least 3 + 24 = 27 units, and each
# stage computes for 24 of them.
#
# </details>
#
# So why does the paper say *zero*? If every stage may hold $2p-1$ micro-batches (ZB-H2), no stage waits in the middle
# any more: stage $i$ waits for $i$ passes at the beginning of the step, and for $p-1-i$ at its end. Then the next step
# can begin on stage 0 while the last stages still finish this one, provided that the optimizer of one stage does not
# wait for those of the others.
#
# **In practice:** `ScheduleZBVZeroBubble`, `ScheduleInterleavedZeroBubble` and `ScheduleDualPipeV` of
# `torch.distributed.pipelining` split the backward pass. DeepSeek-V3 was trained with DualPipe, which also runs the
# messages between its experts at the same time as other passes.

# %% [markdown]
# ## What you measured
#
# The same model on four devices, by your own functions. The first row takes the batch in one piece, the others cut it
# into 32 micro-batches. For one micro-batch, a forward pass through a stage takes 1 unit of time and a backward pass 2,
# and messages are free. One device alone takes 384 units.

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
# | feature | speed (free messages) | memory | its limit |
# |---|---|---|---|
# | naive model parallelism | that of one device | weights divided by $p$ | one device works at a time; messages make it slower still |
# | micro-batches, GPipe | idle $(p-1)/(m+p-1)$ of the step | activations of the whole batch | memory is full, or micro-batches are too small |
# | 1F1B | as GPipe | activations of $p - i$ micro-batches on stage $i$ | slow messages; the first stage needs most memory |
# | interleaved, $v$ chunks | idle $(p-1)/(vm+p-1)$ | a little more than 1F1B | $(vp-1)/(p-1)$ times as many messages |
# | zero bubble (optional) | idle $(p-1)/(3m+p-1)$ if F, I and W take equally long | activations of $p$ micro-batches on every stage | the first $p-1$ passes cannot be filled |
#
# Micro-batches buy time, the schedule buys memory, and splitting the backward pass in two buys most of the time that is
# left.
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
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) A colleague trains with GPipe on 8 stages and 16 micro-batches. There is no memory for more
# micro-batches. "I'll switch to 1F1B, because its bubble is smaller", they say. What happens to the idle time if they
# change nothing else? What should they change as well, and what do they gain by it?

# %% [markdown] nbgrader={"grade": true, "grade_id": "18-open-smaller-bubble", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# If nothing else changes, the idle time stays as it is: 7/23 = 30 % of the step with both. But stage 0 now holds 8
# micro-batches and not 16, however many there are. So they can add micro-batches of the same size: with 64 of them
# 7/71 = 10 % of the step is idle, and stage 0 still holds 8. (If the batch must not grow, they can use the free memory
# to recompute less, or cut the batch into more and smaller micro-batches, as long as these keep the GPU busy.)
#
# Marks: 1/2 for "the same", with the share. 1/2 for 8 against 16. 1 for more micro-batches and what that makes of the
# share.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) You have 16 GPUs in two nodes of 8. Within a node, each GPU can send 200 GB/s. Between the nodes,
# each node can send 25 GB/s. The model has 13 billion parameters in bfloat16, 40 layers and a width of 5120. A step
# has 64 micro-batches of 4096 tokens. The 8 GPUs of a node share the work in any case. You can cut the model into 2
# stages, one on each node. Or each node holds the whole model, and the nodes average their gradients, as in data
# parallelism. With each of the two, how many bytes leave a node in a step, and how long do they take? (An activation
# leaves a node once.) What else decides?

# %% [markdown] nbgrader={"grade": true, "grade_id": "18-open-between-nodes", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Pipeline: an activation has 4096 x 5120 x 2 B = 42 MB. 64 of them go out, and 64 gradients come back: 2.7 GB leave
# each node, which takes 0.11 s, and nearly all of it hides behind the passes of other micro-batches. Data parallelism:
# an all-reduce between 2 nodes sends 2 x 1/2 x 26 GB = 26 GB out of each node: 1.04 s once a step, which at most hides
# behind the last backward pass. So the pipeline sends a tenth. It pays with a bubble of 1/65 = 1.5 %, and needs stages
# of equal cost (embedding and logits!). Data parallelism has no bubble, but each node has to hold the whole model, and
# its half of the batch is 32 micro-batches. With fewer micro-batches the pipeline sends fewer bytes, and its bubble
# grows. With shorter ones it sends fewer bytes too.
#
# Marks: 1 for the pipeline's bytes and time, 1 for the all-reduce's. 1 for two of: bubble, balance, memory, what can be
# hidden.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Yanping Huang and others, *GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism* (NeurIPS
#   2019).
# - Deepak Narayanan and others, *PipeDream: Generalized Pipeline Parallelism for DNN Training* (SOSP 2019), where 1F1B
#   comes from.
# - Deepak Narayanan and others, *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM* (SC
#   2021): 1F1B with a flush, and interleaved stages.
# - Penghui Qi and others, *Zero Bubble Pipeline Parallelism* (ICLR 2024): ZB-H1 and ZB-H2.
# - PyTorch's documentation of `torch.distributed.pipelining`.
#
# **Sources.** The texts above. `device_map`: the documentation of `transformers` and `accelerate`. Tied layers and
# `train_batch`: DeepSpeed's documentation of pipeline parallelism. DualPipe: *DeepSeek-V3 Technical Report* (2024).
