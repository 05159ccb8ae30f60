"""Lab 08: adapters put into a transformers model, saved and swapped. What is asked, given and run.

The layer that is put in comes from the driver. What is true of the result is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from labkit.spec import Answer, Case, Exercise
from labkit.troubles import naming

VOCABULARY = 40
RANK, SCALE = 2, 2.0
LEARNING_RATE = 0.1
NO_TARGET = "inject, where no module is a target"
OBSERVED = (
    "wrapped",
    "trainable",
    "moved",
    "state",
    "first",
    "second",
    "back",
    "again",
    "fresh",
    "fresh_trains",
    "reordered",
    "refused",
    "kept",
    "apart",
)


@dataclass(frozen=True)
class Adapted(Case):
    """A small model with random weights, and the last parts of the names of the layers that get an adapter.

    none: whether no layer of the model has one of these names.
    """

    family: str = "llama"
    targets: tuple[str, ...] = ("q_proj", "v_proj")
    n_layers: int = 2
    width: int = 16
    none: bool = False


class LowRank(nn.Module):
    """A LoRA layer with a trained factor before its update, so that it has three tensors of an adapter.

    init_lora_weight is none of them: it is frozen, and its name does not begin with lora_.
    """

    def __init__(self, base: nn.Linear, seed: int = 0) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_gain = nn.Parameter(torch.ones(1).to(base.weight))
        gen = torch.Generator().manual_seed(seed)
        lora_a = torch.randn(RANK, base.in_features, generator=gen) / base.in_features**0.5
        self.lora_A = nn.Parameter(lora_a.to(base.weight))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, RANK).to(base.weight))
        self.init_lora_weight = nn.Parameter(self.lora_A.detach().clone(), requires_grad=False)

    @property
    def weight(self) -> nn.Parameter:
        """For models that look at the dtype of a layer's weight, as T5 does."""
        return self.base.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + SCALE * self.lora_gain * (x @ self.lora_A.T) @ self.lora_B.T


def is_of_adapter(name: str) -> bool:
    return name.rpartition(".")[2].startswith("lora_")


def build(case: Adapted, seed: int) -> nn.Module:
    """The case's model in eval mode; the weights follow from the seed."""
    from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

    w, n = case.width, case.n_layers
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if case.family == "t5":
            config = T5Config(
                vocab_size=VOCABULARY, d_model=w, d_kv=w // 4, d_ff=2 * w, num_layers=n, num_heads=4, use_cache=False
            )
            return T5ForConditionalGeneration(config).eval()
        config = LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=w,
            intermediate_size=2 * w,
            num_hidden_layers=n,
            num_attention_heads=4,
            num_key_value_heads=2,
            use_cache=False,
        )
        return LlamaForCausalLM(config).eval()


def logits_of(model: nn.Module, case: Adapted, tokens: torch.Tensor) -> torch.Tensor:
    if case.family == "t5":
        return model(input_ids=tokens, decoder_input_ids=tokens).logits
    return model(input_ids=tokens).logits


