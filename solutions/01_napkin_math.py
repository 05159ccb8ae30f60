# %% [markdown]
# # Lab 01: Napkin math: where the bytes and the days go
#
# Llama-3-8B has 8 billion weights of 2 bytes each, 16 GB. The first cell measures what one training step needs, with
# everything in bf16, AdamW, and 100 sequences of 1024 tokens. **The answer is 867 GB. Where do the other 851 GB come
# from, and how much of that could you have known before renting the machine?**
#
# At the end you can read a configuration file and say, with pen and paper, how many parameters the model has, how much
# memory a training step takes, which batch fits on a card, how long a training run lasts and what it costs. Every one
# of your results is compared with a measurement or with a library, and several published figures turn out to be wrong.
#
# [[time]]
#
# The lab has two halves. The first is about memory: parameters, model states, activations, the largest batch. The
# second is about time and scale: scaling laws, FLOPs, days and dollars. Good places to stop are marked. You need to
# know the layers of a transformer by name; lab 00 shows how exercises are checked.

# %% nbgrader={"grade": false, "grade_id": "01-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import time
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float64
from torch import Tensor
from transformers import AutoModel, AutoModelForCausalLM, LlamaConfig, T5Config

import labkit.figures
from labkit import Predictions, check, measure_step, progress
from labkit.figures import Plan

guesses = Predictions("01")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %%
LLAMA_3_8B = dict(
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    vocab_size=128256,
    use_cache=False,
)
llama = LlamaConfig(**LLAMA_3_8B)


def step_of_llama(batch_size=100, seq_len=1024, checkpointing=False, **changes):
    """The profile of two training steps in bf16 with AdamW. Nothing is allocated or computed: the text below says how."""

    def build():
        config = LlamaConfig(**{**LLAMA_3_8B, **changes})
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).train()
        if checkpointing:
            older_name = model.gradient_checkpointing_enable  # its name in older versions
            getattr(model, "activation_checkpointing_enable", older_name)()
        return model, torch.optim.AdamW(model.parameters(), foreach=False)

    tokens = torch.zeros(batch_size, seq_len, dtype=torch.long)
    return measure_step(build, {"input_ids": tokens, "labels": tokens})


whole = step_of_llama()
for category, n_bytes in whole.peak_by_category.items():
    print(f"{category:12} {n_bytes / 1e9:8.1f} GB {n_bytes / 2**30:8.1f} GiB")
print(f"{'peak':12} {whole.peak_bytes / 1e9:8.1f} GB {whole.peak_bytes / 2**30:8.1f} GiB")

# %% [markdown]
# You do not need such a machine to measure this. **Fake tensors** have a shape and a dtype but no memory, so the real
# code of `transformers` runs on them in seconds, and `labkit.measure_step` adds up what would be alive at each moment.
# The list has no gradients: at the moment of the peak there are none. The section on the largest batch explains why.

# %% [markdown]
# ## Count the parameters before there is a model
#
# How many parameters does "8B" mean? Weights, gradients, optimizer states and FLOPs are all multiples of that number,
# and model names round it generously. You can work it out from a dozen fields of the configuration, without building
# the model.
#
# A matrix from width $m$ to width $n$ has $m \cdot n$ weights, and $n$ more if it has a bias. Model families differ in
# what they share and what they leave out:
#
# | | Llama | GPT-2 | T5 |
# |---|---|---|---|
# | widths | `hidden_size`, `intermediate_size` in the MLP | `n_embd`, `n_inner` in the MLP | `d_model`, `d_ff` in the MLP |
# | layers | `num_hidden_layers` | `n_layer` | `num_layers` in the encoder, `num_decoder_layers` in the decoder |
# | attention | queries and output: `num_attention_heads` heads of `head_dim`; keys, values: `num_key_value_heads` | one matrix `n_embd` → 3 `n_embd`, one back to `n_embd` | four matrices between `d_model` and `num_heads` · `d_kv` |
# | MLP | gate, up, down: three matrices | two matrices, `n_inner` wide (None: 4 `n_embd`) | two matrices, `d_ff` wide; three with `is_gated_act` |
# | biases | none | in every matrix of a layer | none |
# | norms | RMSNorm, a weight: 2 a layer, 1 at the end | LayerNorm, weight and bias: 2 a layer, 1 at the end | RMSNorm: 2 an encoder layer, 3 a decoder layer, 1 at the end of each stack |
# | positions | computed | `n_positions` learned vectors | a number for each of `relative_attention_num_buckets` and head, in the first layer of each stack |
# | vocabulary, `vocab_size` tokens | one matrix if `tie_word_embeddings`, else two | one matrix for both ends | one matrix for all |
#
# The published T5s with a gated MLP have an output layer of their own. The check's T5s do not: count one matrix for
# all. A T5 decoder layer has two attentions, one over its own tokens and one over the encoder's. **Tied embeddings**
# means that one matrix serves as input embedding and as output layer. With **grouped-query attention**, several query
# heads share one head of keys and values.

# %% [markdown]
# **Predict:** what share of Llama-3-8B's parameters is in its two vocabulary matrices, in percent?

# %% nbgrader={"grade": false, "grade_id": "01-predict-vocabulary", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("share of the vocabulary", None, unit="%")

# %% [markdown]
# [[exercise 01-param-count]]
#
# Write `param_count(config)`. `config` has the fields of the table as attributes, under the names that `transformers`
# uses, and `config.model_type` is `"llama"`, `"gpt2"` or `"t5"`. The check compares your count with the models of
# `transformers`, to the last parameter. Start with Llama: the check reports the first family that is not right yet.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write one line for each module of a layer (attention, MLP, norms), multiply by the number of layers, then add what the
# model has only once. Do not assume that heads times head size is the hidden size.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Llama, with $h$ the hidden size, $d$ the head size, $a$ query heads and $k$ key-value heads: attention $2had + 2hkd$,
# MLP $3h \cdot h_{ff}$, norms $2h$. Once: $h$ for the last norm and $Vh$ for each vocabulary matrix. GPT-2 has the same
# plan with biases, so a matrix $m \to n$ counts $mn + n$.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# T5, with `inner = num_heads * d_kv`, `attention = 4 * d_model * inner` and `mlp = (3 if is_gated_act else 2) * d_model
# * d_ff`: an encoder layer is `attention + mlp + 2 * d_model`, a decoder layer `2 * attention + mlp + 3 * d_model`.
# Once for each stack: `buckets * num_heads + d_model`. Once for all: `vocab_size * d_model`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-param-count", "locked": false, "schema_version": 3, "solution": true, "task": false}
def param_count(config) -> int:
    """The number of parameters of a Llama, GPT-2 or T5 with a language-model head."""
    ### BEGIN SOLUTION
    if config.model_type == "llama":
        width = config.hidden_size
        heads = 2 * (config.num_attention_heads + config.num_key_value_heads) * config.head_dim
        layer = width * heads + 3 * width * config.intermediate_size + 2 * width
        ends = 1 if config.tie_word_embeddings else 2
        return config.num_hidden_layers * layer + width + ends * config.vocab_size * width
    if config.model_type == "gpt2":
        width = config.n_embd
        inner = 4 * width if config.n_inner is None else config.n_inner
        attention = width * 3 * width + 3 * width + width * width + width
        mlp = width * inner + inner + inner * width + width
        embeddings = (config.vocab_size + config.n_positions) * width
        return config.n_layer * (attention + mlp + 4 * width) + 2 * width + embeddings
    width = config.d_model
    attention = 4 * width * config.num_heads * config.d_kv
    mlp = (3 if config.is_gated_act else 2) * width * config.d_ff
    encoder = config.num_layers * (attention + mlp + 2 * width)
    decoder = config.num_decoder_layers * (2 * attention + mlp + 3 * width)
    once_a_stack = config.relative_attention_num_buckets * config.num_heads + width
    return encoder + decoder + 2 * once_a_stack + config.vocab_size * width
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-param-count-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("01-param-count", param_count)

# %%
n_llama = param_count(llama)
vocabulary = 2 * llama.vocab_size * llama.hidden_size
print(f"Llama-3-8B: {n_llama:,} parameters, {vocabulary / n_llama:.1%} of them in the vocabulary")
with torch.device("meta"):  # shapes without memory
    model = AutoModelForCausalLM.from_config(llama)
print(f"transformers:   {sum(p.numel() for p in model.parameters()):,}")
guesses.settle("share of the vocabulary", 100 * vocabulary / n_llama)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 13 %: two matrices of 128,256 × 4096 are 1.05 billion of the 8.03 billion parameters.
#
# </details>
#
# Your function takes the library's own configuration object. **In practice** you build the model on the *meta* device,
# as above, which needs no memory either. The formula is for the moment before there is any code. It shows at a glance
# what a vocabulary of 128 thousand tokens costs, and that the MLPs hold four fifths of the rest.

# %% [markdown]
# ## Add up weights, gradients and optimizer states
#
# A parameter is rarely stored only once. It has a gradient, the optimizer keeps one or two numbers for it, and a model
# that computes in 16 bits may keep a second copy in 32. Together these are the **model states**. The usual answer, "16
# bytes per parameter", is the total of quite different recipes.
#
# | recipe | what it does |
# |---|---|
# | `fp32` | everything in float32 |
# | `amp` | float32 weights; `torch.autocast` casts them to 16 bits for a product, and autograd keeps the cast until the backward pass has used it |
# | `fp16_master` | float16 weights and gradients; the optimizer updates a float32 master copy |
# | `huggingface` | as counted in Hugging Face's documentation: 16-bit weights and their float32 master copy, gradients in float32 |
# | `bf16` | everything in bfloat16, no master copy |
#
# What the optimizer keeps from step to step is called the **optimizer states**. They have the dtype of the weights that the optimizer
# updates, which are those of the master copy where there is one.

# %% [markdown]
# | optimizer | keeps |
# |---|---|
# | `sgd` | nothing |
# | `momentum` | a running mean of the gradients, for every element |
# | `adamw` | running means of the gradients and of their squares, for every element |
# | `adam8bit` | the same two, in one byte each (we leave out its scale factors, one for each block of elements) |
# | `adafactor` | running means of the squares, for every row and every column of a matrix instead of every element |
# | `adafactor_momentum` | the same, and a running mean of the gradients, for every element |
#
# Adafactor factors the last two axes of any tensor that has two or more: for the shape $(\dots, m, n)$ it keeps
# $(\dots, m)$ and $(\dots, n)$. A vector cannot be factored, so Adafactor keeps one number per element.

