"""Lab 01: parameters counted from a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from labkit.spec import Answer, Case, Exercise

Value = int | bool | None


@dataclass(frozen=True)
class Model(Case):
    """A family ("llama", "gpt2" or "t5") and the fields of its transformers configuration, as (name, value) pairs."""

    model_type: str
    config: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, model_type: str, **config: Value) -> Model:
        """The case with these fields."""
        return cls(model_type, tuple(config.items()))

    def as_config(self) -> SimpleNamespace:
        """The fields as attributes, the names as in transformers."""
        return SimpleNamespace(model_type=self.model_type, **dict(self.config))


def llama(
    h: int, ff: int, layers: int, heads: int, kv: int, vocab: int, tie: bool, head_dim: int | None = None
) -> Model:
    """A Llama; without head_dim the heads share the hidden size."""
    return Model.of(
        "llama",
        hidden_size=h,
        intermediate_size=ff,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv,
        head_dim=head_dim or h // heads,
        vocab_size=vocab,
        tie_word_embeddings=tie,
    )


def gpt2(d: int, layers: int, heads: int, positions: int, vocab: int, inner: int | None = None) -> Model:
    """A GPT-2, whose embeddings are tied; inner None means four times the width."""
    return Model.of(
        "gpt2",
        n_embd=d,
        n_inner=inner,
        n_layer=layers,
        n_head=heads,
        n_positions=positions,
        vocab_size=vocab,
        tie_word_embeddings=True,
    )


def t5(
    d: int, d_kv: int, d_ff: int, layers: tuple[int, int], heads: int, buckets: int, vocab: int, gated: bool
) -> Model:
    """A T5 with (encoder, decoder) layers and tied embeddings."""
    return Model.of(
        "t5",
        d_model=d,
        d_kv=d_kv,
        d_ff=d_ff,
        num_layers=layers[0],
        num_decoder_layers=layers[1],
        num_heads=heads,
        relative_attention_num_buckets=buckets,
        is_gated_act=gated,
        vocab_size=vocab,
        tie_word_embeddings=True,
    )


PARAM_COUNT = Exercise(
    id="01-param-count",
    title="Count the parameters of a configuration",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("param_count"),),
    public=(
        llama(64, 160, 2, 8, 2, 500, tie=False),
        llama(48, 100, 3, 4, 4, 300, tie=True),
        llama(64, 96, 1, 4, 2, 400, tie=False, head_dim=32),
        gpt2(48, 3, 4, 128, 500),
        gpt2(32, 4, 2, 64, 300, inner=100),
        t5(48, 12, 100, (3, 3), 4, 32, 400, gated=False),
        t5(48, 12, 100, (2, 3), 4, 32, 400, gated=False),
        t5(32, 16, 80, (2, 4), 3, 16, 300, gated=True),
    ),
    inputs=lambda case, gen: {},
    drive=lambda ans, case, tree, stage: {"out": ans.param_count(case.as_config())},
    forbids=(
        "transformers.AutoModel.from_config",
        "transformers.AutoModelForCausalLM.from_config",
        "transformers.LlamaForCausalLM",
        "transformers.GPT2LMHeadModel",
        "transformers.T5ForConditionalGeneration",
    ),
)
