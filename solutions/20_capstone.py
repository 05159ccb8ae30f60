# %% [markdown]
# # Lab 20: All of it together
#
# A step of training with 1.1 billion parameters and 8 texts of 2,048 tokens takes 56 GiB as everybody writes it first.
# Two changed words (`bfloat16` for the weights, `fused` for attention) bring it to 22 GiB where AdamW's states stay in
# float32 (to 18 where they follow the weights, as in `torch.optim.AdamW`), and recomputation brings the 22 to 15. The
# card in the basement has 8. **How much further can you go, and what does every step cost in time?**
#
# In this lab you work out what a run will cost before it runs, write the cheapest one that you can, find out which of
# its tricks earned what, and judge whose records are honest. There is hardly a new idea in it. Everything that you need
# is from the labs before:
#
# | from | comes | here it is |
# |---|---|---|
# | 01, 05 | what a step keeps, recomputation, logits in chunks, offloading | 20-predict; `kit.checkpoint`, `kit.chunked_loss`, `run.to_host` |
# | 02, 03 | formats, stochastic rounding, autocast | weights in 16 bits, `kit.autocast` |
# | 04 | micro-batches, noise of a gradient | how many texts a step needs, and how many at a time |
# | 06 | small states, updates inside the backward pass | `kit.AdamW8bit`, `kit.Adafactor`, `kit.Muon`, `kit.step_in_backward` |
# | 07 | the order of samples, going on after a crash | the tokens of a log, in 20-referee |
# | 08 | few trained weights | not allowed here: all weights are trained. It is a row of the feature tables |
# | 09, 10 | a clock that does not lie, the roofline | virtual hours: FLOPs and bytes, and the slower of the two |
# | 11, 12, 13 | compiled, fused and tiled kernels | `attention="fused"`, and nobody keeps scores |
# | 14, 15, 16 | rings, data parallel, sharded states | the machine with four cards |
# | 17, 18, 19 | cutting up layers, depth and texts | what you would need if one layer did not fit into a card |
#
# [[time]]

# %% nbgrader={"grade": false, "grade_id": "20-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import hashlib
from collections.abc import Callable
from itertools import combinations

import torch

import labkit.figures
from labkit import Predictions, check, progress, written
from labkit.capstone import MACHINES, ghosts, kit, standing
from labkit.exercises.lab20.config import Config, script_of
from labkit.material.lab20_bills import CHEAPER, billed
from labkit.material.lab20_flags import IN_THE_TABLE, SIZES, gains_of, measured_rows
from labkit.material.lab20_knobs import KNOBS, bill_with
from labkit.material.lab20_logs import example_logs
from labkit.material.lab20_try import my_try

guesses = Predictions("20")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# ## What a run will cost, before it runs
#
# You cannot try a step of a billion parameters on a laptop, and neither can we. So the lab's engine **bills** a script:
# it runs a step on tensors that have shapes and no data, and counts all bytes and operations. That takes two seconds.
# But you want to know what to change *before* you write the script, and for that you need a rule instead of a bill.
#
# A **run** is described by a `Config`. This is one, and its script, in which `run.model` gives the model, `run.tokens(n)`
# the next `n` texts, and `run.all_reduce` sums a tensor over all cards:

# %%
config = Config(
    width=2048, n_heads=16, vocab=8000, seq_len=512, micro_batch=1, n_micro=2, n_steps=60,
    bytes_per_number=2, recompute=False, states_on_host=True, n_cards=1, n_layers=4,
)  # fmt: skip
print(script_of(config))

# %% [markdown]
# - `micro_batch` texts of `seq_len` tokens are worked on at a time, on each of `n_cards` cards. A step has `n_micro` such
#   micro-batches, and the run has `n_steps` steps.
# - `bytes_per_number` is that of weights, activations and gradients: 4 for float32, 2 for bfloat16.
# - With `recompute`, the blocks are under `kit.checkpoint`, otherwise they are called as they are.
# - AdamW's two states are in float32 whatever the weights are in. They stay on the card and `kit.AdamW` updates the
#   weights, or with `states_on_host` they lie in the host's memory and the loop above fetches them, one weight at a
#   time.
#
# The peak is the memory at the largest moment of a step. Three moments can be the largest. Which of them is, depends on
# the run, and each has other things alive:

# %%
labkit.figures.step_moments()

# %% [markdown]
# A block of this model is `x + attention(norm(x))` and then `x + mlp(norm(x))`, without biases. For the backward pass it
# keeps 16 tensors of tokens × width, counted in tensors of that size: the input of the first norm (1), its output (1),
# queries, keys and values (3), the output of fused attention (1), the input of the second norm (1) and its output (1),
# the input of GELU (4) and its output (4). At work, during its backward pass, a block has 22: these 16, the gradient that
# comes in (1) and what it computes on the way (5).
#
# **Predict:** the run with a billion parameters, in bfloat16, with recomputation and two texts at a time, has a peak of
# 13.5 GiB. AdamW's states are 8.2 GiB of it, and a step takes 4.0 s. They are moved to the host of the basement machine
# (3.94 GB/s). How many times as long does a step take then?

# %% nbgrader={"grade": false, "grade_id": "20-predict-host", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("step with states on the host", None, unit="times")

# %%
on_card, on_host = (
    billed(CHEAPER[name]) for name in ("+ micro-batches of 2", "+ states on the host")
)
for name, one in (("on the card", on_card), ("on the host", on_host)):
    print(f"states {name}: {one.total_peak_bytes / 2**30:5.2f} GiB, {one.step_s:.2f} s a step")