# %% [markdown]
# **Predict:** how many of the five recipes come to 16 bytes per parameter with AdamW?

# %% nbgrader={"grade": false, "grade_id": "01-predict-recipes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("recipes with 16 bytes", None, exact=True)

# %% [markdown]
# [[exercise 01-model-state-bytes]]
#
# Write two functions.
#
# - `model_state_bytes(shapes, recipe, optimizer)` gets the shapes of all parameters and a name from each of the two
#   tables. It returns a dict with the keys `"weights"`, `"master"`, `"gradients"` and `"optimizer"`, in bytes. Where
#   there is a master copy, `"weights"` are the 16-bit ones. The casts of `amp` are temporary: leave them out.
# - `gb_and_gib(n_bytes)` returns the amount in GB ($10^9$ bytes) and in GiB ($2^{30}$ bytes). Card makers and papers mix
#   the two, and they are 7.4 % apart.
#
# The check compares with the tensors that PyTorch's optimizers hold after a step.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Three of the four parts are the number of elements times a number of bytes, which depends only on the recipe. Write
# these bytes down in a table of five rows.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The bytes per element of (weights, master, gradients) are 4, 0, 4 for `fp32` and `amp`, and 2, 4, 2 for `fp16_master`.
# A number in the optimizer's states takes as many bytes as one of the master copy or, without a master copy, as one of
# the weights (in `adam8bit` one byte). Then count those numbers: 0, 1 or 2 per element, or rows and columns.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# For Adafactor sum over the shapes: `math.prod(s)` if `len(s) < 2`, else `math.prod(s[:-1]) + math.prod(s[:-2]) *
# s[-1]`. `math.prod(())` is 1, so a matrix needs no case of its own.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-model-state-bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def model_state_bytes(
    shapes: Sequence[tuple[int, ...]], recipe: str, optimizer: str
) -> dict[str, int]:
    """Bytes of "weights", "master", "gradients" and "optimizer" for parameters of these shapes."""
    ### BEGIN SOLUTION
    weights, master, gradients = {
        "fp32": (4, 0, 4),
        "amp": (4, 0, 4),
        "fp16_master": (2, 4, 2),
        "huggingface": (2, 4, 4),
        "bf16": (2, 0, 2),
    }[recipe]
    n = sum(math.prod(shape) for shape in shapes)
    factored = sum(
        math.prod(s) if len(s) < 2 else math.prod(s[:-1]) + math.prod(s[:-2]) * s[-1]
        for s in shapes
    )
    remembered = {
        "sgd": 0,
        "momentum": n,
        "adamw": 2 * n,
        "adam8bit": 2 * n,
        "adafactor": factored,
        "adafactor_momentum": factored + n,
    }[optimizer]
    state_bytes = 1 if optimizer == "adam8bit" else master or weights
    return {
        "weights": weights * n,
        "master": master * n,
        "gradients": gradients * n,
        "optimizer": state_bytes * remembered,
    }
    ### END SOLUTION


def gb_and_gib(n_bytes: float) -> tuple[float, float]:
    """An amount in GB (10**9 bytes) and in GiB (2**30 bytes)."""
    ### BEGIN SOLUTION
    return n_bytes / 10**9, n_bytes / 2**30
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-model-state-bytes-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("01-model-state-bytes", model_state_bytes, gb_and_gib)


# %%
def in_words(n_bytes: float) -> str:
    gb, gib = gb_and_gib(float(n_bytes))
    return f"{gb:,.2f} GB = {gib:,.2f} GiB"