def factor(name: str, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """The value of one factor of one of the two adapters: random, the same for the same name and seed."""
    gen = torch.Generator().manual_seed(seed + sum(name.encode()) * 1009 + len(name))
    return torch.randn(shape, generator=gen) / shape[-1] ** 0.5


def adapted_inputs(case: Adapted, gen: torch.Generator) -> dict[str, object]:
    """seeds of the model's weights and of two adapters' values; tokens (2, 6), none of which is T5's padding."""
    seeds = torch.randint(1, 2**30, (3,), generator=gen).tolist()
    return {"seeds": seeds, "tokens": torch.randint(1, VOCABULARY, (2, 6), generator=gen)}


def drive_inject(ans, case: Adapted, tree: dict, stage) -> dict[str, object]:
    """Inject; train one step; give the adapter two sets of values, save both, and load them in turn.

    What cannot be run because there is no adapter, or a state lacks tensors or has others, is None.

    first, second: logits with either set. back, again: after loading the first, then the second. fresh: of a new
    model after loading the first, in which fresh_trains trains. reordered: what load_adapter raises at the names in
    another order; refused: at states that do not fit; kept: the model's parameters are then as they were. apart: a
    loaded state stays as it is when the model changes.
    """
    tokens = tree["tokens"].to(stage.device)

    def injected() -> nn.Module:
        model = build(case, tree["seeds"][0]).to(stage.device)
        with naming(NO_TARGET) if case.none else nullcontext():
            ans.inject(model, case.targets, LowRank)
        return model

    model = injected()
    out: dict[str, object] = dict.fromkeys(OBSERVED)
    out["wrapped"] = sorted(name for name, module in model.named_modules() if isinstance(module, LowRank))
    out["trainable"] = sorted(name for name, p in model.named_parameters() if p.requires_grad)
    if case.none:
        return out
    _fill(model, tree["seeds"][1])
    out["moved"] = _one_step(model, case, tokens)
    with torch.no_grad():
        first = _filled_and_saved(ans, model, tree["seeds"][1])
        out["first"], out["state"] = logits_of(model, case, tokens), {name: t.clone() for name, t in first.items()}
        if set(first) != set(out["trainable"]):
            return out
        second = _filled_and_saved(ans, model, tree["seeds"][2])
        out["second"] = logits_of(model, case, tokens)
        ans.load_adapter(model, first)
        out["back"] = logits_of(model, case, tokens)
        ans.load_adapter(model, second)
        out["again"] = logits_of(model, case, tokens)
        fresh = injected()
        ans.load_adapter(fresh, out["state"])
        out["fresh"] = logits_of(fresh, case, tokens)
        out["fresh_trains"] = sorted(name for name, p in fresh.named_parameters() if p.requires_grad)
        out["reordered"] = _raised(ans.load_adapter, fresh, dict(reversed(out["state"].items())))
        before = _parameters(fresh)
        # Of the other adapter's values, so that a part that was copied shows.
        _fill(model, tree["seeds"][2])
        unfit = _unfit({name: p for name, p in _parameters(model).items() if name in out["state"]})
        out["refused"] = [_raised(ans.load_adapter, fresh, state) for state in unfit]
        after = _parameters(fresh)
        out["kept"] = after.keys() == before.keys() and all(torch.equal(before[name], after[name]) for name in before)
        lent = {name: tensor.clone() for name, tensor in out["state"].items()}
        ans.load_adapter(fresh, lent)
        for parameter in fresh.parameters():
            parameter += 1
        out["apart"] = all(torch.equal(lent[name], tensor) for name, tensor in out["state"].items())
    return out


def _parameters(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def _fill(model: nn.Module, seed: int) -> None:
    for name, parameter in model.named_parameters():
        if is_of_adapter(name):
            with torch.no_grad():
                parameter.copy_(factor(name, tuple(parameter.shape), seed))


def _filled_and_saved(ans, model: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """The state, taken while a parameter of the base trains too: which tensors are the adapter's, their names say."""
    _fill(model, seed)
    base = next(p for name, p in model.named_parameters() if not is_of_adapter(name))
    trained = base.requires_grad
    base.requires_grad_()
    state = ans.adapter_state(model)
    base.requires_grad_(trained)
    return state


def _one_step(model: nn.Module, case: Adapted, tokens: torch.Tensor) -> list[str]:
    """The parameters that a step of gradient descent moves; their old values are put back."""
    loss = logits_of(model, case, tokens).square().mean()
    if loss.requires_grad:
        loss.backward()
    moved = []
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and bool((LEARNING_RATE * parameter.grad).any()):
            moved.append(name)
        parameter.grad = None
    return sorted(moved)


def _unfit(state: dict[str, torch.Tensor]) -> list[dict[str, torch.Tensor]]:
    """States of other models: a tensor less, one more, one wider, one of a shape that copy_ repeats, one transposed.

    It is the last one, so that whoever looks while copying has copied others by then.
    """
    name = [*state][-1] if state else "lora_A"
    tensor = state.get(name, torch.zeros(RANK, RANK))
    return [
        {key: value for key, value in state.items() if key != name},
        {**state, f"encoder.{name}": tensor},
        {**state, name: torch.cat([tensor, tensor], -1)},
        {**state, name: tensor[:1]},
        {**state, name: tensor.T.contiguous()},
    ]


def _raised(load: Callable, model: nn.Module, state: dict) -> str:
    try:
        load(model, state)
    except ValueError:
        return "ValueError"
    except Exception as error:
        return type(error).__name__
    return "nothing"


INJECT = Exercise(
    id="08-inject",
    title="Adapters in a real model",
    points=4,
    minutes=25,
    difficulty=2,
    answers=(Answer("inject"), Answer("adapter_state"), Answer("load_adapter")),
    public=(
        Adapted(),
        Adapted("t5", ("v", "o"), n_layers=1),
        Adapted("llama", ("up_proj", "down_proj", "lm_head"), n_layers=1),
        Adapted("llama", ("c_attn",), n_layers=1, none=True),  # a name of GPT-2's
    ),
    inputs=adapted_inputs,
    drive=drive_inject,
)
