# %% [markdown]
# # Lab 18: Pipelines
#
# A model that is too large for one device is cut into four stages, one for each of four devices. One batch goes through the
# stages forward and back. The clock says: speed-up 1.00, and each device is idle for 75 % of the time. **Four devices, and
# not a second saved: what are they waiting for, and how do you get them to work at the same time?**
#
# You will work out who waits for how long, cut the batch into micro-batches, and write the schedules that keep all stages
# busy (GPipe, 1F1B, interleaved). Then you train a real model on three stages that send and receive.
#
# [[time]]
#
# You need to know what ranks, `send` and `recv` are (lab 14), but nothing that you wrote there.

# %% nbgrader={"grade": false, "grade_id": "18-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
from collections.abc import Sequence

import labkit.figures
from labkit import Predictions, check, progress, written
from labkit.material.lab18 import naive_step

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

# %% [markdown]
# ## The schedule buys memory: 1F1B

# %% [markdown]
# ## Play a schedule yourself

# %% [markdown]
# ## Send and receive: a real training step

# %% [markdown]
# ## Smaller stages, smaller bubble: interleaved

# %% [markdown]
# ## Split the backward pass: zero bubble

# %% [markdown]
# ## What you measured
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
    "four stages, one batch",
    speed=lambda: f"{speedup([1.0] * 4, [2.0] * 4, [0.0] * 3):.2f} x one device",
    memory=lambda: (
        f"1/{len(idle_shares([1.0] * 4, [2.0] * 4, [0.0] * 3))} of the layers on each device"
    ),
)

# %% [markdown]
# ## Where to read on
#
# - Yanping Huang and others, *GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism* (NeurIPS 2019).
# - Deepak Narayanan and others, *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM* (SC 2021):
#   1F1B, and interleaved stages.
# - Penghui Qi and others, *Zero Bubble Pipeline Parallelism* (ICLR 2024).
# - PyTorch's documentation of `torch.distributed.pipelining`.
#
# **Sources.** The texts above. `device_map`: the documentation of `transformers` and `accelerate`.