totals = []
for recipe in ("fp32", "amp", "fp16_master", "huggingface", "bf16"):
    parts = model_state_bytes([(10**9,)], recipe, "adamw")
    per_parameter = {name: n_bytes // 10**9 for name, n_bytes in parts.items()}
    total = sum(parts.values())
    totals.append(total // 10**9)
    print(
        f"{recipe:12} {totals[-1]:3} bytes per parameter; 1 B parameters: {in_words(total)}  {per_parameter}"
    )
guesses.settle("recipes with 16 bytes", totals.count(16))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Three: `fp32`, `amp` and `fp16_master`. They share the 16 and differ in everything else.
#
# </details>
#
# So `amp` saves no memory on model states at all. During the forward and the backward pass it even takes up to 2 bytes
# per parameter more, for the casts of the weights.
#
# Now check three figures from lecture slides with your functions. One prints 14.90 "GB" for the states of 1 billion
# parameters. That is GiB, at 16 bytes per parameter; Hugging Face's 18 would make it 16.76. The second says that
# training 100 million parameters in fp32 takes "1.2 GB or higher", and prints 651.92 "GB" for 175 billion fp32 weights.
# The third lists what the optimizer of T5-3B takes: 24 GB for AdamW, 12 for Adafactor, 6 for 8-bit Adam.

# %%
n_t5 = param_count(T5Config(d_model=1024, d_kv=128, d_ff=16384, num_layers=24, num_heads=32))
for optimizer in ("momentum", "adamw"):
    small = sum(model_state_bytes([(10**8,)], "fp32", optimizer).values())
    print(f"100 M parameters in fp32, {optimizer + ':':10}", in_words(small))
print(
    "175 B weights in fp32:              ",
    in_words(model_state_bytes([(175 * 10**9,)], "fp32", "sgd")["weights"]),
)
print(f"T5-3B has {n_t5 / 1e9:.2f} B parameters. Its optimizer states, in fp32:")
with torch.device("meta"):
    t5 = AutoModel.from_config(
        T5Config(d_model=1024, d_kv=128, d_ff=16384, num_layers=24, num_heads=32)
    )
t5_shapes = [tuple(parameter.shape) for parameter in t5.parameters()]
for optimizer in ("adamw", "adam8bit", "adafactor", "adafactor_momentum"):
    n_bytes = model_state_bytes(t5_shapes, "fp32", optimizer)["optimizer"]
    print(f"  {optimizer:20} {n_bytes / 1e9:7.3f} GB = {n_bytes / 2**30:7.3f} GiB")

# %% [markdown]
# The 1.2 GB are SGD with momentum, 12 bytes per parameter; with Adam it is 1.6. The 651.92 are GiB, and the digits were
# cut off instead of rounded. The third slide rounds the model up to 3 billion parameters, and its Adafactor is the
# variant *with* a running mean of the gradients (the first moment). The variant that made Adafactor famous has none,
# and keeps 13 *mega*bytes.
#
# The same slide ends with the line "standard Adam 16 bytes, (8 × 3) 48 GB", which contradicts itself. Which of its
# numbers do not belong together?
#
# <details><summary>An answer</summary>
#
# 16 bytes × 3 billion are the 48 GB: weights, gradients and both moments in fp32. The bracket, 8 × 3, is the two
# moments alone, and makes the 24 GB of the slide's first line.
#
# </details>

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## See what the forward pass keeps
#
# The model states of Llama-3-8B in bf16 are 64 GB. At the peak of 867 GB, 48 of them were alive: all but the 16 GB of
# gradients. Temporary tensors took 105 GB. The other 714 GB are **activations**: results of the forward pass that the
# backward pass will read again. They grow with the batch and with the length of the text. Most rules of thumb get
# activations wrong, because their bytes depend on how the model is *written* and not just on its shape.

# %% [markdown]
# One question settles every case: **what does the backward pass of this operation read?**
#
# | operation | keeps |
# |---|---|
# | linear layer | its input |
# | product of two activations, such as `silu(gate) * up` | both |
# | sum, cast, rotation of queries and keys by fixed angles | nothing of its own |
# | SiLU | its input |
# | softmax | its result |
# | RMSNorm of `transformers` | its input cast to float32, and the normalized values in the model's dtype, which are then multiplied by the weight (the result is the input of the next linear layers) |
# | fused attention (`"sdpa"`) | queries, keys, values and its result; of the scores, one float32 per token and head |
# | cross-entropy | the log-probabilities of the whole vocabulary, in float32 |
#
# A tensor that two operations keep is stored once. A cast to the dtype that a tensor already has makes no copy.

# %% [markdown]
# This is a layer of Llama, in order. The tensor $x$ of width $h$ runs through all layers, and each part of a layer adds
# its result to it. It is called the **residual stream**.
#
# ```
# n = norm(x);  q, k, v = q_proj(n), k_proj(n), v_proj(n);  rotate q and k
# x = x + o_proj(attention(q, k, v))
# m = norm(x);  x = x + down_proj(silu(gate_proj(m)) * up_proj(m))
# ```
#
# After the last layer: `logits = lm_head(norm(x))`, then the loss, which casts the logits to float32.
#
# **Eager attention** (`"eager"`) does the same in single steps. It first repeats keys and values, so that every query
# head has its own copy. Then it computes the scores $q k^\top$, one number for each pair of tokens and each head; their
# softmax, in float32; the cast of the softmax back to the model's dtype; and the product with the values. Scaling and
# masking the scores keeps nothing. The whole square is stored, its masked half too.
#
# The figure draws every tensor that a layer of Llama-3-8B makes, to scale: grey is the residual stream, blue the
# attention with its norm, red the MLP with its norm. Go through it with the table above and decide for each bar: is it
# kept?

# %% tags=["figure"]
labkit.figures.llama_layer(llama)

# %% [markdown]
# **Predict:** with eager attention, at which length of the text do the scores take as much memory as everything else
# that a token keeps?

# %% nbgrader={"grade": false, "grade_id": "01-predict-scores", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("scores outweigh the rest", None, unit="tokens")

# %% [markdown]
# [[exercise 01-activation-bytes]]
#
# Write `activation_bytes(config, batch_size, seq_len, attention, dtype_bytes)` for a Llama. It returns the bytes that
# are alive after the forward pass, beyond weights and tokens, when your program holds on to the loss alone, not to the
# logits. `config` has the fields of the first table, `attention` is `"sdpa"` or `"eager"`, and `dtype_bytes` is 2 for
# bfloat16 and 4 for float32. There is no dropout. Add the bytes up yourself: measuring the model of `transformers` is
# the check's job. It allows 2 %, so you may leave out what has only a few numbers per token, such as a norm's scale or
# softmax's statistics.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Per token and layer, every term is a width times a number of bytes. Walk through the three lines of the layer and
# write down each tensor that an operation keeps, once. A norm has three: the float32 copy, the normalized values, and
# the result that the projections read.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# With $w$ = `dtype_bytes`: a norm keeps $(4 + 2w)h$. In float32 its "copy" is the residual stream itself, which is kept
# too. Fused attention keeps $w$ times the widths of q, k, v and its result; `o_proj` reads that same result. The MLP
# keeps four tensors of width $h_{ff}$. The end of the model adds a norm, and $4V$ per token for the loss.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In bfloat16 with fused attention, per token: a layer keeps $16h$ (two norms) $+\,4ad$ (queries and result) $+\,4kd$
# (keys and values) $+\,8h_{ff}$, and the end $8h + 4V$, with $a$ query heads, $k$ key-value heads and $d$ the head
# size. Eager attention keeps $8ad$ in place of $4ad + 4kd$, and the scores: the softmax's result, $4as$ per token, and
# its cast, $2as$, which in float32 is no copy.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-activation-bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def activation_bytes(
    config, batch_size: int, seq_len: int, attention: str, dtype_bytes: int = 2
) -> int:
    """Bytes that a Llama's forward pass keeps for the backward pass; attention is "sdpa" or "eager"."""
    ### BEGIN SOLUTION
    tokens, heads = batch_size * seq_len, config.num_attention_heads
    queries, keys = heads * config.head_dim, config.num_key_value_heads * config.head_dim
    norm = (4 + 2 * dtype_bytes) * config.hidden_size + 4

    if attention == "sdpa":  # queries, keys, values, result; one number a row and head
        attended = dtype_bytes * (2 * queries + 2 * keys) + 4 * heads
    else:  # keys and values repeated; softmax in float32, and its cast
        casts = 4 if dtype_bytes == 4 else 4 + dtype_bytes
        attended = dtype_bytes * 4 * queries + casts * heads * seq_len
    mlp = 4 * dtype_bytes * config.intermediate_size

    layer = 2 * norm + attended + mlp
    end = norm + 4 * config.vocab_size + 8  # the loss keeps the labels, too
    return (
        tokens * (config.num_hidden_layers * layer + end)
        + 2 * dtype_bytes * seq_len * config.head_dim
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-activation-bytes-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("01-activation-bytes", activation_bytes)

# %%
kept = activation_bytes(llama, 100, 1024, "sdpa", 2)
print("your sum:", in_words(kept))
print("measured:", in_words(whole.peak_by_category["activations"]))

# The bytes per token grow in a straight line with the length, and the scores are what grows.
short, long = (activation_bytes(llama, 1, n, "eager", 2) / n for n in (64, 128))
scores_per_length = (long - short) / 64
guesses.settle("scores outweigh the rest", short / scores_per_length - 64)

# %% tags=["figure"]
labkit.figures.kept_per_token(activation_bytes, llama)

# %% [markdown]
# With fused attention a token costs the same 7 MB in a short text and in a long one. In each layer the MLP keeps 115 kB
# per token, the norms 66 kB, and attention only 20 kB. With eager attention a token also pays for every other token.
# The weights are shared by all tokens: from 2300 tokens in a batch on, activations take more memory than the weights.
#
# <details><summary>Check your prediction</summary>
#
# Near 1200 tokens, which the ring in the figure marks. From there on the scores are more than half of what a token
# keeps.
#
# </details>

# %% [markdown]
# ### Two right answers
#
# A lecture prints 2.09 "TB" for these activations. Those are TiB, so it is 3.2 times your figure. Its calculator uses
# the sum of Korthikanti and others (2022) for a layer with *dropout* in three places, in float32, with eager attention
# and round numbers for the shape. Here it is, with $w$ = 4 bytes:


# %%
def lecture_activation_bytes(b, s, h, h_ff, L, a, V, w=4):
    """Activation bytes as the lecture's calculator counts them; a dropout mask takes one byte."""
    attention = b * s * h * (5 * w + 1) + (2 * w + 1) * a * b * s**2
    mlp = b * s * (w * h + 4 * w * h_ff + h)
    norms = 2 * b * s * h * w
    ends = b * s * (h + 2 * w * h + 4 * V)
    return L * (attention + mlp + norms) + ends


lecture = lecture_activation_bytes(b=100, s=1024, h=4096, h_ff=16384, L=32, a=32, V=32000)
print(f"the lecture's sum: {lecture / 1e12:.2f} TB = {lecture / 2**40:.2f} TiB")

# %% [markdown]
# Which of its assumptions matters most: float32, the stored scores, dropout, or the shape? Undo them one at a time,
# with your function.

# %%
round_shape = LLAMA_3_8B | dict(intermediate_size=16384, vocab_size=32000, num_key_value_heads=32)
rows = {"the lecture's sum": lecture}
for label, shape, attention, dtype_bytes in (
    ("Llama's layer, no dropout", round_shape, "eager", 4),
    ("bfloat16", round_shape, "eager", 2),
    ("fused attention", round_shape, "sdpa", 2),
    ("the real shape", LLAMA_3_8B, "sdpa", 2),
):
    rows[label] = activation_bytes(LlamaConfig(**shape), 100, 1024, attention, dtype_bytes)
layer_inputs = 32 * 100 * 1024 * 4096 * 2
only_ends = activation_bytes(
    LlamaConfig(**LLAMA_3_8B | dict(num_hidden_layers=0)), 100, 1024, "sdpa", 2
)
rows["checkpointing (lab 05)"] = layer_inputs + only_ends
for label, n_bytes in rows.items():
    print(f"{label:26} {n_bytes / 1e12:5.2f} TB = {n_bytes / 2**40:5.2f} TiB")

# %% [markdown]
# <details><summary>Which assumption matters most?</summary>
#
# It depends on the order. In this one bfloat16 saves 0.43 TB and then fused attention, which stores no scores, saves
# 0.64. The other way round, fused attention saves 0.43 TB and then bfloat16 0.65. The reason is that a score takes 4
# bytes in float32 but 6 in bfloat16, where the cast is a second copy. Leaving out dropout saves 0.56 TB, but the second
# row is only 0.45 TB below the first: a norm of `transformers` keeps three tensors where the lecture counts two, which
# adds 0.11. The shape matters least.
#
# </details>
#
# Nobody has miscounted: 2.09 TiB and 0.71 TB are the activations of two different programs.
#
# bfloat16 does not halve the sum, because the insides of norms, softmax and the loss stay in float32.
# **Checkpointing**, also called **recomputation**, keeps only the input of each layer and computes the rest a second
# time, so 0.08 TB are enough until the backward pass begins. A memory figure means nothing without its assumptions.
#
# The step needs more than its activations. The peak in the first cell also has weights, optimizer states and
# *temporary* tensors: 105 GB. They belong to the loss: its gradients with respect to the log-probabilities and with
# respect to the logits, both in float32, exist at the same moment as everything that the forward pass has kept. These
# are two tensors of $V$ numbers per token, so $8V$ bytes.

# %% [markdown]
# ## Measure two shallow models to know a deep one
#
# What if the model is not a Llama, and nobody has written down what its layers keep? Then measure, but not the whole
# model: whether that fits is exactly what you want to find out. All layers of a transformer are alike, so memory is a
# straight line in the number of layers,
#
# $$M(L) = M_{\text{once}} + L \cdot M_{\text{layer}},$$
#
# where embeddings, logits and the loss are in the first term. Two measurements of shallow models give both terms. This
# works for any architecture, and for time as well as for memory.

# %% [markdown]
# **Predict:** someone measures the peak with one layer and multiplies it by 32. How many times the true peak of
# Llama-3-8B is the result?

# %% nbgrader={"grade": false, "grade_id": "01-predict-one-layer", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("32 x one layer / true peak", None)

# %% [markdown]
# [[exercise 01-extrapolate]]
#
# Write `extrapolate(measured, n_layers)`. `measured` is a dict with two entries, depth → bytes, in any order and not
# always one layer apart. Return the bytes to expect at `n_layers`, as a float or an int. The check builds and measures
# the deep model, and allows 1 %.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Two points make a line. What is the slope, and through which of the points do you draw it?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The slope is the difference in bytes divided by the difference in depth; the order of the two cancels out. Start at
# either point and add the missing layers.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `(first, low), (second, high) = measured.items()`, the slope is `(high - low) / (second - first)`, and the answer is
# `low + (n_layers - first) * slope`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-extrapolate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def extrapolate(measured: Mapping[int, int], n_layers: int) -> float:
    """The bytes to expect at n_layers, from the bytes measured at two other depths."""
    ### BEGIN SOLUTION
    (first, low), (second, high) = measured.items()
    per_layer = (high - low) / (second - first)
    return low + (n_layers - first) * per_layer
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-extrapolate-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("01-extrapolate", extrapolate)

# %%
shallow = {depth: step_of_llama(num_hidden_layers=depth).peak_bytes for depth in (1, 2)}
print("1 layer: ", in_words(shallow[1]))
print("2 layers:", in_words(shallow[2]))
print("32 layers, by your line:    ", in_words(extrapolate(shallow, 32)))
print("32 layers, measured:        ", in_words(whole.peak_bytes))
print("32 layers, 32 times a layer:", in_words(32 * shallow[1]))
guesses.settle("32 x one layer / true peak", 32 * shallow[1] / whole.peak_bytes)

# %% tags=["figure"]
labkit.figures.depth_line(extrapolate, shallow, {32: whole.peak_bytes})

# %% [markdown]
# Your line matches the measurement to the last digit shown. Where such a line fails, something is not the same in every
# layer, or the peak has moved to another moment: with a small batch the optimizer's step is the most expensive moment,
# and it has a line of its own. Measure at the batch size at which you will train.
#
# <details><summary>Check your prediction</summary>
#
# About seven times: a line through the origin counts the vocabulary's logits and loss 32 times.
#
# </details>

# %%
shallow_recomputed = {
    depth: step_of_llama(num_hidden_layers=depth, checkpointing=True).peak_bytes for depth in (1, 2)
}
with_checkpointing = float(extrapolate(shallow_recomputed, 32))
print("everything kept:   ", in_words(whole.peak_bytes))
print("with checkpointing:", in_words(with_checkpointing))
print(
    f"temporary tensors of the loss: {whole.peak_by_category['temporaries'] / with_checkpointing:.0%} of this"
)

# %% [markdown]
# With checkpointing, the loss is the largest item of the step. This is why libraries such as Liger-Kernel compute the
# loss in slices and never hold all the logits.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Find the largest batch that fits
#
# The step either fits on the card or it does not, and the batch size decides. The usual way to find out is to try until
# the error "out of memory" goes away. You know the parts now, so a division gives the answer. There is one trap: the
# parts are not all alive *at the same time*. Here are two steps of a model with four layers, by category:
#
# %% tags=["figure"]
labkit.figures.memory_by_category(step_of_llama(num_hidden_layers=4))

# %% [markdown]
# Two moments can be the peak:
#
# | moment | alive |
# |---|---|
# | the backward pass begins | weights, optimizer states, activations, temporary tensors of the loss |
# | the optimizer steps | weights, optimizer states, gradients, temporary tensors of the update |
#
# At the first moment there are no gradients yet, because `zero_grad` has freed them after the previous step. At the
# second, the activations are gone. In between, the activations shrink while the gradients grow.

# %% [markdown]
# **Predict:** pure bf16 with AdamW, sequences of 1024 tokens, a card of 80 GiB: how many sequences of Llama-3-8B fit?

# %% nbgrader={"grade": false, "grade_id": "01-predict-batch", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("largest batch on 80 GiB", None, unit="sequences")

# %% [markdown]
# [[exercise 01-largest-batch]]
#
# Write `largest_batch(needs, card_bytes)`. It returns the largest number of sequences whose step fits, or 0 if not even
# one does. A step that fills the card to the last byte fits. `needs` is a dict of bytes with the keys `"weights"`,
# `"gradients"`, `"optimizer"`, `"activations_per_sequence"`, `"loss_per_sequence"` (the temporary tensors of the loss)
# and `"update"` (those of the optimizer's step). Ignore any other key. The optimizer states are there from the start.
# The check trains with your batch, and with one sequence more.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Only one of the two moments depends on the batch. The other one fits or does not, whatever the batch.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# First test the optimizer's step. Then see how much of the card weights and states leave free, and how many sequences
# fit into that; each takes its activations and its share of the loss.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `free = card_bytes - weights - optimizer`. Return 0 if `gradients + update > free`; else `free //
# (activations_per_sequence + loss_per_sequence)`, and 0 where `free` is negative.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-largest-batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_batch(needs: Mapping[str, int], card_bytes: int) -> int:
    """The most sequences with which a training step stays within card_bytes."""
    ### BEGIN SOLUTION
    free = card_bytes - needs["weights"] - needs["optimizer"]
    if needs["gradients"] + needs["update"] > free:
        return 0
    return free // (needs["activations_per_sequence"] + needs["loss_per_sequence"])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-largest-batch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("01-largest-batch", largest_batch)

# %% [markdown]
# Now put it all together: a configuration goes in, a batch comes out, and every number on the way is yours. AdamW
# updates one tensor after the other here. For the largest of them, a vocabulary matrix, it needs two temporary tensors
# of the same size.


# %%
def needs_of(config, seq_len: int) -> dict[str, int]:
    states = model_state_bytes([(param_count(config),)], "bf16", "adamw")
    return {
        **states,
        "activations_per_sequence": activation_bytes(config, 1, seq_len, "sdpa", 2),
        "loss_per_sequence": 8 * seq_len * config.vocab_size,
        "update": 2 * 2 * config.vocab_size * config.hidden_size,
    }


card_bytes = 80 * 2**30
n_sequences = int(largest_batch(needs_of(llama, 1024), card_bytes))
print(f"on a card of {in_words(card_bytes)}: {n_sequences} sequences of 1024 tokens")
guesses.settle("largest batch on 80 GiB", n_sequences)
for n in (n_sequences, n_sequences + 1):
    shallow_peaks = {
        depth: step_of_llama(n, num_hidden_layers=depth).peak_bytes for depth in (1, 2)
    }
    peak = extrapolate(shallow_peaks, 32)
    print(
        f"  with {n}, from two shallow models: {in_words(peak)}, {'fits' if peak <= card_bytes else 'does not fit'}"
    )

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Only 4. Weights and optimizer states take 48 GB of the card's 86, and each sequence 8 GB more.
#
# </details>
#
# A real card has less room than its label says: the CUDA context, the libraries' workspaces and the allocator's
# rounding take 1 to 3 GiB, and fragmentation may take more. **In practice** you leave a tenth free. `accelerate` offers
# `find_executable_batch_size`, which takes a tenth off the batch after each out-of-memory error (older versions half)
# until a step succeeds. It needs the card and some time, but no thinking.

# %% [markdown]
# ### The calculator
#
# Training on several cards divides some of the parts. **Tensor parallelism** $t$ splits every layer over $t$ cards (lab
# 17). Between the layers, every card would still hold all activations. **Sequence parallelism**, which we assume here,
# splits these too, by tokens. **ZeRO** splits the optimizer states (stage 1), also the gradients (2), and also the
# weights (3) over the cards that share the batch (lab 16). `recompute` is the checkpointing from above. The bars add up
# what your functions return, and $8V$ bytes per token for the loss.

# %% tags=["figure"]
plan = Plan(
    batch_size=4,
    seq_len=4096,
    tensor_parallel=2,
    data_parallel=8,  # groups of such cards, each with its own batch
    zero_stage=1,
    recompute=True,
    recipe="fp16_master",
)
labkit.figures.memory_bars(plan, param_count, model_state_bytes, activation_bytes)

# %% [markdown]
# Each bar adds one technique to the bar above. Look for the largest colour that is left in the last bar: attack that
# next. A bar is the sum of its parts, as if all were alive at once; the real peak is lower, as the two moments above
# show. (The bars leave out the temporary tensors of the update, which come when activations and loss are gone.)
#
# Here it is with sliders. Find a setting in which Llama-3-8B trains at 8192 tokens on cards of 24 GiB each, with as few
# cards as you can, by the length of the bars. Tensor parallelism over $t$ and ZeRO over $n$ need $t \cdot n$ cards.
#
# <details><summary>An answer</summary>
#
# Four, with bf16, one sequence and recomputation: $t = 4$ takes 18.8 GiB per card, and $t = 2$ with ZeRO-3 over $n = 2$
# takes 22.7. Two cards are not enough: $t = 2$ takes 37.7. One is hopeless, since the model states alone are 60 GiB.
#
# </details>

# %% tags=["figure"]
labkit.figures.memory_sliders(param_count, model_state_bytes, activation_bytes, plan)

# %% [markdown]
# ## Fit a scaling law before you pay for the large model
#
# Before you pay for a model ten times as large, you would like to know what it is worth. You cannot try it out: you can
# afford the large run only once. But the losses of language models fall so regularly that a few small runs show where a
# large one will end. The law that fits them has three numbers:
#
# $$L(N) = E + \frac{A}{N^{\alpha}}$$
#
# $N$ is the size in parameters (or in tokens or FLOPs: the form is the same). $L$ is now the loss, in nats per token
# (cross-entropy with the natural logarithm). $E$ is the **irreducible loss**, which even an infinite model would have,
# because the next word is not certain. $A / N^\alpha$ is the part that a larger model can reduce. With $\alpha =
# 0.076$, which Kaplan and others found in 2020, ten times the parameters divide this part by $10^{0.076} = 1.19$.

# %% [markdown]
# On two logarithmic axes $A / N^\alpha$ is a straight line with slope $-\alpha$, which any line fit finds. With $E$
# added it is *not* straight: the line bends and levels off at $E$. Fit a line through $\log L$ anyway and you get an
# exponent, and no warning.
#
# **Predict:** the true exponent is 0.34, and $E$ is 1.69. Which exponent does a straight line through $\log L$ show,
# over models from $10^7$ to $3 \cdot 10^{10}$ parameters?

# %% nbgrader={"grade": false, "grade_id": "01-predict-exponent", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("exponent of a straight line", None)

# %% [markdown]
# [[exercise 01-scaling-law]]
#
# Write `fit_scaling_law(size, loss)`, which returns three Python floats `(A, α, E)`. Both tensors are float64 with one
# entry per run. The exponents lie between 0.05 and 2.5, $E$ may be 0, and the losses have noise of up to 0.03 %. Your
# exponent may be off by 2 %, $A$ by as much as a 2 % error in the exponent changes it, and $E$ by 2 % of the smallest
# loss. With your three numbers, the law must match the losses of the table to 0.5 % on average. PyTorch, NumPy and
# Python's own library are there where answers are graded; SciPy is not.
#
# <details><summary>Hint 1: a nudge</summary>
#
# If you knew $E$, a line through $\log(L - E)$ would be all you need. If you knew $\alpha$, the rest would be even
# simpler. You know neither, but a computer can try a thousand values.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# For a fixed $\alpha$ the law is *linear* in $A$ and $E$: two unknowns, solved by least squares. Do this for many
# $\alpha$, and keep the one with the smallest relative errors. Then search again around it, on a finer grid.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# The basis is `torch.stack([x**-alpha, torch.ones_like(x)], -1) / loss[:, None]`, the target a column of ones, and
# `torch.linalg.lstsq(basis, target).solution` holds $A$ and $E$. Use `x = size / middle` with a size from the middle of
# the table, or the basis spans twenty powers of ten; at the end $A$ = solution × `middle**alpha`. `lstsq` solves a
# batch of problems at once: 41 exponents in each of eight rounds, each round between the neighbours of the last one's
# best.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-scaling-law", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fit_scaling_law(
    size: Float64[Tensor, "runs"], loss: Float64[Tensor, "runs"]
) -> tuple[float, float, float]:
    """Constant A, exponent α and irreducible loss E of loss = E + A * size ** -α."""
    ### BEGIN SOLUTION
    middle = size.log().mean().exp()  # in units of this, constant and exponent are independent
    low, high = 0.01, 2.6
    for _ in range(8):
        exponents = torch.linspace(low, high, 41, dtype=torch.float64)
        terms = (size / middle) ** -exponents[:, None]
        # For a fixed exponent, A and E solve a linear problem; dividing by the loss makes errors relative.
        basis = torch.stack([terms, torch.ones_like(terms)], -1) / loss[:, None]
        target = torch.ones_like(terms)[..., None]
        solved = torch.linalg.lstsq(basis, target).solution
        best = int((basis @ solved - target).square().sum((1, 2)).argmin())
        step, exponent = (high - low) / 40, exponents[best].item()
        low, high = max(exponent - step, 1e-3), exponent + step
    constant, irreducible = solved[best, :, 0].tolist()
    return constant * middle.item() ** exponent, exponent, irreducible
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-scaling-law-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("01-scaling-law", fit_scaling_law)

# %%
size = torch.logspace(7, 10.5, 24, dtype=torch.float64)
loss = 1.69 + 406.4 * size**-0.34
centred = size.log() - size.log().mean()
straight = -(centred * loss.log()).sum() / centred.square().sum()
print(f"straight line through log L: exponent {straight:.3f}")
guesses.settle("exponent of a straight line", straight)
constant, exponent, irreducible = fit_scaling_law(size, loss)
print(f"your fit:                    exponent {exponent:.3f}, irreducible loss {irreducible:.3f}")

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Less than a quarter of the true one, because most of the loss is $E$. Which exponent the line shows depends on the
# range of sizes. (Kaplan's law of 2020 had no $E$.)
#
# </details>
#
# Now measure a law yourself. The "models" below cut their input space into a grid of cells and learn one number for
# each cell, so $N$ is the number of cells. The test data have noise with a variance of 0.01, which no model can
# predict. Your function fits the runs with one, two and three inputs. Before you run it: which of the three has the
# largest exponent?


# %%
def runs_of_grid_models(n_inputs: int, cells_per_axis: list[int]) -> tuple[Tensor, Tensor]:
    """Sizes and test losses of models with one learned number per cell."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2, 100_000, n_inputs, generator=generator, dtype=torch.float64)
    y = torch.sin(3 * x).sum(-1)
    noisy = y[1] + 0.1 * torch.randn(100_000, generator=generator, dtype=torch.float64)
    losses = []
    for n in cells_per_axis:
        cell = ((x * n).long() * n ** torch.arange(n_inputs)).sum(-1)
        total = torch.zeros(n**n_inputs, dtype=torch.float64).index_add_(0, cell[0], y[0])
        learned = total / torch.bincount(cell[0], minlength=n**n_inputs)
        losses.append((learned[cell[1]] - noisy).square().mean())
    sizes = torch.tensor([n**n_inputs for n in cells_per_axis], dtype=torch.float64)
    return sizes, torch.stack(losses)


tables = {
    "1 input": runs_of_grid_models(1, [4, 6, 8, 12, 16, 24, 32]),
    "2 inputs": runs_of_grid_models(2, [4, 5, 6, 8, 10, 12, 16, 20, 24]),
    "3 inputs": runs_of_grid_models(3, [3, 4, 5, 6, 7, 8, 10, 12, 14]),
}

# %% tags=["figure"]
labkit.figures.scaling_law(fit_scaling_law, tables)

# %% [markdown]
# <details><summary>Which has the largest exponent?</summary>
#
# The one with one input. The exponents are close to 2, 1 and 2/3, which is two divided by the number of inputs: cells
# of half the width have a quarter of the error, but with $d$ inputs there are $2^d$ times as many of them.
#
# </details>
#
# All three level off near $E$ = 0.01, the variance of the noise. This is one explanation for the small exponents of
# language models: text lies in a space of many dimensions (Sharma and Kaplan, 2020).
#
# This is what the laws that were measured on language models say, and how the conclusions changed:
#
# - **The loss depends on size, data and compute, and hardly on shape.** A model that is ten times deeper and
#   correspondingly narrower, or has ten times as many, smaller heads, loses only a few percent (Kaplan, 2020). So you
#   may choose the shape that runs fastest.
# - **Larger models need fewer samples** to reach the same loss. Kaplan concluded: put most of a larger budget into
#   size, $N \propto C^{0.73}$, and stop long before convergence. GPT-3 followed: 175 B parameters, 300 B tokens.
# - **Size and data should grow together**, $N \propto C^{0.5}$, about 20 tokens per parameter (Hoffmann, 2022,
#   "Chinchilla"). Kaplan's runs had shared one learning-rate schedule, too long for the short ones.
# - **The model that is cheapest to train is not the cheapest to use.** Llama 3 8B saw 15 T tokens, 1900 per parameter:
#   you pay for training once, and for inference every day.

# %% [markdown]
# Chinchilla fits size and data together, $L = E + A / N^\alpha + B / D^\beta$, with $D$ in tokens. At a budget of
# $C = 6ND$ FLOPs the loss is smallest at
#
# $$N = \left(\frac{\alpha A}{\beta B}\right)^{\frac{1}{\alpha + \beta}} \left(\frac{C}{6}\right)^{\frac{\beta}{\alpha + \beta}}$$
#
# Below are the paper's constants, and those that Besiroglu and others got from the same runs in 2024 with a fit that
# had converged. The exponents differ by 0.01 and 0.09. By how much do the best sizes differ? Guess before you run it.


# %%
def best_size(compute: float, A: float, alpha: float, B: float, beta: float) -> float:
    balance = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    return balance * (compute / 6) ** (beta / (alpha + beta))


for name, law in {
    "as published": (406.4, 0.34, 410.7, 0.28),
    "fitted again": (482.01, 0.3478, 2085.43, 0.3658),
}.items():
    for budget, compute in (("GPT-3's", 3.15e23), ("Chinchilla's", 5.88e23)):
        N = best_size(compute, *law)
        D = compute / (6 * N)
        print(
            f"{name}, {budget:13} {compute:.2e} FLOPs: {N / 1e9:4.0f} B parameters, "
            f"{D / 1e12:.1f} T tokens, {D / N:3.0f} per parameter"
        )

# %% [markdown]
# <details><summary>By how much?</summary>
#
# The sizes by a factor of two, and the tokens per parameter by a factor of five.
#
# </details>
#
# Only the second fit agrees with Chinchilla itself, 70 B parameters and 1.4 T tokens: the paper chose that size by two
# other methods. $\beta$ moved by a third and its constant by a factor of five, and that is enough.
#
# **In practice** such fits use a robust loss (Huber's, on $\log L$), many starting points, and error bars from
# resampled runs. They extrapolate by a factor of ten or a hundred, not of a million.

# %% [markdown]
# ## See why FLOPs are not time
#
# In one layer of BERT, 99.8 % of the FLOPs are in matrix products. On a V100 these took 61 % of the time. **What took
# the other 39 % of the time, with 0.2 % of the FLOPs?** An operator has to compute, and it has to move its numbers
# between memory and chip. They overlap, so the slower one sets the time:
#
# $$t \ge \max\left(\frac{\text{FLOPs}}{\text{peak rate}},\; \frac{\text{bytes}}{\text{bandwidth}}\right)$$
#
# FLOPs / bytes is called **arithmetic intensity**. Where it is below peak rate / bandwidth, the **threshold** of the
# chip, the operator is **memory-bound**: with half the FLOPs it would take just as long. Above the threshold it is
# **compute-bound**.

# %% [markdown]
# **The peak rate** follows from the data sheet. A streaming multiprocessor (SM) starts a number of fused multiply-adds
# (FMA) in each clock cycle, and each of them is *two* operations:
#
# $$\text{peak rate} = n_{\text{SM}} \cdot \text{FMA per clock and SM} \cdot 2 \cdot \text{clock}$$
#
# **FLOPs** of an operator: every addition, subtraction, multiplication, division, comparison and exponential counts as
# one. Work done once per row, such as a square root, is not counted.
#
# | operator | reads | writes | FLOPs |
# |---|---|---|---|
# | `add` | two tensors (rows, cols) | (rows, cols) | 1 per element |
# | `softmax`, over cols | (rows, cols) | (rows, cols) | 5 per element: maximum, subtraction, exponential, sum, division |
# | `layernorm`, over cols | (rows, cols), weight and bias (cols) each | (rows, cols) | 7 per element: mean, subtraction, square, sum, times 1/σ, times weight, plus bias |
# | `linear`, no bias | (rows, cols), weight (cols, n_out) | (rows, n_out) | a multiplication and an addition for each of rows · cols · n_out |
#
# **Bytes**: each input is read once and the result is written once. Intermediate results stay on the chip.

# %% [markdown]
# **Predict:** fp16 numbers have 2 bytes. What is the intensity of a product of two 1024 × 1024 matrices, in FLOP per
# byte?

# %% nbgrader={"grade": false, "grade_id": "01-predict-intensity", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("intensity of a matrix product", None, unit="FLOP/B")

# %% [markdown]
# [[exercise 01-arithmetic-intensity]]
#
# Write three small functions.
#
# - `peak_flops(n_sms, fma_per_clock, clock_hz)`: FLOP/s, with the FMAs per clock of *one* SM.
# - `operator_cost(operator, rows, cols, n_out, itemsize)`: `(FLOPs, bytes)` by the table above. `operator` is one of its
#   four names, `n_out` matters for `linear` only, and `itemsize` is the bytes of one number.
# - `least_time(flops, n_bytes, peak, bandwidth)`: `(seconds, bound)`, where `bound` is `"compute"` or `"memory"`
#   (either, if both take equally long).
#
# <details><summary>Hint 1: a nudge</summary>
#
# For the bytes of an operator, list its tensors (all of them, the result too), and write the number of elements beside
# each.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Layer norm moves 2 · rows · cols + 2 · cols numbers. A linear layer moves rows · cols + cols · n_out + rows · n_out,
# and for each of its rows · n_out results it takes cols multiplications and as many additions.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `peak_flops` is a product of four factors, one of them 2. In `least_time`, work out `flops / peak` and `n_bytes /
# bandwidth`, and return the larger one with the name that belongs to it.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-arithmetic-intensity", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peak_flops(n_sms: int, fma_per_clock: int, clock_hz: float) -> float:
    """The peak rate of a chip in FLOP/s; fma_per_clock is that of one SM."""
    ### BEGIN SOLUTION
    return n_sms * fma_per_clock * 2 * clock_hz
    ### END SOLUTION


def operator_cost(
    operator: str, rows: int, cols: int, n_out: int, itemsize: int
) -> tuple[int, int]:
    """FLOPs and bytes of "add", "softmax", "layernorm" or "linear"; n_out is used by the last alone."""
    ### BEGIN SOLUTION
    if operator == "linear":
        flops = 2 * rows * cols * n_out
        n_numbers = rows * cols + cols * n_out + rows * n_out
    else:
        flops = {"add": 1, "softmax": 5, "layernorm": 7}[operator] * rows * cols
        n_numbers = {"add": 3, "softmax": 2, "layernorm": 2}[operator] * rows * cols
        n_numbers += 2 * cols if operator == "layernorm" else 0
    return flops, n_numbers * itemsize
    ### END SOLUTION


def least_time(flops: float, n_bytes: float, peak: float, bandwidth: float) -> tuple[float, str]:
    """The least time in seconds, and what it is bound by: "compute" or "memory"."""
    ### BEGIN SOLUTION
    compute_s, memory_s = flops / peak, n_bytes / bandwidth
    return (compute_s, "compute") if compute_s > memory_s else (memory_s, "memory")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-arithmetic-intensity-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("01-arithmetic-intensity", peak_flops, operator_cost, least_time)

# %%
print("fp16, on an A100 with 312 TFLOP/s and 2039 GB/s:")
for operator in (
    ("add", 1024, 1024, 0, 2),
    ("softmax", 1024, 1024, 0, 2),
    ("layernorm", 1024, 1024, 0, 2),
    ("linear", 1, 1024, 1024, 2),
    ("linear", 1024, 1024, 1024, 2),
):
    flops, n_bytes = operator_cost(*operator)
    seconds, bound = least_time(flops, n_bytes, 312e12, 2039e9)
    print(
        f"{operator[0]:10}{operator[1]:5} rows {flops / n_bytes:8.2f} FLOP/B {1e6 * seconds:6.2f} µs, {bound}-bound"
    )
guesses.settle("intensity of a matrix product", flops / n_bytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 341: $2 \cdot 1024^3$ FLOPs over $3 \cdot 1024^2$ numbers of 2 bytes. An addition has an intensity of 1/6.
#
# </details>
#
# The same linear layer with a single row, which is how text is generated, does not even reach 1. A layer is not
# compute-bound or memory-bound in itself: its *shape* decides.
#
# **Find the slip.** A slide gives the threshold of the A100 as 143 FLOP/B, from the same 312 TFLOP/s and 2039 GB/s.
# Divide them. Which unit turns the right figure into 143?

# %%
threshold = 312e12 / 2039e9
print(f"312 TFLOP/s / 2039 GB/s = {threshold:.0f} FLOP/B")

# %% [markdown]
# <details><summary>Which unit?</summary>
#
# GiB. Bandwidths are given in GB of $10^9$ bytes, and the slide divided by GiB: $312 \cdot 10^{12} / (2039 \cdot
# 2^{30})$ is 142.5.
#
# </details>
#
# Seven percent is not much, but GB and GiB meet in every formula of this lab, and each time the same seven percent
# hides there.
#
# **Two wrong cells.** Tables of tensor-core rates are copied from slide to slide, and so are their mistakes. The table
# below gives the rates of four generations, in TFLOP/s (for integers in TOP/s), for dense matrices: no element is
# skipped. We have put two of the usual mistakes into its last two columns. (SXM is the form of the GPU for servers, and
# its rates are higher than those of the PCIe card.) In each generation, half the bits means twice the FMAs per clock,
# *if* the tensor cores support that format. Find the two cells with `peak_flops` and the data sheets before you run the
# next cell.
#
# | GPU | SMs | boost clock | FMA per clock and SM, FP16 | FP16 | TF32 | INT8 | INT4 |
# |---|---|---|---|---|---|---|---|
# | V100 SXM2 | 80 | 1.53 GHz | 512 | 125 | – | – | – |
# | T4 | 40 | 1.59 GHz | 512 | 65 | – | 130 | 260 |
# | A100 SXM | 108 | 1.41 GHz | 1024 | 312 | 156 | 1248 | 1248 |
# | H100 SXM | 132 | 1.83 GHz | 2048 | 989 | 495 | 1979 | 3958 |

# %%
formats = {"TF32": 0.5, "FP16": 1, "INT8": 2, "INT4": 4}  # FMAs per clock, FP16 = 1
gpus = {
    "V100": (80, 512, 1.53e9, 900e9, ("FP16",)),
    "T4": (40, 512, 1.59e9, 320e9, ("FP16", "INT8", "INT4")),
    "A100": (108, 1024, 1.41e9, 2039e9, ("TF32", "FP16", "INT8", "INT4")),
    "H100": (132, 2048, 1.83e9, 3352e9, ("TF32", "FP16", "INT8")),
}
print("TFLOP/s" + "".join(f"{name:>8}" for name in formats) + "    FP16 threshold")
for name, (n_sms, fma, clock_hz, bandwidth, supported) in gpus.items():
    rates = {f: peak_flops(n_sms, int(fma * k), clock_hz) for f, k in formats.items()}
    cells = [f"{rates[f] / 1e12:8.0f}" if f in supported else f"{'–':>8}" for f in formats]
    print(f"{name:7}{''.join(cells)}{rates['FP16'] / bandwidth:10.0f} FLOP/B")

# %% [markdown]
# <details><summary>Which two?</summary>
#
# The A100's INT8 rate is 624 TOP/s. 1248 is its rate with *sparsity*, where two of every four weights are zero and
# skipped. And the H100 has no INT4: the formula would give 3958, but Hopper's tensor cores no longer support that
# format. The formula does not say this, nor that the tensor cores of the V100 and the T4 have no TF32 and those of the
# V100 no integers.
#
# </details>
#
# The formula tells you whether a rate is possible; the data sheet tells you whether it exists.
#
# Read the last column, too. From A100 to H100 the FP16 rate grew by a factor of 3.2, but the bandwidth only by 1.6.
# What was compute-bound on the A100 may be memory-bound on the H100.
#
# **The roofline** shows all of this in one picture, for the machine in front of you. Your `least_time` draws the roof,
# from the rates of a copy and of a matrix product that are timed now. The points are operators, also timed now, at the
# FLOPs and bytes of your `operator_cost`. Which points will lie left of the threshold?

# %% tags=["figure"]
labkit.figures.roofline(operator_cost, least_time)

# %% [markdown]
# <details><summary>Which points lie on the left?</summary>
#
# All but the linear layers with many rows. Memory limits the others, however well they are written.
#
# </details>
#
# Look at the triangles, labelled with their number of rows. From 1 to 512 rows the same layer moves to the right by a
# factor of 410, because its weight is read once for all rows.
#
# A point can reach the roof, but need not. Softmax has exponentials, which we count as one operation and which take
# several, and a product with few rows may stay below both limits. A point can lie above the slope if its data fit into
# a cache, which is faster than the memory that set the slope. On a busy machine points sink, and the roof may be too
# low, so that points lie above it: run the cell again.

# %% [markdown]
# **Shares of FLOPs, shares of time.** Back to the question at the start. The next cell adds up the forward pass of one
# layer of BERT-large (8 sequences of 512 tokens) by class of operator, with your functions, for a V100. Each bias,
# dropout, activation and residual connection counts as an addition, and each operator is a kernel of its own.

# %%
b, s, h, a = 8, 512, 1024, 16
layer = {
    "matrix products": [
        (4, ("linear", b * s, h, h, 2)),  # query, key, value, output
        (b * a, ("linear", s, h // a, s, 2)),  # scores
        (b * a, ("linear", s, s, h // a, 2)),  # scores times values
        (1, ("linear", b * s, h, 4 * h, 2)),
        (1, ("linear", b * s, 4 * h, h, 2)),
    ],
    "normalization": [
        (1, ("softmax", b * a * s, s, 0, 2)),
        (1, ("add", b * a * s, s, 0, 2)),  # dropout of the scores
        (2, ("layernorm", b * s, h, 0, 2)),
    ],
    "element-wise": [
        (2, ("add", b * s, 4 * h, 0, 2)),  # bias and activation between the last two products
        (9, ("add", b * s, h, 0, 2)),  # five biases, two dropouts, two residual connections
    ],
}
flops = {name: sum(n * operator_cost(*op)[0] for n, op in ops) for name, ops in layer.items()}
least_s = {
    name: sum(n * least_time(*operator_cost(*op), 125e12, 900e9)[0] for n, op in ops)
    for name, ops in layer.items()
}
published = {"matrix products": 0.61, "normalization": 0.255, "element-wise": 0.135}

# %% tags=["figure"]
all_flops, all_s = sum(flops.values()), sum(least_s.values())
labkit.figures.flops_against_time(
    {name: (flops[name] / all_flops, least_s[name] / all_s, published[name]) for name in layer}
)

# %% [markdown]
# The operators with 0.3 % of the FLOPs (0.2 % by the authors' own count) move more than twice the bytes of the products
# (797 MB against 344) and take nearly as long: 47 % of the least time, where 39 % was measured. The red bars are from
# Ivanov and others (2021). They timed forward *and* backward, in a framework that had fused some of the element-wise
# operators into their neighbours. Fusing is the cure: an operator that never writes its result to memory does not wait
# for memory. You will do it in labs 11 and 12.

# %% [markdown]
# ## Turn FLOPs into days and dollars
#
# A product of $r$ rows with a weight of $P$ parameters takes $2rP$ FLOPs. The forward pass is one such product: 2 FLOPs
# per parameter and token. The backward pass needs two, one for the gradient of the input and one for the gradient of
# the weight: 4 FLOPs. Together a training step takes 6. With **full recomputation**, where the backward pass runs every
# layer's forward pass again (the checkpointing from above; lab 05), there are 2 more, so 8:
#
# $$\text{days} = \frac{8\,T\,P}{n_\text{GPU}\,X \cdot 86400} \quad\text{or}\quad \frac{6\,T\,P}{n_\text{GPU}\,X \cdot 86400}$$
#
# with $T$ tokens, $P$ parameters, $n_\text{GPU}$ GPUs, and $X$ the FLOP/s that a GPU really achieves, not its peak
# rate. (Below, 8TP and 6TP are these products, not tensor parallelism.)

# %% [markdown]
# This leaves out the products of the attention, which have no weights. For GPT's shape with batch $b$, sequence length
# $s$, $L$ layers, width $h$ and vocabulary $V$, one iteration with full recomputation takes
#
# $$F = 96\,b\,s\,L\,h^2 \left(1 + \frac{s}{6h} + \frac{V}{16\,L\,h}\right)$$
#
# FLOPs (Narayanan and others, 2021). The three terms are the linear layers, $12 h^2$ weights in each of $L$; the two
# products of the attention; and the output layer, which is *not* recomputed.
#
# **MFU**, the model FLOPs utilization, is the share of the peak rate that went into the model: $6TP$ divided by what
# the GPUs could have done in their time. Recomputation is not progress, so it does not count (Chowdhery and others,
# 2022).
#
# **Predict:** GPT-3 has 175 B parameters and saw 300 B tokens. How many days does that take on 480 GPUs at 140 TFLOP/s
# each, with recomputation?

# %% nbgrader={"grade": false, "grade_id": "01-predict-days", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("training GPT-3", None, unit="days")

# %% [markdown]
# [[exercise 01-compute-days]]
#
# Write four functions.
#
# - `flops_per_iteration(batch, seq, n_layers, hidden, vocab, recompute)`: $F$, or its counterpart without
#   recomputation. Which of the three terms change then?
# - `training_days(n_params, n_tokens, n_gpus, flops_per_gpu, recompute)`: by 8TP or 6TP.
# - `training_dollars(days, n_gpus, dollars_per_gpu_hour)`.
# - `mfu(n_params, n_tokens, gpu_hours, peak_flops)`: a fraction between 0 and 1.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Take $F$ apart: which FLOPs belong to one forward pass of the layers, and how many times are they computed?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Forward, the layers take $L\,(24 b s h^2 + 4 b s^2 h)$ FLOPs and the output layer $2 b s h V$. With recomputation the
# layers count $1 + 1 + 2 = 4$ times, without it 3 times; the output layer 3 times in both.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `(4 if recompute else 3) * layers + 6 * batch * seq * hidden * vocab`. A day has 86,400 seconds, a GPU-hour 3600.
# `mfu` is `6 * n_tokens * n_params` over `gpu_hours * 3600 * peak_flops`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "01-compute-days", "locked": false, "schema_version": 3, "solution": true, "task": false}
def flops_per_iteration(
    batch: int, seq: int, n_layers: int, hidden: int, vocab: int, recompute: bool
) -> float:
    """FLOPs of one training iteration of GPT's shape, forward and backward, all sequences together."""
    ### BEGIN SOLUTION
    layers = n_layers * (24 * batch * seq * hidden**2 + 4 * batch * seq**2 * hidden)
    output = 2 * batch * seq * hidden * vocab
    return (4 if recompute else 3) * layers + 3 * output
    ### END SOLUTION


def training_days(
    n_params: float, n_tokens: float, n_gpus: int, flops_per_gpu: float, recompute: bool
) -> float:
    """Days of a run whose GPUs achieve flops_per_gpu FLOP/s each: 8TP or 6TP FLOPs."""
    ### BEGIN SOLUTION
    flops = (8 if recompute else 6) * n_tokens * n_params
    return flops / (n_gpus * flops_per_gpu) / 86_400
    ### END SOLUTION


def training_dollars(days: float, n_gpus: int, dollars_per_gpu_hour: float) -> float:
    """The bill for n_gpus over this many days."""
    ### BEGIN SOLUTION
    return days * 24 * n_gpus * dollars_per_gpu_hour
    ### END SOLUTION


def mfu(n_params: float, n_tokens: float, gpu_hours: float, peak_flops: float) -> float:
    """The model's FLOPs, 6TP, as a fraction of what the GPUs could have done at peak_flops FLOP/s each."""
    ### BEGIN SOLUTION
    return 6 * n_tokens * n_params / (gpu_hours * 3600 * peak_flops)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-compute-days-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("01-compute-days", flops_per_iteration, training_days, training_dollars, mfu)

# %%
with_it = float(training_days(175e9, 300e9, 480, 140e12, recompute=True))
without = float(training_days(175e9, 300e9, 480, 140e12, recompute=False))
n_iterations = 300e9 / 2048  # with one sequence each; the batch does not matter here
all_terms = n_iterations * float(flops_per_iteration(1, 2048, 96, 12288, 51200, True))
for name, days in (
    ("8TP, with recomputation", with_it),
    ("6TP, without", without),
    ("F, all three terms", all_terms / (480 * 140e12) / 86400),
):
    dollars = float(training_dollars(days, 480, 2.0))
    print(f"{name:25}{days:5.1f} days, $ {dollars / 1e6:.2f} M at $ 2 per GPU-hour")
guesses.settle("training GPT-3", with_it)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# The 72.3 days that lectures quote for GPT-3 come from 8TP. A quarter of that is recomputation: with enough memory to
# do without it, it would be 54.3 days.
#
# </details>
#
# The full formula says 74.1 days: at this width, attention and the output layer hardly matter.
#
# **In practice** PyTorch counts for you. The next cell compares $F$ with `FlopCounterMode` on tiny models of
# `transformers`, under full recomputation: GPT-2's shape with the attention written out, the same with a fused
# attention kernel, and a Llama shape. Which of the three will match?


# %%
from functools import partial

from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2Config, GPT2LMHeadModel, LlamaForCausalLM


def counted_flops(model: torch.nn.Module, layers: torch.nn.ModuleList, seq: int) -> int:
    """FLOPs of a forward and backward pass with full recomputation, as PyTorch counts them."""
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
    tokens = torch.zeros(1, seq, dtype=torch.long)
    with set_checkpoint_early_stop(False), FlopCounterMode(display=False) as counter:
        model(tokens, use_cache=False).logits.sum().backward()
    return counter.get_total_flops()


def small_gpt2(attention: str) -> GPT2LMHeadModel:
    no_dropout = dict(attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)
    shape = dict(n_embd=48, n_layer=4, n_head=6, n_positions=64, vocab_size=512)
    special = dict(bos_token_id=None, eos_token_id=None, attn_implementation=attention)
    return GPT2LMHeadModel(GPT2Config(**shape, **special, **no_dropout))


written_out, fused = small_gpt2("eager"), small_gpt2("sdpa")
tiny_llama = LlamaForCausalLM(
    LlamaConfig(
        hidden_size=48,
        intermediate_size=144,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=1,
        vocab_size=512,
        attn_implementation="eager",
    )
)
by_formula = flops_per_iteration(1, 64, 4, 48, 512, True)
counted = {}
for name, model, layers in (
    ("GPT-2's shape, attention written out", written_out, written_out.transformer.h),
    ("GPT-2's shape, fused attention", fused, fused.transformer.h),
    ("Llama's shape, one key-value head", tiny_llama, tiny_llama.model.layers),
):
    counted[name] = counted_flops(model, layers, 64)
    by_8tp = 8 * 64 * param_count(model.config)
    print(
        f"{name:38} counted / F = {counted[name] / by_formula:.2f},"
        f" counted / 8TP = {counted[name] / by_8tp:.2f}"
    )

# %% [markdown]
# <details><summary>Which of the three?</summary>
#
# The first, exactly. The second does not do less work: the counter of PyTorch 2.13 has no formula for the CPU's fused
# kernel and leaves out all of its FLOPs, here 16 % of the whole. (It would also count less if you left out
# `set_checkpoint_early_stop(False)`: PyTorch stops recomputing a layer as soon as the backward pass has what it needs,
# which can save the layer's last product.)
#
# The third differs for a real reason. Count the weights of a layer in units of $h^2$. GPT has 12: 3 for query, key and
# value, 1 for the output, and 8 for the two linear layers after it. Here the smaller key and value and the three
# matrices of width $3h$ make $2 + 2/6 + 9 = 11.3$.
#
# </details>
#
# A counter counts only the operations that it has a formula for, and $F$ is for one shape only. 8TP and 6TP work for any shape, with the
# true number of parameters: here within about ten percent for the two models that are counted in full. They hold where
# $P$ is much larger than the input embedding, which is looked up and not multiplied, and $s$ much smaller than $6h$.

# %% [markdown]
# **Published runs.** Meta states the GPU-hours of the Llama 3.1 models, on H100s with a peak of 989 TFLOP/s, for 15 T
# tokens each. The second table is Megatron's (Narayanan and others, 2021), on A100s with full recomputation: the rate
# of each GPU, counted by $F$, as a share of 312 TFLOP/s. The last column has the MFU of the same runs.

# %%
for name, n_params, gpu_hours in (
    ("8B", 8e9, 1.46e6),
    ("70B", 70e9, 7.0e6),
    ("405B", 405e9, 30.84e6),
):
    dollars = float(training_dollars(gpu_hours / 24, 1, 2.0))
    share = float(mfu(n_params, 15e12, gpu_hours, 989e12))
    print(
        f"Llama 3.1 {name:5}{gpu_hours / 1e6:6.2f} M GPU-hours,",
        f"$ {dollars / 1e6:5.2f} M at $ 2 per hour, MFU {share:.1%}",
    )

print("\nMegatron  TFLOP/s per GPU   of peak    MFU")
for n_params, n_layers, hidden, batch, achieved in (
    (1.7e9, 24, 2304, 512, 137e12),
    (7.5e9, 36, 4096, 512, 142e12),
    (39.1e9, 48, 8192, 1536, 138e12),
    (145.6e9, 80, 12288, 2304, 148e12),
    (529.6e9, 105, 20480, 2520, 163e12),
    (1008e9, 128, 25600, 3072, 163e12),
):
    gpu_hours = flops_per_iteration(batch, 2048, n_layers, hidden, 51200, True) / achieved / 3600
    share = mfu(n_params, batch * 2048, gpu_hours, 312e12)
    print(f"{n_params / 1e9:7.1f}B{achieved / 1e12:12.0f}{achieved / 312e12:15.0%}{share:9.1%}")

# %% [markdown]
# Megatron's share of peak, 44 % to 52 %, is the printed rate divided by 312. Their MFU is three quarters of that or
# less: the last quarter is recomputation (and attention, which 6TP leaves out).
#
# For the 405B model Meta reports an MFU of 38 to 43 % while it runs. The GPU-hours give 33 %, because they also pay for
# restarts, long-context training and what came after pre-training. The bill is made from hours, not from MFU.
#
# Why do the smaller models reach only 14 % and 25 %? Part of the answer is what 6TP leaves out. By $F$ the attention
# adds a share of $s / 6h$, and with 8192 tokens that is a third for the 8B model ($h$ = 4096), a sixth for 70B and a
# twelfth for 405B. That makes 18 %, 29 % and 36 %. The model card does not explain the rest.
#
# **A sanity check for any claim.** Narayanan and others also write that GPT-3 would take 288 years on a single V100.
# Divided by the number of GPUs, this is 36 years on a DGX with eight of them, and seven months on 512 of them. Which
# rate per GPU does that assume, and is it plausible, given a peak of 125 TFLOP/s?

# %%
years_at_1_tflops = float(training_days(175e9, 300e9, 1, 1e12, recompute=True)) / 365
implied = years_at_1_tflops / 288
print(f"288 years on one V100: {implied:.0f} TFLOP/s, {implied / 125:.0%} of the peak rate")
for n_gpus in (8, 512):
    days = float(training_days(175e9, 300e9, n_gpus, implied * 1e12, recompute=True))
    print(
        f"{n_gpus:5} of them: {days / 365:5.2f} years, {days / 30.4:5.1f} months, {days / 7:5.0f} weeks"
    )

# %% [markdown]
# <details><summary>Is it plausible?</summary>
#
# Yes: 46 TFLOP/s are 37 % of the peak. The three figures are one figure, divided by 1, 8 and 512.
#
# </details>
#
# **One layer, measured.** All of this needs $X$, the rate that is really achieved, and no data sheet has it. In
# practice you run *one* layer of your model, with your batch, on your GPU, forward and backward, and multiply by the
# number of layers. This includes everything that the formulas leave out: slow shapes, memory-bound operators, launches.
# Here is one layer on one core of this machine, and then six of them, to see how well that works.


# %% tags=["varies"]
def encoder(n_layers: int) -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, n_layers)


