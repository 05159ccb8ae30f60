"""Lab 01: what a forward pass keeps, by the meter on the model of transformers, and what a wrong sum has left out."""

from __future__ import annotations

from collections.abc import Callable

from labkit.exercises.lab01.activations import Forward
from labkit.exercises.lab01.llama import kept_bytes
from labkit.spec import Hint, Oracle, Tolerance

RTOL = 0.02
"""What the sum may be off, so that single numbers a row (statistics of norms and softmax) may be left out."""
NEAR = 0.004
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


def other(case: Forward, attention: str | None = None, dtype: str | None = None) -> int:
    """What the same forward pass keeps with another attention or dtype."""
    return kept_bytes(case.shape(), case.batch_size, case.seq_len, attention or case.attention, dtype or case.dtype)


def one_layer(case: Forward) -> int:
    """What one layer keeps, from the measurement of two depths."""
    deep, deeper = (
        kept_bytes(case.shape(depth), case.batch_size, case.seq_len, case.attention, case.dtype) for depth in (1, 2)
    )
    return deeper - deep


def without_norms(case: Forward, kept: int, per_row: int) -> float:
    """The right sum if every norm, the last one included, kept so many bytes for each number and so many more a row."""
    n_rows = 2 * rows(case) + case.batch_size * case.seq_len
    return measured(case) - n_rows * (case.hidden_size * (4 + 2 * case.dtype_bytes - kept) + 4 - per_row)


def wrong_sums(case: Forward) -> dict[str, list[float]]:
    """Mistake -> the sums to which it leads. Those that make no difference for a case are left out."""
    true, w, eager = measured(case), case.dtype_bytes, case.attention == "eager"
    mlp = rows(case) * w * case.intermediate_size
    n_heads = rows(case) * case.num_attention_heads
    casts = 4 if w == 4 else 4 + w
    sums = {
        ONE_SEQUENCE: [true / case.batch_size],
        ONE_LAYER: [true - (case.num_hidden_layers - 1) * one_layer(case)],
        NO_SCORES: [true - casts * scores(case)] if eager else [],
        SCORES_ONCE: [true - 2 * scores(case), true - 4 * scores(case)] if eager and w == 2 else [],
        SCORES_TWICE: [true + w * scores(case), true + 4 * scores(case)] if eager else [],
        FUSED_SCORES: []
        if eager
        else [
            *(true + n * scores(case) - 4 * heads for n in (2, 4, 6, 8) for heads in (0, n_heads)),
            other(case, "eager"),
        ],
        MEGATRON: [rows(case) * (34 * case.hidden_size + 5 * case.num_attention_heads * case.seq_len) * w / 2],
        NO_LOGITS: [true - 4 * logits(case)],
        LOGITS: [true + n * logits(case) for n in (-2, 2, 4)],
        REPEATED: [] if eager else [true + repeated(case)],
        NOT_REPEATED: [true - repeated(case)] if eager else [],
        MLP: [true - mlp, true - 2 * mlp],
        NORMS: [without_norms(case, kept, more) for kept in (w, 2 * w, 3 * w, 4, 4 + w) for more in (0, 4)],
        DTYPE: [
            other(case, dtype="float32" if w == 2 else "bfloat16"),
            *(factor * (true - 4 * logits(case)) + 4 * logits(case) for factor in (0.5, 2)),
            *(factor * true for factor in (0.5, 2)),
        ],
    }
    return {name: [n for n in found if abs(n - true) > RTOL * true] for name, found in sums.items()}


def is_mistake(name: str) -> Callable[[Forward, dict, dict], bool]:
    """A diagnosis: of all wrong sums, one that this mistake leads to is the closest to what came back."""

    def diagnose(case: Forward, tree: dict, got: dict) -> bool:
        found = float(got["out"])
        distances = {
            mistake: min((abs(found - n) for n in sums), default=float("inf"))
            for mistake, sums in wrong_sums(case).items()
        }
        closest = min(distances, key=lambda mistake: distances[mistake])
        return closest == name and distances[name] <= NEAR * max(found, measured(case))

    return diagnose


ONE_SEQUENCE = "One sequence's worth: every activation has a row for each of the batch_size x seq_len tokens."
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
REPEATED = "Keys and values are as wide as num_key_value_heads heads: fused attention does not repeat them."
NOT_REPEATED = (
    "Eager attention repeats keys and values for every query head before it multiplies, and keeps the repeated ones."
)
MLP = (
    "The MLP keeps four tensors of intermediate_size: the result of gate_proj, its SiLU, the result of up_proj and "
    "the product that down_proj reads."
)
NORMS = (
    "Norms keep more than results: they compute in float32, so the input stays as a float32 copy (4 bytes), then come"
    " the normalized values and the product with the weight, in the model's dtype."
)
DTYPE = (
    "The dtype is wrong: most activations take dtype_bytes a number; the inside of a norm, of softmax and of the loss"
    " is float32 all the same."
)
MISTAKES = (
    *(ONE_SEQUENCE, ONE_LAYER, NO_SCORES, SCORES_ONCE, SCORES_TWICE, FUSED_SCORES, MEGATRON, NO_LOGITS, LOGITS),
    *(REPEATED, NOT_REPEATED, MLP, NORMS, DTYPE),
)

ACTIVATION_BYTES = Oracle(
    id="01-activation-bytes",
    expect=lambda case, tree: {"out": measured(case)},
    tolerance=Tolerance(rtol=RTOL),
    diagnose=(
        *(Hint(is_mistake(text), text) for text in MISTAKES),
        Hint(
            lambda case, tree, got: float(got["out"]) < measured(case),
            "Something that is kept is not in the sum. Go through a layer in order and ask of each operation what its "
            "backward pass reads.",
        ),
        Hint(
            lambda case, tree, got: float(got["out"]) > measured(case),
            "Something in the sum is not kept, or is counted twice: two operations that read the same tensor keep it "
            "once, and an addition keeps nothing.",
        ),
    ),
)
