"""What `benchmarks/memory.py` trains: five models of `transformers` by configuration, each in four set-ups.

Small enough to be really trained on a CPU, so that the allocator can be asked; of today's proportions otherwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PretrainedConfig

N_SEQUENCES, LENGTH = 4, 256


@dataclass(frozen=True)
class Trained:
    """One model in one set-up, with AdamW."""

    model: str
    setup: str

    def config(self, n_layers: int | None = None) -> PretrainedConfig:
        """Its configuration, or that of a model of another depth."""
        config = _configs()[self.model]
        if n_layers is not None:
            config.num_hidden_layers = n_layers
            if self.model == "T5":
                config.num_decoder_layers = n_layers
        return config

    def build(self, n_layers: int | None = None) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        """(model, optimizer), on whatever device or mode is active."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SETUPS[self.setup](self.config(n_layers), self.model)
        return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], foreach=False)

    def batch(self) -> dict[str, torch.Tensor]:
        """input_ids and labels, int64, (N_SEQUENCES, LENGTH)."""
        ids = torch.arange(N_SEQUENCES * LENGTH).reshape(N_SEQUENCES, LENGTH) % 1000
        return {"input_ids": ids, "labels": ids}


def _configs() -> dict[str, PretrainedConfig]:
    from transformers import GPT2Config, LlamaConfig, Qwen3Config, T5Config

    llama = {"num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 2, "use_cache": False}
    ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    wide = {"hidden_size": 256, "intermediate_size": 704, "vocab_size": 64000}
    t5 = {"d_model": 256, "d_ff": 768, "d_kv": 32, "num_layers": 4, "num_heads": 8, "vocab_size": 8192}
    return {
        "Llama": LlamaConfig(hidden_size=512, intermediate_size=1408, vocab_size=8192, **llama, **ends),
        "Llama, large vocabulary": LlamaConfig(**wide, **llama, **ends),
        "Qwen3": Qwen3Config(hidden_size=384, intermediate_size=1152, vocab_size=16384, head_dim=64, **llama, **ends),
        "GPT-2": GPT2Config(n_embd=384, n_layer=6, n_head=6, vocab_size=16384, use_cache=False, **ends),
        "T5": T5Config(**t5, use_cache=False, decoder_start_token_id=0, pad_token_id=0),
    }


LORA_TARGETS = {"GPT-2": ["c_attn"], "T5": ["q", "v"]}


def _model(config: PretrainedConfig, dtype: torch.dtype, checkpointing: bool = False) -> torch.nn.Module:
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    torch.manual_seed(0)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model = kind.from_config(config, dtype=dtype).train()
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def _with_adapters(config: PretrainedConfig, name: str) -> torch.nn.Module:
    from peft import LoraConfig, get_peft_model

    targets = LORA_TARGETS.get(name, ["q_proj", "v_proj"])
    return get_peft_model(_model(config, torch.float32), LoraConfig(r=8, target_modules=targets))


SETUPS: dict[str, Callable[[PretrainedConfig, str], torch.nn.Module]] = {
    "fp32": lambda config, name: _model(config, torch.float32),
    "bf16": lambda config, name: _model(config, torch.bfloat16),
    "fp32, checkpointing": lambda config, name: _model(config, torch.float32, checkpointing=True),
    "fp32, LoRA": lambda config, name: _with_adapters(config, name),
}


def everything_trained() -> list[Trained]:
    """Every model in every set-up."""
    return [Trained(model, setup) for model in _configs() for setup in SETUPS]