def step_seconds(model: torch.nn.Module) -> float:
    """Forward and backward with 4 sequences of 128 tokens."""
    x = torch.randn(4, 128, 256, requires_grad=True)
    start = time.perf_counter()
    model(x).sum().backward()
    return time.perf_counter() - start


n_threads = torch.get_num_threads()
torch.set_num_threads(1)  # one core is disturbed least by what else is running
# In turns for two seconds, so that a busy moment meets both; the fastest counts, which is never the first.
one_layer, six_layers, turns = encoder(1), encoder(6), []
until = time.perf_counter() + 2
while len(turns) < 3 or time.perf_counter() < until:
    turns.append((step_seconds(one_layer), step_seconds(six_layers)))
one, six = (min(times) for times in zip(*turns))
torch.set_num_threads(n_threads)
achieved = float(flops_per_iteration(4, 128, 1, 256, 0, False)) / one
print(f"one layer:  {1e3 * one:.1f} ms, {achieved / 1e9:.0f} GFLOP/s achieved")
print(f"six layers: {1e3 * six:.1f} ms measured, {6e3 * one:.1f} ms = six times one layer")
days = float(training_days(124e6, 2.5e9, 1, achieved, recompute=False))
print(f"GPT-2 small on 2.5 B tokens, 20 per parameter, on this core: {days:,.0f} days")

