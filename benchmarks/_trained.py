"""What `benchmarks/memory.py` trains: five models of `transformers` by configuration, each in four set-ups.

Small enough to be really trained on a CPU, so that the allocator can be asked; of today's proportions otherwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

N_SEQUENCES, LENGTH = 4, 256


@dataclass(frozen=True)
class Trained:
    """One model in one set-up. build: makes (model, optimizer), on whatever device or mode is active."""

    model: str
    setup: str
    build: Callable[[], tuple[torch.nn.Module, torch.optim.Optimizer]]

    def batch(self) -> dict[str, torch.Tensor]:
        """input_ids and labels, int64, (N_SEQUENCES, LENGTH)."""
        ids = torch.arange(N_SEQUENCES * LENGTH).reshape(N_SEQUENCES, LENGTH) % 1000
        return {"input_ids": ids, "labels": ids}


def _configs() -> dict[str, object]:
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


def _model(name: str, dtype: torch.dtype, checkpointing: bool = False) -> torch.nn.Module:
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    torch.manual_seed(0)
    config = _configs()[name]
    kind = AutoModelForSeq2SeqLM if name == "T5" else AutoModelForCausalLM
    model = kind.from_config(config, dtype=dtype).train()
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def _with_adamw(model: torch.nn.Module) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], foreach=False)


def _with_adapters(name: str) -> torch.nn.Module:
    from peft import LoraConfig, get_peft_model

    targets = LORA_TARGETS.get(name, ["q_proj", "v_proj"])
    return get_peft_model(_model(name, torch.float32), LoraConfig(r=8, target_modules=targets))


SETUPS: dict[str, Callable[[str], torch.nn.Module]] = {
    "fp32": lambda name: _model(name, torch.float32),
    "bf16": lambda name: _model(name, torch.bfloat16),
    "fp32, checkpointing": lambda name: _model(name, torch.float32, checkpointing=True),
    "fp32, LoRA": _with_adapters,
}


def everything_trained() -> list[Trained]:
    """Every model in every set-up, AdamW throughout."""

    def build(name: str, make: Callable[[str], torch.nn.Module]) -> Callable:
        def built() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _with_adamw(make(name))

        return built

    return [Trained(name, setup, build(name, make)) for name in _configs() for setup, make in SETUPS.items()]