guesses.settle("step with states on the host", on_host.step_s / on_card.step_s)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 2.1 times. Two states of 4 bytes a weight go to the card and back: 16 × 1.1 × 10⁹ bytes are 17.6 GB, and at 3.94 GB/s
# they take 4.5 s. The step itself takes 4.0 s, and nothing overlaps. The larger the batch, the less this hurts, because
# the transfer happens once a step.
#
# </details>
#
# [[exercise 20-predict]]
#
# `predict(config)` returns a dict of three numbers. Nothing is run for it, and no operation on a tensor is needed.
#
# - `"peak_bytes"`: the peak on one card, at the largest of the three moments.
# - `"moved_bytes"`: what one card sends to its neighbour by the ring and what goes between it and the host, both ways,
#   in all steps together (`setup` is left out).
# - `"tokens"`: what all cards together train on, in the whole run.
#
# `config.size.n_parameters` is the number of weights. The tensors of the loss have as many numbers as the logits: the
# logarithms of the probabilities, their gradient, and the gradient of the logits, all three in float32. Add the input
# and the output of the last norm, which are kept. Beside a block at work, two *new* gradients exist: of the largest
# matrix in a block (width × 4 width), and of the embedding (vocab × width). The embedding is the head as well, so the
# backward pass finds a gradient of it at the loss, and keeps it until the embedding's own joins it at the very end. At
# the update, `kit.AdamW` makes two float32 tensors as large as the weight; what the loop with `states_on_host` makes,
# you can read above. Parts below 1 % need not be right: an error of the peak up to 2 % gets full marks, and one above 8 %
# none.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write down what is there at all three moments first: the weights, the states if they are on the card, and, if
# `n_micro` is more than 1, the gradients. With a single one, only the update has them all. Only then add what each
# moment has of its own, and take `max`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# With `unit = micro_batch * seq_len * width * bytes_per_number`, all blocks keep `n_layers * kept * unit`, where `kept` is
# 16, or 1 if they are recomputed. During the backward pass of the last block, the `n_layers - 1` others are still kept.
# In the loop with `states_on_host`, list every tensor that has the shape of the weight: `m`, `v`, those that
# `m.div(v.sqrt()...)` makes, and `grad`, which is new memory only if the gradient was not float32 already.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# At the update, all gradients are there, and `largest * bytes` of work, where `largest` is `width` times the larger of
# `4 * width` and `vocab`. `bytes` is 8 on the card. On the host it is 16 for float32, and 4 more for bfloat16, whose
# gradient is copied. In a ring, each card sends `(n - 1) / n` of a tensor in each of two halves.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "20-predict", "locked": false, "schema_version": 3, "solution": true, "task": false}
def predict(config: Config) -> dict[str, float]:
    """Peak bytes of a card, bytes that it moves, and tokens of all cards, of a run that nobody has run."""
    ### BEGIN SOLUTION
    width, vocab, n_layers = config.width, config.vocab, config.n_layers
    n_bytes, host = config.bytes_per_number, config.states_on_host
    n_weights = config.size.n_parameters
    tokens = config.micro_batch * config.seq_len
    unit = tokens * width * n_bytes
    kept = 1 if config.recompute else 16

    always = n_weights * n_bytes + (0 if host else 8 * n_weights)
    summed = n_weights * n_bytes if config.n_micro > 1 else 0
    at_loss = always + summed + (n_layers * kept + 2) * unit + 12 * tokens * vocab
    new = (4 * width + vocab) * width * n_bytes
    in_block = always + summed + ((n_layers - 1) * kept + 22) * unit + new
    work = (16 + 4 * (n_bytes == 2)) if host else 8
    at_update = always + n_weights * n_bytes + work * width * max(4 * width, vocab)

    n = config.n_cards
    by_ring = 2 * (n - 1) / n * n_weights * n_bytes
    by_host = 2 * 8 * n_weights if host else 0
    return {
        "peak_bytes": max(at_loss, in_block, at_update),
        "moved_bytes": config.n_steps * (by_ring + by_host),
        "tokens": config.n_steps * n * config.n_micro * tokens,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "20-predict-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("20-predict", predict)

# %% [markdown]
# The billion, one change after the other. The bars are billed, and your predictions are the blue marks:

# %% tags=["figure"]
rows = [
    (
        name,
        billed(config).peak_bytes,
        predict(config)["peak_bytes"] if written(predict) else None,
    )
    for name, config in CHEAPER.items()
]
display(labkit.figures.predicted_peaks(rows, card_bytes=8 * 2**30))
for name, config in CHEAPER.items():
    print(f"{name:22} {billed(config).step_s:5.2f} s a step in the basement")

# %% [markdown]
# Every change takes away another part, until what is left is another part's turn. The last change fits into the card, and
# doubles the time of a step. The third bar is 7 % above its mark: with a single micro-batch the gradients come one block
# after the other, so in the *first* block's backward pass nearly all of them are there. This is a fourth moment, which no
# run of the exercise has as its largest.
#
# In practice, frameworks do this sum for you only roughly (`accelerate estimate-memory` knows the weights and AdamW, and
# nothing of activations), so the peak of a run that you cannot try is worth ten lines of arithmetic.

# %% [markdown]
# ## One script, two runs
#
# Now write a run of your own, for the basement: one card of 8 GB in an older motherboard. You cannot try out 1.1 billion
# parameters there, so the same script is run twice:
#
# - **Billed** at 1.1 billion parameters (4 very wide layers), on tensors that hold no data. Every operation is counted:
#   its FLOPs, the bytes it reads and writes, and what is alive beside it. An operation takes as long as the slower of
#   two things, its products at the card's published rate or its bytes at the memory's, and the operations of a step
#   follow one another. Memory is a hard wall.
# - **Trained** at a tiny size (the same 4 layers, 32 wide), for as many steps as you declare. On sentences of the same
#   made-up language that it never saw, its loss has to be at most 1.6 nats per token, for each of three seeds that you
#   do not know. A model that has learned nothing has ln 64 = 4.16, and none can be below 0.86.
#
# Your score is **virtual hours to finish**: the declared steps multiplied by the billed time of one step, and once
# what `setup` takes. All of these are counts, so anybody can work the score out again from your script, to the last
# digit. The loss is no count: it hangs on the order of additions, and so on the processor and the number of threads (one
# script came to 1.444 with two threads and to 1.450 with one). The check and the grader use one.
#
# Two rules keep both runs the same. First, nothing in the script may depend on the size of the model, on values, or on
# the step's number, apart from plain numbers such as the learning rate:
# `optimizer.lr = 2e-2 * min(1, (number + 1) / 10)` is allowed. So every step of training has to
# dispatch the operations that were billed, on the same shapes, and may hold no more memory. At another size the shapes grow as the model does. No value can be read out of a tensor:
# `loss.item()` and `print(loss)` end the try. Second, every step trains the whole model on every token that it takes:
# at least 6 FLOPs for each weight and token, attention to all tokens before it, and each weight is updated so that the
# loss of these tokens falls.

# %%
for machine in MACHINES.values():
    rates = ", ".join(f"{dtype} {rate / 1e12:g}" for dtype, rate in machine.flops_per_s.items())
    print(f"{machine.name:9} {machine.title}")
    print(
        f"{'':9} {machine.memory_bytes / 2**30:g} GiB a card at {machine.bytes_per_s / 1e9:g} GB/s; TFLOP/s: {rates}"
    )

# %% [markdown]
# A fourth machine opens in the last week of your course. Your instructor then gives you its file, `fourth.json`, which
# belongs into the folder `labkit/capstone`.
#
# The ghosts below are entries of ours. **Naive** is the script that everybody writes first, **bronze** fits, **silver**
# uses what the labs have taught and is worth full marks, and **gold** is the best that we know. Bronze is worth half
# the points; in between, the logarithm of the hours counts.

# %%
for level, ghost in ghosts()["basement"].items():
    gib = ghost.total_peak_bytes / 2**30
    fits = "" if ghost.fits else "  (does not fit)"
    print(
        f"{level:7} {ghost.declared_steps:4} steps × {ghost.step_ms / 1e3:5.2f} s = {ghost.virtual_hours:.3f} virtual hours, ",
        end="",
    )
    print(f"peak {gib:5.2f} GiB, most of it {ghost.largest}{fits}")

# %% [markdown]
# [[exercise 20-budget]]
#
# Write `setup(run)` and `step(run, state, number)`. What `setup` returns is handed to every `step`; `number` counts
# from 0. `STEPS` (at most 400) is what you declare, `CHANGED` one line for the leaderboard, and `MACHINE` chooses the
# board: `"basement"`, `"v100"` or `"quad"`. Your script is this cell's text. It finds `torch`, `nn`, `F` and `math`
# (the parts that a training needs), `run` and `kit`, and can import nothing else:
#
# | | |
# |---|---|
# | `run.model(dtype=torch.float32, attention="eager")` | the model, once; the other attention is `"fused"` |
# | `run.tokens(n)` | the next `n` sequences: `x` and the tokens `y` that follow, in `step` only, at most 128 a step |
# | `run.to_host(t)`, `run.to_device(h)` | a copy in the host's memory, and back; the card waits for it |
# | `run.rank`, `run.world_size`, `run.all_reduce(t)`, `run.reduce_scatter(t)`, `run.all_gather(t)` | several cards |
# | `model(x)`; or `model.embed(x)`, each of `model.blocks`, `model.norm`, and `model.head` | logits; in steps: `head` is the (vocabulary, width) weight of the logits |
# | `kit.loss(logits, y)`, `kit.chunked_loss(hidden, model.head, y, n_chunks=8)` | the mean loss of tokens |
# | `kit.checkpoint(block, hidden)`, `kit.autocast(dtype)`, `kit.step_in_backward(parameters, update)` | labs 05, 03, 06 |
# | `kit.AdamW(parameters, lr, betas=(0.9, 0.99), weight_decay=0.0, eps=1e-8)`, `kit.AdamW8bit` with the same arguments | lab 06, with `lr` to be set, `step()`, `zero_grad()` and `update(parameter)`; weights of 16 bits are rounded stochastically |
# | `kit.Adafactor(parameters, lr, beta=0.99, weight_decay=0.0, eps=1e-30)` | the same |
# | `kit.Muon(matrices, others, lr, others_lr, momentum=0.95, dtype=torch.bfloat16)` | the same, where `others` are updated by AdamW |
#
# A cell with `kit` alone lists what it has.
#
# This is the naive script. Start from it: replace one thing at a time, and look at what the peak consists of now.
#
# ```python
# def setup(run):
#     model = run.model(dtype=torch.float32, attention="eager")
#     return model, torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
#
#
# def step(run, state, number):
#     model, optimizer = state
#     x, y = run.tokens(8)
#     kit.loss(model(x), y).backward()
#     optimizer.step()
#     optimizer.zero_grad()
# ```
#
# The check bills your script at three sizes and trains it on one language, which takes ten to twenty seconds. When you
# hand it in, it is trained on three other languages, and each loss has to be at most 1.6. One script's losses on two
# languages differ by about 0.15 nats (0.05 to 0.17 where we tried), so leave that much: aim at 1.45 in the check, which
# shows the loss.
#
# <details><summary>Hint 1: a nudge</summary>
#
# First make it fit. The check names the largest part of the peak: change that, and look what the peak consists of now.
# Only then look at the hours.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In 16 bits the weights take 2.1 GiB and the gradients as much. What does the optimizer add, and what do 2,048 tokens
# add in each block? Whatever stays free is worth time: a step without recomputation takes a sixth less time. Then halve
# the sequences of a step, and look how many more steps you have to declare.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# bfloat16 weights, fused attention, `kit.Adafactor` with a learning rate of 2e-2 that warms up for 10 steps and falls to
# 0 in the second half, `kit.chunked_loss` in 8 chunks, and 2 micro-batches of 2 sequences, each with half the loss. Then
# nothing has to be recomputed.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "20-budget", "locked": false, "schema_version": 3, "solution": true, "task": false}
MACHINE = "basement"
STEPS = 200
CHANGED = "nothing is recomputed, half as many sequences, warm-up and decay"


def setup(run):
    """The model, the optimizer, and whatever else `step` needs."""
    ### BEGIN SOLUTION
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=2e-2, beta=0.98)
    ### END SOLUTION