# %% [markdown]
# On a quiet machine the two agree within ten or twenty percent, after a measurement of two seconds. If they are far
# apart here, something else is using your processor: run the cell again. With several GPUs, add the communication,
# which lab 14 measures.

# %% [markdown]
# ## What you measured
#
# The left column is your estimate or, for the exponent, the theory. The right column is the measurement.


# %% tags=["varies"]
def state(part: str) -> int:
    return model_state_bytes([(n_llama,)], "bf16", "adamw")[part]


at_peak, tiny = whole.peak_by_category, "GPT-2's shape, attention written out"
summary = {
    "parameters": lambda: (state("weights") / 1e9, at_peak["parameters"] / 1e9, ".1f", "GB"),
    "optimizer states": lambda: (state("optimizer") / 1e9, at_peak["optimizer"] / 1e9, ".1f", "GB"),
    "kept by the forward pass": lambda: (kept / 1e9, at_peak["activations"] / 1e9, ".1f", "GB"),
    "peak, from one and two layers": lambda: (
        *(extrapolate(shallow, 32) / 1e9, whole.peak_bytes / 1e9, ".1f", "GB"),
    ),
    "largest batch on 80 GiB, sequences of 1024": lambda: (n_sequences, "fits", "", ""),
    "exponent of grid models with two inputs": lambda: (
        *(2 / 2, fit_scaling_law(*tables["2 inputs"])[1], ".2f", ""),
    ),
    "an iteration of a tiny GPT-2": lambda: (by_formula / 1e6, counted[tiny] / 1e6, ".1f", "MFLOP"),
    "six layers, from one": lambda: (6e3 * one, 1e3 * six, ".1f", "ms"),
}
print(f"{'Llama-3-8B, bf16, AdamW, 100 x 1024 tokens':44}{'sum or theory':>14}{'measured':>14}")
for label, (by_you, measured, digits, unit) in labkit.each_written(summary).items():
    cells = (f"{value:{digits}} {unit}".rstrip() for value in (by_you, measured))
    print(f"{label:44}" + "".join(f"{cell:>14}" for cell in cells))

