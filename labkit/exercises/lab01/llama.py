"""Lab 01: small Llamas with random weights, and what one training step of them holds in memory, by the meter.

`transformers` is needed to measure, and is loaded only then. Nothing is computed by a formula here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import SimpleNamespace

import torch

from labkit.meters.memory import track_memory
from labkit.observe import known_settings
from labkit.spec import Case


@dataclass(frozen=True)
class Llama(Case):
    """The shape of a Llama, in the names of the fields of transformers' `LlamaConfig`."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int
    head_dim: int = 0
    """The width of one head; where it is not given, the heads share the hidden size."""

    def __post_init__(self) -> None:
        if not self.head_dim:
            object.__setattr__(self, "head_dim", self.hidden_size // self.num_attention_heads)

    def shape(self, n_layers: int | None = None) -> Llama:
        """The shape without what a subclass adds, by request with another depth."""
        fields = {name: getattr(self, name) for name in Llama.__dataclass_fields__}
        return Llama(**fields if n_layers is None else fields | {"num_hidden_layers": n_layers})

    def as_config(self) -> SimpleNamespace:
        """What a student's function is handed: the fields of the configuration by name, and nothing of the case."""
        fields = {name: getattr(self, name) for name in Llama.__dataclass_fields__}
        return SimpleNamespace(model_type="llama", tie_word_embeddings=False, **fields)


@dataclass(frozen=True)
class Moments:
    """What a training step with AdamW holds. All in bytes.

    kept: for the backward pass, when the forward pass has ended. loss: beyond weights, states and `kept`, at the most
    in the backward pass. update: beyond weights, gradients and states, at the most in the optimizer's step.
    """

    weights: int
    gradients: int
    optimizer: int
    kept: int
    loss: int
    update: int

    @property
    def at_backward(self) -> int:
        """The most before the optimizer's step."""
        return self.weights + self.optimizer + self.kept + self.loss

    @property
    def at_update(self) -> int:
        """The most in the optimizer's step."""
        return self.weights + self.optimizer + self.gradients + self.update

    @property
    def peak(self) -> int:
        """The most at any moment of the step."""
        return max(self.at_backward, self.at_update)


def build(shape: Llama, attention: str = "sdpa", dtype: torch.dtype = torch.bfloat16) -> torch.nn.Module:
    """The model of this shape, in training mode, with separate embeddings for input and output."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.num_hidden_layers,
        num_attention_heads=shape.num_attention_heads,
        num_key_value_heads=shape.num_key_value_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab_size,
        tie_word_embeddings=False,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation=attention,
    )
    return LlamaForCausalLM(config).to(dtype).train()


@functools.lru_cache(maxsize=64)
@known_settings()
def kept_bytes(shape: Llama, batch_size: int, seq_len: int, attention: str, dtype: str) -> int:
    """What the forward pass with the loss leaves alive for the backward pass, beyond the weights and the tokens."""
    model = build(shape, attention, getattr(torch, dtype))
    tokens = torch.zeros(batch_size, seq_len, dtype=torch.long)
    with track_memory(model, None, tokens, sites=False, device="cpu") as profile:
        before_bytes = profile.live_bytes
        # Only the loss is held on to, as in a training loop; the logits are gone, what the loss kept of them is not.
        loss = model(input_ids=tokens, labels=tokens).loss
        after_bytes = profile.live_bytes
    del loss
    return after_bytes - before_bytes


@functools.lru_cache(maxsize=64)
@known_settings()
def moments(shape: Llama, batch_size: int, seq_len: int) -> Moments:
    """One step of AdamW in bfloat16 with fused attention, its states being there from earlier steps."""
    model = build(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    tokens = torch.zeros(batch_size, seq_len, dtype=torch.long)
    with track_memory(model, optimizer, tokens, sites=False, device="cpu") as profile:
        held = profile.live_by_category()
        before_bytes = profile.live_bytes
        loss = model(input_ids=tokens, labels=tokens).loss
        kept = profile.live_bytes - before_bytes
        loss.backward()
        peak_bytes = profile.peak_bytes
    del loss
    with track_memory(model, optimizer, tokens, sites=False, device="cpu") as update:
        gradients = update.live_bytes - before_bytes
        optimizer.step()
    return Moments(
        weights=held["parameters"],
        gradients=gradients,
        optimizer=held["optimizer"],
        kept=kept,
        loss=peak_bytes - before_bytes - kept,
        update=update.peak_bytes - before_bytes - gradients,
    )
