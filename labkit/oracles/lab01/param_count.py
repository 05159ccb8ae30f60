"""Lab 01: parameters counted by transformers on the meta device, and which of the usual slips a wrong count betrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace

import torch

from labkit.exercises.lab01.param_count import Model
from labkit.observe import known_settings
from labkit.oracles.calls import fields_in_words
from labkit.oracles.hints import any_of
from labkit.spec import CaseRun, Hint, Oracle


@functools.lru_cache(maxsize=64)
@known_settings()
def counted(case: Model) -> int:
    """Parameters of the model that transformers builds, tied ones once; on the meta device it takes no memory."""
    import transformers

    kinds = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
        "t5": (transformers.T5Config, transformers.T5ForConditionalGeneration),
    }
    config_kind, model_kind = kinds[case.model_type]
    fields = dict(case.config)
    if case.model_type == "t5":
        fields["feed_forward_proj"] = "gated-gelu" if fields.pop("is_gated_act") else "relu"
    else:
        fields |= {"bos_token_id": None, "eos_token_id": None}
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in model_kind(config_kind(**fields)).parameters())


def off_by(family: str, *amounts: Callable[[SimpleNamespace], int]) -> Callable[[CaseRun[Model]], bool]:
    """A diagnosis: the count of a model of this family is off by one of these amounts (negative: too few)."""

    def diagnose(run: CaseRun[Model]) -> bool:
        config = run.case.as_config()
        more = run.got["out"] - counted(run.case)
        return run.case.model_type == family and any(more == amount(config) != 0 for amount in amounts)

    return diagnose


output_counted_twice = off_by("llama", lambda c: c.vocab_size * c.hidden_size if c.tie_word_embeddings else 0)
output_left_out = off_by("llama", lambda c: 0 if c.tie_word_embeddings else -c.vocab_size * c.hidden_size)


def shares_the_width(c: SimpleNamespace) -> set[int]:
    """By how much a Llama's count is off where hidden_size stands for heads x head_dim in some of the projections."""
    queries = c.hidden_size - _heads_width(c)
    keys = c.num_key_value_heads * (c.hidden_size // c.num_attention_heads) - _kv_width(c)
    per_row = c.num_hidden_layers * c.hidden_size
    return {per_row * (n * queries + m * keys) for n in range(3) for m in range(3)} - {0}


def _t5_inner(c: SimpleNamespace) -> int:
    return c.num_heads * c.d_kv


def _t5_attention(c: SimpleNamespace) -> int:
    return 4 * c.d_model * _t5_inner(c)


def _t5_bias(c: SimpleNamespace) -> int:
    return c.relative_attention_num_buckets * c.num_heads


def _heads_width(c: SimpleNamespace) -> int:
    return c.num_attention_heads * c.head_dim


def _kv_width(c: SimpleNamespace) -> int:
    return c.num_key_value_heads * c.head_dim


def _t5_layers(c: SimpleNamespace) -> int:
    return c.num_layers + c.num_decoder_layers


def _t5_deeper(c: SimpleNamespace, encoder: int, decoder: int) -> int:
    """Parameters by which a T5 grows with so many more layers in each stack."""
    mlp = (3 if c.is_gated_act else 2) * c.d_model * c.d_ff
    encoder_layer = _t5_attention(c) + mlp + 2 * c.d_model
    return encoder * encoder_layer + decoder * (encoder_layer + _t5_attention(c) + c.d_model)


PARAM_COUNT = Oracle(
    id="01-param-count",
    expect=lambda run: {"out": counted(run.case)},
    call=lambda run: f"param_count(config) of a {run.case.model_type}: {fields_in_words(dict(run.case.config))}",
    diagnose=(
        Hint(
            lambda run: run.got["out"] is None,
            'Nothing came back for this family: the function has a branch for each model_type, "llama", "gpt2" and '
            '"t5", and each returns a number.',
        ),
        Hint(
            lambda run: (
                run.case.model_type == "llama"
                and run.got["out"] - counted(run.case) in shares_the_width(run.case.as_config())
            ),
            "In this Llama num_attention_heads x head_dim is not hidden_size: q_proj and o_proj have the width of the "
            "heads on one side and hidden_size on the other.",
        ),
        Hint(
            off_by("llama", lambda c: 2 * c.num_hidden_layers * c.hidden_size * (_heads_width(c) - _kv_width(c))),
            "Too many by the keys and values of the query heads that share them: k_proj and v_proj have "
            "num_key_value_heads heads, not num_attention_heads.",
        ),
        Hint(
            off_by(
                "llama",
                lambda c: c.num_hidden_layers * c.hidden_size * (_kv_width(c) - _heads_width(c)),
                lambda c: -c.num_hidden_layers * c.hidden_size * _kv_width(c),
            ),
            "A key or value projection is missing, or is too small: both have num_key_value_heads heads.",
        ),
        Hint(
            output_counted_twice,
            "Tied embeddings are one matrix, used at both ends: with tie_word_embeddings the output projection adds "
            "nothing.",
        ),
        Hint(
            output_left_out,
            "One vocabulary matrix is missing: without tie_word_embeddings the output projection (lm_head) has its own "
            "vocab_size x hidden_size.",
        ),
        Hint(
            any_of(output_counted_twice, output_left_out),
            "tie_word_embeddings is read the wrong way round: where it is true, one matrix serves both ends; where it "
            "is false, lm_head has another vocab_size x hidden_size.",
        ),
        Hint(
            off_by(
                "llama",
                lambda c: -c.hidden_size * (2 * c.num_hidden_layers + 1),
                lambda c: -c.hidden_size * 2 * c.num_hidden_layers,
                lambda c: -c.hidden_size * (c.num_hidden_layers + 1),
                lambda c: -c.hidden_size * c.num_hidden_layers,
                lambda c: -c.hidden_size,
            ),
            "Norms are missing: each layer has two weight vectors of hidden_size, and one more stands after the last "
            "layer.",
        ),
        Hint(
            off_by(
                "llama",
                lambda c: c.hidden_size * (2 * c.num_hidden_layers + 1),
                lambda c: c.hidden_size * (c.num_hidden_layers - 1),
            ),
            "Too much for the norms: an RMSNorm has a weight and no bias, two stand in a layer, and one after the last "
            "layer.",
        ),
        Hint(
            off_by("llama", lambda c: -c.num_hidden_layers * c.hidden_size * _heads_width(c)),
            "A projection between hidden_size and the query heads is missing: q_proj leads to them, o_proj back.",
        ),
        Hint(
            off_by("llama", lambda c: -c.num_hidden_layers * c.hidden_size * c.intermediate_size),
            "A Llama's MLP has three matrices: gate_proj, up_proj and down_proj.",
        ),
        Hint(
            off_by("gpt2", lambda c: c.vocab_size * c.n_embd),
            "Tied embeddings are one matrix, used at both ends: GPT-2's output projection is its token embedding, so "
            "count it once.",
        ),
        Hint(
            off_by("gpt2", lambda c: -c.n_positions * c.n_embd),
            "GPT-2 learns its positions: n_positions vectors of n_embd are missing.",
        ),
        Hint(
            off_by("gpt2", lambda c: c.n_layer * (4 * c.n_embd - (c.n_inner or 0)) * (2 * c.n_embd + 1)),
            "The MLP is n_inner wide where n_inner is given; only None stands for 4 x n_embd.",
        ),
        Hint(
            off_by(
                "gpt2",
                lambda c: -c.n_embd * (4 * c.n_layer + 2),
                lambda c: -c.n_embd * (2 * c.n_layer + 1),
                lambda c: -2 * c.n_embd,
                lambda c: -c.n_embd,
            ),
            "Norms are missing: GPT-2's LayerNorms have a weight and a bias each, two norms in a layer and one after "
            "the last.",
        ),
        Hint(
            off_by("gpt2", lambda c: -c.n_layer * 2 * c.n_embd),
            "2 n_embd a layer are missing: a LayerNorm has a bias beside its weight, and the matrix for queries, keys "
            "and values has a bias of 3 n_embd.",
        ),
        Hint(
            off_by("gpt2", lambda c: -c.n_layer * 4 * c.n_embd),
            "4 n_embd a layer are missing: its two LayerNorms have a weight and a bias each, and its projections to "
            "queries, keys and values and back have 4 n_embd biases.",
        ),
        Hint(
            off_by(
                "gpt2",
                lambda c: -c.n_layer * (5 * c.n_embd + (c.n_inner or 4 * c.n_embd)),
                lambda c: -c.n_layer * (5 * c.n_embd + (c.n_inner or 4 * c.n_embd)) - c.n_embd * (2 * c.n_layer + 1),
                lambda c: -c.n_layer * c.n_embd,
                lambda c: -c.n_layer * 3 * c.n_embd,
                lambda c: -c.n_layer * (c.n_inner or 4 * c.n_embd),
                lambda c: -c.n_layer * (c.n_embd + (c.n_inner or 4 * c.n_embd)),
            ),
            "Biases are missing: in GPT-2 every projection has one (3 n_embd for queries, keys and values together, "
            "n_embd after attention, n_inner and n_embd in the MLP).",
        ),
        Hint(
            off_by(
                "t5",
                lambda c: _t5_deeper(c, 0, c.num_layers - c.num_decoder_layers),
                lambda c: _t5_deeper(c, c.num_decoder_layers - c.num_layers, 0),
                lambda c: _t5_deeper(c, c.num_decoder_layers - c.num_layers, c.num_layers - c.num_decoder_layers),
            ),
            "The stacks of a T5 have depths of their own: num_layers encoder layers and num_decoder_layers decoder "
            "layers.",
        ),
        Hint(
            off_by(
                "t5",
                lambda c: -c.num_decoder_layers * (_t5_attention(c) + c.d_model),
                lambda c: -c.num_decoder_layers * _t5_attention(c),
            ),
            "A T5 decoder layer attends twice: to itself and to the encoder's output, each with four projections and a "
            "norm.",
        ),
        Hint(
            off_by("t5", lambda c: c.vocab_size * c.d_model, lambda c: 2 * c.vocab_size * c.d_model),
            "Tied embeddings are one matrix: encoder, decoder and output projection share it, so count it once.",
        ),
        Hint(
            off_by("t5", lambda c: -2 * _t5_bias(c), lambda c: -_t5_bias(c)),
            "The relative position biases are missing: relative_attention_num_buckets x num_heads, once in the encoder "
            "and once in the decoder.",
        ),
        Hint(
            off_by("t5", lambda c: (_t5_layers(c) - 2) * _t5_bias(c)),
            "Only the first layer of each stack has relative position biases; the layers above use the same ones.",
        ),
        Hint(
            off_by("t5", lambda c: 2 * (c.relative_attention_num_buckets - _t5_bias(c)), _t5_bias),
            "A relative position bias is a number for each bucket and each head, in the first layer of each stack; "
            "attention to the encoder has none.",
        ),
        Hint(
            off_by("t5", lambda c: -_t5_layers(c) * c.d_model * c.d_ff if c.is_gated_act else 0),
            "With is_gated_act the MLP has three matrices, not two.",
        ),
        Hint(
            off_by("t5", lambda c: 0 if c.is_gated_act else _t5_layers(c) * c.d_model * c.d_ff),
            "Without is_gated_act the MLP has two matrices, not three.",
        ),
        Hint(
            off_by(
                "t5",
                lambda c: -c.d_model * (2 * c.num_layers + 3 * c.num_decoder_layers + 2),
                lambda c: -c.d_model * (2 * c.num_layers + 3 * c.num_decoder_layers),
                lambda c: -c.d_model * c.num_decoder_layers,
                lambda c: -2 * c.d_model,
                lambda c: -c.d_model,
            ),
            "Norms are missing: an encoder layer has two vectors of d_model, a decoder layer three, and each stack has "
            "one after its last layer.",
        ),
        Hint(
            off_by("t5", lambda c: -(c.num_layers + 2 * c.num_decoder_layers) * c.d_model * _t5_inner(c)),
            "A T5's attention has four projections: queries, keys, values, and one back to d_model.",
        ),
        Hint(
            off_by(
                "t5",
                *(
                    lambda c, n=n: (
                        n * (c.num_layers + 2 * c.num_decoder_layers) * c.d_model * (c.d_model - _t5_inner(c))
                    )
                    for n in range(1, 5)
                ),
            ),
            "In this T5 num_heads x d_kv is not d_model: the four projections go between d_model and num_heads x d_kv.",
        ),
        Hint(
            lambda run: isinstance(run.got["out"], int | float),
            "Build a small model of this family and print name and shape of each of its parameters: which line do you "
            "not have?",
        ),
    ),
)