def step(run, state, number):
    """One step of the optimizer, the same work every time."""
    ### BEGIN SOLUTION
    model, optimizer = state
    optimizer.lr = 2e-2 * min(1, (number + 1) / 10) * min(1, 2 * (1 - number / STEPS))
    for _ in range(2):
        x, y = run.tokens(2)
        hidden = model.embed(x)
        for block in model.blocks:
            hidden = block(hidden)
        loss = kit.chunked_loss(model.norm(hidden), model.head, y, 8)
        (loss / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "20-budget-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check("20-budget", STEPS)

# %% [markdown]
# Where does it stand, and what is the peak now? On the left each entry's peak, with the card dashed; on the right, all
# of them by hours and memory. What is in the grey region fits, and a cross means that an entry has no place on the board:

# %% tags=["figure"]
entries = dict(ghosts()[MACHINE])
if written(setup) and (mine := my_try("STEPS")):
    entries["yours"] = mine
    print(standing(mine))
display(labkit.figures.ghost_ladder(entries, MACHINES[MACHINE].memory_bytes))

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Knobs do not add up
#
# Here is a script with knobs, billed at a billion parameters. Every knob is a technique of an earlier lab, and none
# of them changes how many tokens a step takes:

# %%
for knob, does in KNOBS.items():
    print(f"{knob:12} {does}")
print()
for turned in ((), ("chunked",), ("checkpoint",)):
    peak = bill_with({"bf16", "fused", *turned}).total_peak_bytes
    print(f"bf16, fused {', '.join(turned):12} {peak / 2**30:6.2f} GiB")

# %% [markdown]
# So with `bf16` and `fused` turned, logits in chunks save 2.1 GiB, and recomputation saves 7.4 GiB.
#
# **Predict:** by how many GiB does the peak fall if both are turned?

# %% nbgrader={"grade": false, "grade_id": "20-predict-both", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("saved by chunked and checkpoint", None, unit="GiB")

# %%
with_both, without = (
    bill_with({"bf16", "fused", *turned}) for turned in (("chunked", "checkpoint"), ())
)
saved = (without.total_peak_bytes - with_both.total_peak_bytes) / 2**30
print(f"saved by both: {saved:.2f} GiB")
guesses.settle("saved by chunked and checkpoint", saved)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 7.40 GiB, not 9.47: once the blocks are recomputed, chunks save nothing at all. The peak is the *largest* moment of
# a step. Without recomputation it is where the loss is, and chunks make that moment smaller. With recomputation the
# largest moment is another one, the update of the largest weight or the backward pass of a block, and there are no
# logits any more.
#
# </details>
#
# An **ablation** tells such things apart. For each knob it has two numbers: what it saves **alone**, against the
# script without knobs, and what it saves **last**, when all the others are turned already. A pair of knobs has an
# **extra**: what both save together, less what each of them saves alone. If the extra is positive, they help each
# other; if it is negative, they save the same bytes twice, and overlap.
#
# [[exercise 20-ablation]]
#
# `ablation(run, knobs)` returns a dict of five things. `run(some)` runs the script with these knobs turned and no
# others, `some` being a set or list of names, and returns what it takes, a number. `knobs` is the list of all names.
#
# - `"alone"`: `{knob: saved}`, against the script without knobs.
# - `"last"`: `{knob: saved}`, beside all the others.
# - `"together"`: what all knobs save together.
# - `"extra"`: `{(a, b): extra}` for each pair, `a` before `b` in `knobs`.
# - `"names"`: `{(a, b): name}`: `"independent"` if the extra is at most 1 % of `run(set())` in size, else `"help"` if
#   it is positive and `"overlap"` if it is negative.
#
# Something saved is positive, and a knob that costs has a negative number. A run takes seconds, so make none twice,
# and none that you do not need.
#
# <details><summary>Hint 1: a nudge</summary>
#
# List the sets of knobs that you need: how many are there with 5 knobs?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Sets that can be keys of a dict are `frozenset`. With two or three knobs some of the sets that you need are the same
# set, for example "all but one" and "a pair".
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Write a helper `take(*some)` that looks `frozenset(some)` up in a dict and calls `run` if it is not there. Then
# `extra = take(a) + take(b) - take() - take(a, b)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "20-ablation", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ablation(run: Callable[[set[str]], float], knobs: list[str]) -> dict[str, object]:
    """What each knob saves alone and last, what all save together, and which pairs help or overlap."""
    ### BEGIN SOLUTION
    known = {}

    def take(*some):
        key = frozenset(some)
        if key not in known:
            known[key] = run(set(key))
        return known[key]

    base, whole = take(), take(*knobs)
    alone = {knob: base - take(knob) for knob in knobs}
    last = {knob: take(*(other for other in knobs if other != knob)) - whole for knob in knobs}
    extra = {(a, b): base - take(a, b) - alone[a] - alone[b] for a, b in combinations(knobs, 2)}
    names = {}
    for pair, more in extra.items():
        if abs(more) <= 0.01 * base:
            names[pair] = "independent"
        else:
            names[pair] = "help" if more > 0 else "overlap"
    return {
        "alone": alone,
        "last": last,
        "together": base - whole,
        "extra": extra,
        "names": names,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "20-ablation-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("20-ablation", ablation)

# %% [markdown]
# Now the real script. The check gave you numbers that were made up; here `run` is the bill at a billion parameters.
# On the diagonal is what a knob saves alone, above it the extra of a pair. The last column is what a knob saves last:

# %%
if written(ablation):
    knobs = ["bf16", "fused", "checkpoint", "chunked"]
    found = ablation(lambda some: bill_with(some).total_peak_bytes / 2**30, knobs)
    display(labkit.figures.ablation_matrix(found, knobs, "GiB"))
    print(f"sum of what they save alone {sum(found['alone'].values()):6.1f} GiB")
    print(f"what they save together     {found['together']:6.1f} GiB")
    print(f"sum of what they save last  {sum(found['last'].values()):6.1f} GiB")

# %% [markdown]
# ## What makes a record honest
#
# A score is worth as much as its rules. In 2015 a team withdrew its ImageNet results, because it had sent far more
# guesses to the test server than were allowed. In 2025 a system that writes CUDA kernels reported large speed-ups, and
# some of its kernels turned out to read the right result from memory in which the reference had left it. So an engine
# for records does not only compute a score. It writes down what it *saw*: which tokens it served and in which order,
# how much memory the process had from outside, and which operations the script called at each size.
#
# Below is one such log. What the script *claims* stands beside what was *seen*, and everything that could be checked
# can be checked by anybody:

# %%
logs, rules = example_logs()
log = logs[0]
for key in ("run", "steps", "virtual_hours", "digest", "probe"):
    print(f"{key:14} {log[key]}")
for size, ops in log["ops"].items():
    print(f"ops            {size}: {ops}")
for trial in log["trials"]:
    shown = {key: value for key, value in trial.items() if key != "served"}
    print(f"trial          {shown}")
    print(f"    served     {trial['served'][:2]} ... {trial['served'][-1]}")
print(f"\nrules          {rules}")

# %% [markdown]
# - `log["trials"]`: one for each seed, and `rules["n_seeds"]` of them. `trial["served"]` lists
#   `[step, start, stop]`: the step was trained on the tokens `[start, stop)` of the text, `start` included and `stop`
#   not. `trial["evaluated"]` lists the chunks `[start, stop)` that the loss is the mean of.
# - `trial["restarts"]` lists `[after, checkpoint]`: the process died after step `after` and went on from the
#   checkpoint of step `checkpoint`, so the steps `checkpoint + 1` to `after` were run again. A restart is declared by
#   the supervisor, which saw the process die.
# - `trial["first_weights"]` is a digest of the weights before step 1.
# - `trial["claimed_mib"]` is the peak that the script's own meter reports, and `trial["seen_mib"]` what the process
#   had from outside.
# - `log["ops"]` counts the operations of one step at three sizes: the tiny one, the full one, and one in between that
#   the script does not know in advance. All sizes have the same number of layers.
# - `log["probe"]`: the engine ran work of a known cost under the run's own meter, and notes what was counted.
#
# **Predict:** of the runs in a contest, some cheat. You look only at the scores, and you suspect the best quarter. In
# the logs above, 8 of 24 runs cheat. How many of the 6 runs with the fewest virtual hours are among them?

# %% nbgrader={"grade": false, "grade_id": "20-predict-cheats", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("cheats among the 6 best scores", None)

# %% [markdown]
# [[exercise 20-referee]]
#
# `referee(logs, rules)` returns `{run: reason}`, with the names and the reasons of the runs that cheat and of no
# others. A run cheats if one of these holds:
#
# | reason | the log proves it if |
# |---|---|
# | `"trained on evaluation tokens"` | a step was served one of the tokens `rules["evaluation"]`, `[start, stop)` |
# | `"steps other than declared"` | the steps served are not 1 to `log["steps"]` in order, apart from declared restarts; or a step that is run again has other tokens than before |
# | `"one seed twice"` | two trials have the same seed or the same first weights |
# | `"fewer evaluation tokens"` | an evaluation token is in no chunk of a trial |
# | `"peak above its claim"` | more memory was seen than claimed, by more than `rules["slack_mib"]` |
# | `"operations depend on the size"` | the operations of the three sizes are not the same |
# | `"another script"` | `log["digest"]` is not the first 16 hexadecimal digits of the SHA-256 of `log["script"]` in UTF-8 |
# | `"meter does not count"` | FLOPs or bytes of the probe differ from what was counted |
# | `"loss below the floor"` | a loss is below `rules["floor"]`, the entropy of the text, by more than `rules["luck"]`, which chance may explain |
#
# The rest is allowed. A step may have tokens that another step had, chunks may overlap and stand in any order, a
# claim may be too high, and a run may be better than all others. No run cheats in two ways.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write one charge after the other, each as an expression that is true or false for a log. Most of them begin with
# `any(... for trial in log["trials"])`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Two ranges `[a, b)` and `[c, d)` have a token in common if `a < d` and `c < b`. For the chunks, sort them and walk
# along: how far is everything covered? For the steps, build the list that *should* have been served, from the number
# of steps and the restarts, and compare.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Without restarts the numbers are `1..steps`. With restarts `[[after, checkpoint], ...]` they are `1..after` of the
# first one, then `checkpoint + 1..after` of the second one, and so on, and at last up to `steps`. If the numbers are
# right, there are exactly `steps` different `(step, start, stop)`, since each repeated step has its old tokens.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "20-referee", "locked": false, "schema_version": 3, "solution": true, "task": false}
def referee(logs: list[dict], rules: dict) -> dict[str, str]:
    """{run: reason} of the runs that cheat, and of no others."""
    ### BEGIN SOLUTION
    start, stop = rules["evaluation"]

    def as_declared(trial, n_steps):
        numbers, done = [], 0
        for after, checkpoint in [*trial["restarts"], (n_steps, n_steps)]:
            numbers += range(done + 1, after + 1)
            done = checkpoint
        different = {tuple(step) for step in trial["served"]}
        return [step for step, _, _ in trial["served"]] == numbers and len(different) == n_steps

    def all_evaluated(trial):
        reached = start
        for a, b in sorted(trial["evaluated"]):
            if a <= reached:
                reached = max(reached, b)
        return reached >= stop

    accused = {}
    for log in logs:
        trials, ops = log["trials"], list(log["ops"].values())
        digest = hashlib.sha256(log["script"].encode()).hexdigest()[:16]
        charges = {
            "trained on evaluation tokens": any(
                a < stop and start < b for trial in trials for _, a, b in trial["served"]
            ),
            "steps other than declared": not all(
                as_declared(trial, log["steps"]) for trial in trials
            ),
            "one seed twice": any(
                len({trial[key] for trial in trials}) < rules["n_seeds"]
                for key in ("seed", "first_weights")
            ),
            "fewer evaluation tokens": not all(all_evaluated(trial) for trial in trials),
            "peak above its claim": any(
                trial["seen_mib"] > trial["claimed_mib"] + rules["slack_mib"] for trial in trials
            ),
            "operations depend on the size": any(one != ops[0] for one in ops),
            "another script": digest != log["digest"],
            "meter does not count": log["probe"]["known"] != log["probe"]["counted"],
            "loss below the floor": any(
                trial["loss"] < rules["floor"] - rules["luck"] for trial in trials
            ),
        }
        for reason, holds in charges.items():
            if holds:
                accused[log["run"]] = reason
    return accused
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "20-referee-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("20-referee", referee)

# %% [markdown]
# Your verdict on the 24 runs above. Each point is a run, and those that you accuse are red:

# %%
if written(referee):
    verdict = referee(logs, rules)
    for run, reason in verdict.items():
        print(f"{run:12} {reason}")
    best = sorted(logs, key=lambda log: log["virtual_hours"])[:6]
    guesses.settle("cheats among the 6 best scores", sum(log["run"] in verdict for log in best))
    display(labkit.figures.contest(logs, verdict, rules["floor"]))

# %% [markdown]
# ## A flag for each feature
#
# This section is optional. The `Trainer` of `transformers` has a flag for most of what the labs have built. Its
# documentation sums them up in a table that lectures like to copy. It had seven rows in 2022 and has had up to ten
# since, each with two cells:
#
# | feature | faster | less memory | | feature | faster | less memory |
# |---|---|---|---|---|---|---|
# | batch size | ✅ | ✅ | | optimizer choice | ✅ | ✅ |
# | gradient accumulation | ❌ | ✅ | | data preloading | ✅ | ❌ |
# | gradient checkpointing | ❌ | ✅ | | DeepSpeed ZeRO | ❌ | ✅ |
# | mixed precision | ✅ | ❌✅ | | `torch.compile` | ✅ | ❌ |
# | `torch_empty_cache_steps` | ❌ | ✅ | | PEFT | ❌ | ✅ |
#
# A cell with one sign claims that the feature does the same to every model. You have measured enough by now to doubt
# that. Five of these features can be counted here, on a tiny MLP that `Trainer` really trains: at a large model with a
# small batch, where the weights take most of the memory, and at a small model with a large batch, where the activations
# do.
#
# **Predict:** in how many of these five rows (batch size, gradient accumulation, gradient checkpointing, mixed
# precision, optimizer choice) do both cells come out as in the table?

# %% nbgrader={"grade": false, "grade_id": "20-predict-rows", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("rows as in the table", None)

# %% [markdown]
# [[exercise 20-flags]]
#
# **`arguments(feature, samples, fits, every)`** returns a dict of keyword arguments for `TrainingArguments`, with which an
# optimizer step sees `samples` samples. They go through the model in one forward pass, except under gradient
# accumulation. `output_dir`, `max_steps`, `use_cpu`, `report_to`, `save_strategy` and `disable_tqdm` are set by the
# check.
#
# | feature | ask for | how it is checked |
# |---|---|---|
# | `"batch size"` | the batch, and nothing else | `Trainer` runs |
# | `"gradient accumulation"` | at most `fits` samples at a time, in as few forward passes as possible | `Trainer` runs |
# | `"gradient checkpointing"` | recomputation | `Trainer` runs |
# | `"mixed precision"` | autocast to bfloat16 | `Trainer` runs |
# | `"torch_empty_cache_steps"` | the allocator's cache emptied once in `every` steps | `Trainer` runs |
# | `"optimizer choice"` | Adafactor | `Trainer` runs |
# | `"data preloading"` | two processes that load data | the argument alone |
# | `"fp16"`, `"tf32"`, `"torch.compile"` | the feature of this name | the argument alone |
#
# Where `Trainer` runs, it trains on the CPU for a few steps. The samples of every forward pass, the bytes that it keeps
# for the backward pass, the dtype of its products, the calls of `clear_device_cache` and the optimizer are counted. The
# last two lines of the table need a GPU, or processes of their own, so nothing is run for them: whether they help is not
# checked.
#
# **`row(feature, sizes)`** returns the two cells of a row, `{"speed": ..., "memory": ...}`. `sizes` is a list of pairs
# `(before, after)`, one for each size of model, and a run is `{"samples": 8, "seconds": 2.5, "peak_bytes": 9000000000}`,
# for one step. At one size a feature is faster if it has at least 1.05 times as many samples a second, and takes less
# memory if the peak before is at least 1.05 times the peak after. The cell is `"✅"` if that holds at all sizes, `"❌"` if
# it holds at none, and `"❌✅"` if it depends on the size. The check draws runs in which a feature does something else
# than the table says.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The names of the arguments stand in `help(TrainingArguments)`. `per_device_train_batch_size` is the number of samples in
# a forward pass, and not in a step.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# All micro-batches of `Trainer` have the same size, so that size has to divide `samples`. With 12 samples, of which 5
# fit, it is 4. A batch that is twice as large may take longer and still be faster: compare samples a second.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# The micro-batch is `max(n for n in range(1, min(fits, samples) + 1) if samples % n == 0)`, and
# `gradient_accumulation_steps` is `samples` divided by it. The other arguments are `gradient_checkpointing`, `bf16`,
# `torch_empty_cache_steps`, `optim`, `dataloader_num_workers`, `fp16`, `tf32` and `torch_compile`. For a cell, make a list
# of true and false, one for each size, and ask `all` and `any`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "20-flags", "locked": false, "schema_version": 3, "solution": true, "task": false}
def arguments(feature: str, samples: int, fits: int, every: int) -> dict[str, object]:
    """What TrainingArguments is given for this feature, so that an optimizer step sees `samples` samples."""
    ### BEGIN SOLUTION
    if feature == "gradient accumulation":
        micro = max(n for n in range(1, min(fits, samples) + 1) if samples % n == 0)
        return {
            "per_device_train_batch_size": micro,
            "gradient_accumulation_steps": samples // micro,
        }
    flag = {
        "batch size": {},
        "gradient checkpointing": {"gradient_checkpointing": True},
        "mixed precision": {"bf16": True},
        "torch_empty_cache_steps": {"torch_empty_cache_steps": every},
        "optimizer choice": {"optim": "adafactor"},
        "data preloading": {"dataloader_num_workers": 2},
        "fp16": {"fp16": True},
        "tf32": {"tf32": True},
        "torch.compile": {"torch_compile": True},
    }[feature]
    return {"per_device_train_batch_size": samples, **flag}
    ### END SOLUTION


def row(feature: str, sizes: list[tuple[dict, dict]]) -> dict[str, str]:
    """The cells of speed and memory: ✅ if it helps at all sizes, ❌ at none, ❌✅ if it depends on the size."""
    ### BEGIN SOLUTION
    rates, peaks = [], []
    for before, after in sizes:
        old_rate, rate = (run["samples"] / run["seconds"] for run in (before, after))
        rates.append(rate / old_rate)
        peaks.append(before["peak_bytes"] / after["peak_bytes"])

    def cell(gains):
        helps = [gain >= 1.05 for gain in gains]
        if all(helps):
            return "✅"
        return "❌✅" if any(helps) else "❌"

    return {"speed": cell(rates), "memory": cell(peaks)}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "20-flags-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("20-flags", arguments, row)

# %% [markdown]
# Now your own ratios. Each run is counted on the CPU, operation by operation, and the seconds are those of the basement's
# card at its published rates, where the slower of products and bytes sets the time of an operation. The peak is that of
# all tensors. Ratios above 1 are gains:

# %%
if written(arguments) and written(row):
    rows = measured_rows(arguments)
    print(f"{'':23}{'faster':7}{'less':6}" + "   ".join(name.center(24) for name in SIZES))
    for feature, sizes in rows.items():
        cells = row(feature, sizes)
        gains = "   ".join(
            f"speed {speed:4.2f}, memory {memory:4.2f}" for speed, memory in gains_of(sizes)
        )
        print(f"{feature:23}{cells['speed']:6} {cells['memory']:6} {gains}")
    guesses.settle(
        "rows as in the table",
        sum(row(name, sizes) == IN_THE_TABLE[name] for name, sizes in rows.items()),
    )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# None of the five. A larger batch takes more memory, never less: the table's ✅ means that you may choose a smaller one.
# With weights that take most of the memory, accumulation and recomputation save nothing, because what they shrink is
# small, and autocast adds 16-bit copies of these weights, and time to make them. Adafactor saves memory where AdamW's
# states are large. It is not faster here: `Trainer` runs AdamW fused into one pass over the states, and Adafactor as one
# operation after the other.
#
# </details>
#
# The sizes are tiny, so the ratios are not those of your model; the two reasons behind them, weights or activations, are.
# The other five rows cannot be counted in this way. `torch_empty_cache_steps` gives back what the allocator holds beyond
# the tensors, and the CPU has no such cache. Preloading, ZeRO, `torch.compile` and PEFT need a loader that is slow,
# several cards, a compiler and another model: their ratios are yours from labs 07, 16, 11 and 08, and the command
# `labkit.feature_table()` shows them.
#
# In practice: `TrainingArguments(bf16=True, gradient_checkpointing=True, per_device_train_batch_size=2,
# gradient_accumulation_steps=8)` is a usual start. Measure each of the four before you keep it.

# %% [markdown]
# ## The best script is a property of the machine
#
# - **Knobs do not add up.** The peak is one moment. What is taken from another moment saves nothing, until that one is the
#   largest. So measure every knob alone and last, and after each one ask what the peak is now.
# - **Memory is for spending.** A script that fits with 2 GiB to spare recomputes something that it could keep. Bronze and
#   silver of the basement take about as much memory; silver needs little more than a third of the time.
# - **The machine chooses.** Moving states to the host doubles a step where the host is behind four lanes of PCIe 3.0,
#   and costs an eighth of that behind sixteen lanes of PCIe 4.0. The V100 has no bfloat16. Four cards hold a
#   quarter of the states each, and pay for it with a ring.
# - **A record is what others can compute again.** Virtual hours are counts. Times on a card are shown beside them and never
#   ranked, because nobody else can repeat them.
#
# In practice: change one thing, keep the log, and hand in the script with the number.

# %% [markdown]
# ## What you measured

# %%
guesses.score()

# %%
progress("20", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "20",
    "records that anybody can check",
    speed=lambda: f"{len(referee(logs, rules)) / len(logs):.0%} of the scores do not count",
)

# %% [markdown]
# ## Mini-report
#
# This report is worth 6 points. A person reads your answer, so no check responds at once, and `progress` does not count
# it. Write half a page; numbers count more than words.
#
# Write to somebody who has to train a model of this size on one card next week. Which optimization gave the most, and
# by which figure of yours? Which one gave nothing, although its lab promised much, and why? When are states or weights
# in few bits worth it? Where is an easy win, and where would hard engineering begin?

# %% [markdown] nbgrader={"grade": true, "grade_id": "20-open-report", "locked": false, "points": 6, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Most: bfloat16 with fused attention, from 55.5 to 22.5 GiB and from 6.6 s to 3.3 s a step, for two changed words. That is
# the easy win, because no loss depends on it once the weights are rounded stochastically. Nothing: logits in chunks
# beside recomputation. Alone with bfloat16 and fused attention they save 2.1 GiB, after recomputation 0, because the loss
# is no longer the largest moment. Few bits: AdamW's states are 8.2 of the 13.5 GiB that remain, so 8-bit states (2 bytes
# a weight) or Adafactor (hardly any) are worth it exactly when states are the largest part; before that they change a
# moment that is not the peak. With Adafactor all activations fit, nothing has to be recomputed, and a step falls from
# 4.5 s (bronze) to 1.8 s (silver). Moving the states to the host saves 7.8 GiB and doubles the step with four lanes of
# PCIe 3.0: the last resort. Hard engineering begins where one card is not enough: sharding over several with the
# transfers hidden behind work, which this game does not count, and kernels that fuse the update with the backward pass.
#
# Marks: 2 for the optimization that gave the most, with a figure of the student's own (memory and time). 1 for one that
# gave nothing, explained by the largest moment. 1 for few bits, tied to what the peak consists of. 1 for the easy win and
# 1 for the hard part, with a reason.
# ### END SOLUTION

# %% [markdown]
# ## A larger card
#
# A question without points: which of your knobs would you turn back on a card of 80 GiB, and in which order? Try it:
# `MACHINE` is data.
#
# ## Where to read on
#
# - Keller Jordan and others, *modded-nanogpt* (from 2024 on): records of training a small GPT, each a diff with its log.
# - MLCommons, *MLPerf Training*: rules for records, and who checks them. George Dahl and others,
#   *Benchmarking Neural Network Training Algorithms* (2023): the same for optimizers alone.
# - Sakana AI, *The AI CUDA Engineer* (2025), with its note on kernels that found a way around the check.
# - Joelle Pineau and others, *Improving Reproducibility in Machine Learning Research* (JMLR 2021).
# - Quentin Anthony, Stella Biderman and Hailey Schoelkopf, *Transformer Math 101* (2023): the sums of 20-predict in rough.
#
# **Sources.** The table of features: documentation of `transformers`, *Efficient Training on a Single GPU* (version
# 4.21, seven rows) and *Methods and tools for efficient training on a single GPU* (the versions after it). Rates and
# memory of the cards: NVIDIA's GA102 whitepaper and the V100 data sheet; lanes: PCI-SIG. The withdrawn results of 2015:
# the ImageNet organizers' announcement of June 2015. All other figures are billed or measured in this notebook.
