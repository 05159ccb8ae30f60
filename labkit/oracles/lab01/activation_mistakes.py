"""Lab 01: the sums to which the usual mistakes about kept activations lead, and which of them a wrong sum betrays.

Which sum is right is measured, on the model of transformers; nothing is judged here.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from dataclasses import replace

from labkit.exercises.lab01.activation_bytes import Forward
from labkit.exercises.lab01.llama import kept_bytes

RTOL = 0.02
"""What the sum may be off, so that single numbers a row (statistics of norms and softmax) may be left out."""
NEAR = 1e-4
"""How far a wrong sum may be from the one that a mistake leads to, as a share of the larger of it and the right one."""


def measured(case: Forward) -> int:
    """Bytes that the forward pass keeps."""
    return kept_bytes(case.shape(), case.batch_size, case.seq_len, case.attention, case.dtype)


def scores(case: Forward) -> int:
    """Numbers in the score matrices of all layers."""
    return case.num_hidden_layers * case.batch_size * case.num_attention_heads * case.seq_len**2


def rows(case: Forward) -> int:
    """Tokens times layers."""
    return case.num_hidden_layers * case.batch_size * case.seq_len


def logits(case: Forward) -> int:
    """Numbers in the logits."""
    return case.batch_size * case.seq_len * case.vocab_size


def repeated(case: Forward) -> int:
    """Bytes by which keys and values grow when each query head has its own."""
    more_heads = case.num_attention_heads - case.num_key_value_heads
    return 2 * rows(case) * more_heads * case.head_dim * case.dtype_bytes


def small_parts(case: Forward) -> tuple[int, ...]:
    """Bytes of what a sum may leave out: statistics of norms and of fused attention, labels, tables of angles."""
    n_tokens = case.batch_size * case.seq_len
    fused = 4 * rows(case) * case.num_attention_heads if case.attention == "sdpa" else 0
    return 4 * (2 * rows(case) + n_tokens), fused, 8 * n_tokens, 2 * case.dtype_bytes * case.seq_len * case.head_dim


def heads_share_the_hidden_size(case: Forward) -> list[int]:
    """Bytes that are wrong where hidden_size stands for heads x head_dim: in the wide tensors, or in keys, too.

    Each with and without the tables of angles, which are as wide as a head.
    """
    eager, w = case.attention == "eager", case.dtype_bytes
    angles = 2 * w * case.seq_len * (case.hidden_size // case.num_attention_heads - case.head_dim)
    wide = _wide_tensors_by_the_hidden_size(case, eager, w)
    return [*wide, *(n + angles for n in wide)]


def _wide_tensors_by_the_hidden_size(case: Forward, eager: bool, w: int) -> list[int]:
    more = rows(case) * w * (case.hidden_size - case.num_attention_heads * case.head_dim)
    if eager:
        return [4 * more, 2 * more]
    return [2 * more, 2 * more + 2 * more * case.num_key_value_heads // case.num_attention_heads]


ALL_OR_NOTHING = ((0, 0, 0, 0), (1, 1, 1, 1))
"""Which of the small parts most sums leave out (1)."""
SOME = tuple(set(itertools.product((0, 1), repeat=4)) - set(ALL_OR_NOTHING))


@functools.lru_cache(maxsize=64)
def wrong_sums(case: Forward, left_out: tuple[tuple[int, ...], ...]) -> dict[str, list[float]]:
    """Mistake -> the sums to which it leads beside these small parts. Those that make no difference are left out."""
    found: dict[str, list[float]] = {name: [] for name in MISTAKES}
    for parts in left_out:
        for name, sums in sums_without(case, parts).items():
            found[name] += [n for n in sums if abs(n - measured(case)) > RTOL * measured(case)]
    return found


def sums_without(case: Forward, parts: tuple[int, ...]) -> dict[str, list[float]]:
    """Mistake -> the sums to which it leads where the small parts marked by 1 are left out as well."""

    def kept(other: Forward) -> int:
        return measured(other) - sum(map(operator.mul, parts, small_parts(other)))

    angles = 0 if parts[-1] else small_parts(case)[-1]
    w, eager, true = case.dtype_bytes, case.attention == "eager", kept(case)
    n_rows, n_tokens, width = rows(case), case.batch_size * case.seq_len, case.hidden_size
    mlp, norm = n_rows * w * case.intermediate_size, (4 + 2 * w) * width
    queries = n_rows * w * case.num_attention_heads * case.head_dim
    keys = n_rows * w * case.num_key_value_heads * case.head_dim
    used = queries if eager else keys
    casts = 4 if w == 4 else 4 + w
    of_one = [1 / case.num_attention_heads, case.num_key_value_heads / case.num_attention_heads]
    layer = kept(replace(case, num_hidden_layers=2)) - kept(replace(case, num_hidden_layers=1))
    more_ends = case.num_hidden_layers - 1
    other_attention = kept(replace(case, attention="sdpa" if eager else "eager"))
    other_dtype = kept(replace(case, dtype="float32" if w == 2 else "bfloat16"))
    return {
        ONE_SEQUENCE: [true / case.batch_size, (true - angles) / case.batch_size + angles],
        ONE_TOKEN: [true / case.seq_len, true / n_tokens],
        ONE_LAYER: [true - (case.num_hidden_layers - 1) * layer],
        NO_SCORES: [true - casts * scores(case), other_attention] if eager else [],
        SCORES_ONCE: [true - 2 * scores(case), true - 4 * scores(case)] if eager and w == 2 else [],
        SCORES_TWICE: [true + w * scores(case), true + 4 * scores(case)] if eager else [],
        HALF_THE_SCORES: [true - casts * scores(case) / 2] if eager else [],
        ONE_HEAD: [true - casts * scores(case) * (1 - share) for share in of_one] if eager else [],
        FUSED_SCORES: [] if eager else [other_attention, *(true + n * scores(case) for n in (2, 4, 6, 8))],
        MEGATRON: [n_rows * (34 * width + 5 * case.num_attention_heads * case.seq_len) * w / 2],
        NO_LOGITS: [true - 4 * logits(case), true - 4 * logits(case) - n_tokens * norm],
        LOGITS: [true + n * logits(case) for n in (-2, -4 / case.seq_len, 2, 4)],
        LOSS_PER_LAYER: [
            *(true + 4 * logits(case) * n for n in (more_ends, more_ends + 1)),
            true + more_ends * (4 * logits(case) + n_tokens * norm),
        ],
        REPEATED: [] if eager else [true + repeated(case)],
        NOT_REPEATED: [true - repeated(case)] if eager else [],
        ROTATED: [true + queries + keys],
        KEPT_TWICE: [true + 2 * keys] if eager and queries > keys else [],
        MLP: [true + n * mlp for n in (-3, -2, -1, 1)],
        HEAD_DIM: [true + n for n in heads_share_the_hidden_size(case) if n],
        ATTENDED: [true - n for n in (queries, used, 2 * used, queries + used, queries + 2 * used)],
        TWICE: [true + n * n_rows * w * width for n in (1, 2, 3)] + [true + (2 * n_rows + n_tokens) * w * width],
        EMBEDDED: [true + n_tokens * w * width, true + n_tokens * 4 * width],
        LAST_NORM: [true - n_tokens * norm],
        NORMS: [
            true - n_rows * norm,
            true - (n_rows + n_tokens) * norm,
            *(
                true - (2 * n_rows + last * n_tokens) * (norm - found * width)
                for found in (0, w, 2 * w, 3 * w, 4, 4 + w)
                for last in (0, 1)
            ),
        ],
        DTYPE: [
            *(factor * (true - 4 * logits(case)) + 4 * logits(case) for factor in (0.5, 2)),
            *(factor * true for factor in (0.5, 2, 1 / w)),
            other_dtype,
        ],
    }


def mistakes_in(case: Forward, found: float) -> list[str]:
    """The mistakes that lead to this sum: none, one, or several that cannot be told apart by it."""
    for left_out in (ALL_OR_NOTHING, SOME):
        distances = {
            mistake: min((abs(found - n) for n in sums), default=math.inf)
            for mistake, sums in wrong_sums(case, left_out).items()
        }
        near = [mistake for mistake, n in distances.items() if n <= NEAR * max(found, measured(case))]
        if near:
            closest = min(distances.values())
            return [mistake for mistake in near if distances[mistake] <= 2 * closest]
    return []


ONE_SEQUENCE = "One sequence's worth: every activation has a row for each of the batch_size x seq_len tokens."
ONE_TOKEN = "Too few tokens: every activation has a row for each of the batch_size x seq_len tokens."
ONE_LAYER = (
    "One layer's worth: nothing of a layer may be freed before its own backward pass, so num_hidden_layers of them "
    "are alive together."
)
NO_SCORES = (
    "The score matrix is missing: eager attention keeps seq_len x seq_len numbers for every head, of every sequence, "
    "in every layer."
)
SCORES_ONCE = (
    "One copy of the score matrix is missing: softmax works in float32 and keeps its result (4 bytes), the product "
    "with the values keeps the cast one (2 bytes)."
)
SCORES_TWICE = (
    "One copy of the score matrix is too many: softmax keeps its result, not its input, and in float32 there is "
    "nothing to cast."
)
HALF_THE_SCORES = (
    "Half of the score matrix is missing: the causal mask makes half of its entries zero, but the tensor has them all."
)
ONE_HEAD = (
    "The scores of too few heads: each of the num_attention_heads has a matrix of seq_len x seq_len, also those that "
    "share keys."
)
FUSED_SCORES = (
    "Fused attention never stores the score matrix: it keeps queries, keys, values, its result, and one number for "
    "each row and head."
)
MEGATRON = (
    "That is the sum for another layer, with dropout, an MLP without a gate and stored scores (Korthikanti and "
    "others, 2022). Go through this one."
)
NO_LOGITS = (
    "The logits are missing: for its backward pass the loss keeps vocab_size log-probabilities for every token, in "
    "float32."
)
LOGITS = (
    "The loss works in float32 and keeps one copy: 4 bytes for every entry of the vocabulary and every token. The "
    "logits themselves are freed."
)
LOSS_PER_LAYER = "The loss is counted in every layer: a model has it once, 4 bytes x vocab_size for every token."
REPEATED = "Keys and values are as wide as num_key_value_heads heads: fused attention does not repeat them."
NOT_REPEATED = (
    "Eager attention repeats keys and values for every query head before it multiplies, and keeps the repeated ones."
)
ROTATED = "Queries and keys are counted twice: their rotation by fixed angles keeps nothing of its own."
KEPT_TWICE = "Keys and values are counted twice: eager attention keeps the repeated ones, and the others no more."
MLP = (
    "The MLP keeps four tensors of intermediate_size, each in the model's dtype: the result of gate_proj, its SiLU, "
    "the result of up_proj and the product that down_proj reads."
)
HEAD_DIM = (
    "Here num_attention_heads x head_dim is not hidden_size: queries, keys, values and the result of attention have "
    "the width of the heads."
)
ATTENDED = (
    "A tensor of the attention is missing: queries, keys, values and its result are kept, the last because o_proj "
    "reads it."
)
TWICE = (
    "A tensor of hidden_size is counted twice in each layer: q_proj, k_proj and v_proj read the same one, and adding "
    "to the residual stream keeps nothing."
)
EMBEDDED = (
    "The result of the embedding is counted: its backward pass reads the tokens alone, and the first norm keeps a "
    "float32 copy of its own."
)
LAST_NORM = (
    "The norm after the last layer is missing: it keeps as much as one in a layer, (4 + 2 x dtype_bytes) x h a token."
)
NORMS = (
    "Norms keep more than results, and a layer has two: the input as a float32 copy (4 bytes), the normalized values "
    "and the product with the weight, both in the model's dtype."
)
DTYPE = (
    "The dtype is wrong: most activations take dtype_bytes a number; the inside of a norm, of softmax and of the loss"
    " is float32 all the same."
)
MISTAKES = (
    *(ONE_SEQUENCE, ONE_TOKEN, ONE_LAYER, NO_SCORES, SCORES_ONCE, SCORES_TWICE, HALF_THE_SCORES, ONE_HEAD),
    *(FUSED_SCORES, MEGATRON, NO_LOGITS, LOGITS, LOSS_PER_LAYER, REPEATED, NOT_REPEATED, ROTATED, KEPT_TWICE, MLP),
    *(HEAD_DIM, ATTENDED, TWICE, EMBEDDED, LAST_NORM, NORMS, DTYPE),
)
