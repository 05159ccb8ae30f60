"""Lab 08, soft prompts: a frozen model of random weights with texts for it, and what prompt tuning is asked to do.

transformers is imported where a model is built, and not before. Nothing here knows how a prompt reaches the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

VOCABULARY = 53
IGNORED = -100
"""The label that transformers and PyTorch leave out of the loss."""
_HOMES = (
    "peft",
    "peft.mapping_func",
    "peft.peft_model",
    "peft.tuners",
    *(
        f"peft.tuners.{kind}{part}"
        for kind in ("prompt_tuning", "prefix_tuning", "p_tuning")
        for part in ("", ".model", ".config")
    ),
)
FORBIDDEN = tuple(
    f"{home}.{name}"
    for home in _HOMES
    for name in (
        "get_peft_model",
        "PeftModel",
        "PeftModelForCausalLM",
        "PromptEmbedding",
        "PrefixEncoder",
        "PromptEncoder",
        "PromptTuningConfig",
        "PrefixTuningConfig",
        "PromptEncoderConfig",
    )
)
"""What would do the exercises of soft prompts in one line, from wherever it can be imported."""


@dataclass(frozen=True)
class SoftPrompt(Case):
    """A small causal model, a batch of texts and the number of prompt positions. padding: "none", "left", "right"."""

    model: str = "llama"
    n_prompt: int = 4
    batch: int = 2
    length: int = 6
    padding: str = "none"
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 6
    hidden: int = 32


def config_of(case: SoftPrompt) -> Any:
    """The configuration of the case's model, without dropout; gpt2 has as many key heads as query heads."""
    from transformers import GPT2Config, LlamaConfig

    shared = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None}
    if case.model == "gpt2":
        return GPT2Config(
            n_embd=case.hidden,
            n_layer=case.n_layers,
            n_head=case.n_heads,
            n_positions=64,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            **shared,
        )
    return LlamaConfig(
        hidden_size=case.hidden,
        intermediate_size=40,
        num_hidden_layers=case.n_layers,
        num_attention_heads=case.n_heads,
        num_key_value_heads=case.n_kv_heads,
        head_dim=case.head_dim,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        **shared,
    )


def model_of(case: SoftPrompt, weights: dict[str, torch.Tensor], device: torch.device | str = "cpu") -> torch.nn.Module:
    """The case's model with these weights, in evaluation mode, every parameter trainable as a new model's are."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(config_of(case))
    model.loss_type = "ForCausalLM"  # of gpt2, transformers would warn that it has to guess
    model.load_state_dict(weights, strict=False)  # a tied output layer is there under one name only
    return model.to(device).eval()


def weights_of(case: SoftPrompt, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Weights that make every part of the model count: matrices of spread 0.3, norms near 1, small biases."""
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(case))
    weights = {}
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=gen)
        is_norm = parameter.dim() == 1 and name.endswith("weight")
        weights[name] = 1 + 0.1 * noise if is_norm else noise * (0.3 if parameter.dim() > 1 else 0.1)
    return weights


def texts_of(case: SoftPrompt, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """input_ids, attention_mask and labels (batch, length). Every second text is shorter, and so padded, if any is."""
    shape = (case.batch, case.length)
    ids = torch.randint(VOCABULARY, shape, generator=gen)
    mask = torch.ones(shape, dtype=torch.long)
    if case.padding != "none":
        n_pads = max(1, case.length // 3)
        mask[::2, slice(n_pads) if case.padding == "left" else slice(-n_pads, None)] = 0
    ids[mask == 0] = 0
    labels = torch.where(mask == 1, ids, IGNORED)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def prompt_inputs(case: SoftPrompt, gen: torch.Generator) -> dict:
    """Weights, texts, the tokens that a prompt starts from, and the values that it has after some training."""
    return {
        "weights": weights_of(case, gen),
        "init_ids": torch.randperm(VOCABULARY, generator=gen)[: case.n_prompt],
        "prompt": torch.randn(case.n_prompt, case.hidden, generator=gen),
        **texts_of(case, gen),
    }


def on(device: torch.device, tree: dict) -> dict:
    """A tree of the exercises of soft prompts with every tensor on the device."""
    return {name: on(device, item) if isinstance(item, dict) else item.to(device) for name, item in tree.items()}


def at_text(logits: object, mask: torch.Tensor) -> object:
    """The logits with zeros where a text is padded: what a model says there depends on how its mask is written."""
    if not isinstance(logits, torch.Tensor) or logits.dim() != 3 or logits.shape[1] < mask.shape[1]:
        return logits
    n_before = logits.shape[1] - mask.shape[1]
    real = torch.nn.functional.pad(mask, (n_before, 0), value=1)
    return torch.where(real[..., None] == 1, logits.detach(), 0.0) if len(real) == len(logits) else logits


def backpropagated(output: object) -> dict:
    """What a model's output says, after its loss was sent backward."""
    loss = getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        loss.backward()
    return {"loss": loss, "logits": getattr(output, "logits", output)}


def drive_prompt(ans, case: SoftPrompt, tree: dict, stage) -> dict:
    """Freezing and the start are looked at first; then the prompt gets its trained values, and takes one step back."""
    tree = on(stage.device, tree)
    model = model_of(case, tree["weights"], stage.device)
    tuned = ans.PromptTuning(model, tree["init_ids"])
    prompt = tuned.prompt
    got = {
        "is_parameter": isinstance(prompt, torch.nn.Parameter),
        "trained": sorted(list(p.shape) for p in tuned.parameters() if p.requires_grad),
        "frozen": not any(p.requires_grad for p in model.parameters()),
        "start": prompt.detach().clone() if isinstance(prompt, torch.Tensor) else prompt,
    }
    if not got["is_parameter"] or prompt.shape != tree["prompt"].shape:
        return got | dict.fromkeys(("embedding_kept", "logits", "loss", "grad"))
    table = model.get_input_embeddings().weight
    before = table.detach().clone()
    with torch.no_grad():
        prompt.copy_(tree["prompt"])
    got |= backpropagated(tuned(tree["input_ids"], tree["attention_mask"], tree["labels"]))
    got["logits"] = at_text(got["logits"], tree["attention_mask"])
    return got | {"embedding_kept": torch.equal(table, before), "grad": prompt.grad}


PROMPT_TUNING = Exercise(
    id="08-prompt-tuning",
    title="Soft prompts before the input",
    points=3,
    minutes=15,
    difficulty=2,
    answers=(Answer("PromptTuning"),),
    public=(
        SoftPrompt("gpt2", n_prompt=3),
        SoftPrompt("gpt2", n_prompt=3, padding="right"),
        SoftPrompt("llama", n_prompt=5, length=9, padding="left"),
    ),
    inputs=prompt_inputs,
    drive=drive_prompt,
    forbids=FORBIDDEN,
)