# %% [markdown]
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("01", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure", "varies"]
labkit.feature_row(
    "01",
    "estimates from one layer and from two",
    speed=lambda: f"{6 * one / six:.0%} of the time of six layers",
    memory=lambda: f"{extrapolate(shallow, 32) / whole.peak_bytes:.1%} of the peak of 32 layers",
)

# %% [markdown]
# ## Open question
#
# This question is worth 3 points. A person reads your answer, so no check responds at once, and `progress` does not
# count it. Write a few sentences for each part; numbers count more than words.
#
# You fine-tune Llama-3-8B with sequences of 1024 tokens. (a) Which term of the memory do you attack first on a card of
# 24 GiB, which one on a card of 80 GiB, and with what? (b) A team measures a 4-bit base model with LoRA adapters (small
# matrices, the only ones that train, beside frozen weights; lab 08). On a slow card with little memory it trains
# several times as many tokens a second as full fine-tuning with offloading (states wait in the memory of the CPU). On a
# fast card with 80 GiB it trains hardly more than before. Explain both with the sums of this lab.

# %% [markdown] nbgrader={"grade": true, "grade_id": "01-open-first-term", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# (a) On 24 GiB (25.8 GB) the states: in bf16 with AdamW weights 16 GB + gradients 16 + moments 32 = 64 GB before the
# first token, so no saving on activations can help. LoRA removes gradients and moments of the frozen weights (48 GB), a
# 4-bit base model takes 16 GB down to about 4 to 5 (or offload, or ZeRO). On 80 GiB (85.9 GB) the states fit (64 GB)
# and what limits the batch are activations, 7.1 GB a sequence, and the loss, 1.05 GB: checkpointing first, then the
# loss in slices.
#
# (b) The slow card could hold no step at all: it trained through offloading, limited by the bus, or with a tiny batch
# that used a fraction of its rate. Without gradients and moments everything stays on the card, and the batch grows from
# 0 to several. The fast card was limited by arithmetic already. LoRA saves at most the products for the weight
# gradients (2 of 6 FLOPs a parameter and token), the forward pass and the gradients of activations remain, and 4-bit
# weights are dequantized to 16 bits before every product: extra work, no faster product.
#
# Marks: 1 for (a), with states on the small card *and* activations or loss on the large one, each with a number. 1 for
# the slow card: memory or traffic was the limit, and it is states that go. 1 for the fast card: bound by compute, and
# LoRA or quantization saves little of it (dequantization as a cost, or 2 of 6 FLOPs). "Fewer parameters, so faster"
# earns nothing.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Vijay Korthikanti and others, *Reducing Activation Recomputation in Large Transformer Models* (2022): the sum of
#   activations for a layer with dropout, and which parts are cheap to compute again.
# - Samyam Rajbhandari and others, *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models* (SC 2020): the
#   16 bytes, and how to divide them over several cards.
# - Nouamane Tazi and others, *The Ultra-Scale Playbook: Training LLMs on GPU Clusters* (Hugging Face, 2025), with a
#   calculator like the one in this lab.
# - Quentin Anthony and others, *Transformer Math 101* (EleutherAI, 2023): rules of thumb; compare them with your sums.

# %% [markdown]
# ## Sources
#
# The texts above, and: Hugo Touvron and others, *LLaMA: Open and Efficient Foundation Language Models* (2023); Joshua
# Ainslie and others, *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints* (2023);
# Colin Raffel and others, *Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer* (2020);
# Noam Shazeer and Mitchell Stern, *Adafactor: Adaptive Learning Rates with Sublinear Memory Cost* (2018); Tim Dettmers
# and others, *8-bit Optimizers via Block-wise Quantization* (2022); Tri Dao and others, *FlashAttention* (2022). Names
# of fields and what each layer keeps: the source of `transformers`. The recipe `huggingface`: its documentation page
# *Model training anatomy*.
#
# Scaling laws: Jared Kaplan and others, *Scaling Laws for Neural Language Models* (2020); Jordan Hoffmann and others,
# *Training Compute-Optimal Large Language Models* (2022); Tamay Besiroglu and others, *Chinchilla Scaling: A
# Replication Attempt* (2024); Utkarsh Sharma and Jared Kaplan, *A Neural Scaling Law from the Dimension of the Data
# Manifold* (2020). Rates: NVIDIA's architecture whitepapers of the V100 (2017), Turing (2018), A100 (2020) and H100
# (2022). The roofline: Samuel Williams and others, *Roofline: An Insightful Visual Performance Model* (Communications
# of the ACM 52, 2009). Shares of run time: Andrei Ivanov and others, *Data Movement Is All You Need* (MLSys 2021). $F$,
# Megatron's table and the 288 years: Deepak Narayanan and others, *Efficient Large-Scale Language Model Training on GPU
# Clusters Using Megatron-LM* (SC 2021). MFU: Aakanksha Chowdhery and others, *PaLM* (2022). GPU-hours: the model card
# of Llama 3.1, and *The Llama 3 Herd of Models* (2024).
#
# The figures that this lab takes from lecture slides, right ones and slips, are from Whitaker's deck on napkin math,
# Fiameni's on training with many GPUs, Sadrtdinov's seminar, and a deck called *Efficiency*.
