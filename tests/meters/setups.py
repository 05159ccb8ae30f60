"""Training set-ups to try the memory meter on: small models of real libraries, one per way of using memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from labkit.meters.memory import training_step

Built = tuple[torch.nn.Module, torch.optim.Optimizer]


@dataclass(frozen=True)
class Setup:
    """build: makes (model, optimizer). step: (model, optimizer, batch), one training step."""

    name: str
    build: Callable[[], Built]
    step: Callable[[torch.nn.Module, torch.optim.Optimizer, dict], None] = training_step


def tokens(n_sequences: int = 2, length: int = 64) -> dict[str, torch.Tensor]:
    ids = torch.arange(n_sequences * length).reshape(n_sequences, length) % 250
    return {"input_ids": ids, "labels": ids}


def llama(attention: str = "sdpa", checkpointing: bool = False) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=256,
        use_cache=False,
        attn_implementation=attention,
    )
    model = LlamaForCausalLM(config)
    if checkpointing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # renamed in transformers 5.2, removed in 6
            model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def gpt2() -> torch.nn.Module:
    """Tied embeddings, and dropout in three places."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=256, n_positions=64, use_cache=False)
    config.bos_token_id = config.eos_token_id = None
    return GPT2LMHeadModel(config).train()


def with_adapters(model: torch.nn.Module) -> torch.nn.Module:
    from peft import LoraConfig, get_peft_model

    model.enable_input_require_grads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers, to peft
        return get_peft_model(model, LoraConfig(r=4, lora_dropout=0.1, target_modules=["q_proj", "v_proj"]))


def with_optimizer(make_model: Callable[[], torch.nn.Module], optimizer: str = "AdamW", **settings: object) -> Built:
    model = make_model()
    if optimizer == "Adafactor":
        from transformers.optimization import Adafactor

        return model, Adafactor(model.parameters(), lr=1e-3, relative_step=False, scale_parameter=False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return model, getattr(torch.optim, optimizer)(trained, lr=1e-3, **settings)


def accumulated(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: dict) -> None:
    """Two micro-batches, one update."""
    for micro_batch in ({name: part[i : i + 1] for name, part in batch.items()} for i in range(2)):
        (model(**micro_batch).loss / 2).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def autocast(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: dict) -> None:
    with torch.autocast(batch["input_ids"].device.type, torch.bfloat16):
        loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def clipped(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: dict) -> None:
    model(**batch).loss.backward()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0, foreach=False)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


_adamw = partial(with_optimizer, optimizer="AdamW", foreach=False)
SETUPS = (
    Setup("base", partial(_adamw, llama)),
    Setup("eager attention", partial(_adamw, partial(llama, "eager"))),
    Setup("checkpointing", partial(_adamw, partial(llama, checkpointing=True))),
    Setup("LoRA", partial(_adamw, lambda: with_adapters(llama()))),
    Setup("LoRA and checkpointing", partial(_adamw, lambda: with_adapters(llama(checkpointing=True)))),
    Setup("accumulation", partial(_adamw, llama), accumulated),
    Setup("bf16 autocast", partial(_adamw, llama), autocast),
    Setup("clipping", partial(_adamw, llama), clipped),
    Setup("pure bf16", partial(_adamw, lambda: llama().bfloat16())),
    Setup("tied embeddings and dropout", partial(_adamw, gpt2)),
    Setup("SGD", partial(with_optimizer, llama, "SGD", foreach=False)),
    Setup("momentum", partial(with_optimizer, llama, "SGD", momentum=0.9, foreach=False)),
    Setup("Adafactor", partial(with_optimizer, llama, "Adafactor")),
    Setup("AdamW foreach", partial(with_optimizer, llama, "AdamW", foreach=True)),
    Setup("AdamW fused", partial(with_optimizer, llama, "AdamW", fused=True)),
)
