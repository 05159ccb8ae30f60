"""Lab 08, prefix tuning: an encoder of keys and values for every layer, and a frozen model that reads them.

Only models of the Llama family, in which keys are rotated by position and several query heads may share one key head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab08.prompt_tuning import (
    FORBIDDEN,
    SoftPrompt,
    at_text,
    backpropagated,
    config_of,
    model_of,
    on,
    texts_of,
    weights_of,
)
from labkit.spec import Answer, Exercise

OBSERVED = ("parameters", "prefix", "cache", "labels", "logits", "loss", "grads", "again")
READ = ("input_ids", "attention_mask", "labels")


@dataclass(frozen=True)
class Prefix(SoftPrompt):
    """bottleneck: the inner width of the network that makes the prefix; None trains the prefix itself."""

    bottleneck: int | None = None

    @property
    def kv_width(self) -> int:
        """Numbers in the keys of one position in one layer."""
        return self.n_kv_heads * self.head_dim


def encoder_shapes(case: Prefix) -> dict[str, tuple[int, ...]]:
    """The parameters of the encoder under peft's names."""
    out = case.n_layers * 2 * case.kv_width
    if case.bottleneck is None:
        return {"embedding.weight": (case.n_prompt, out)}
    return {
        "embedding.weight": (case.n_prompt, case.kv_width),
        "transform.0.weight": (case.bottleneck, case.kv_width),
        "transform.0.bias": (case.bottleneck,),
        "transform.2.weight": (out, case.bottleneck),
        "transform.2.bias": (out,),
    }


def random_encoder(shapes: dict[str, tuple[int, ...]], gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Parameters of spread 1 in tables, and so that a layer's output has a spread near 1 elsewhere."""
    scale = {name: 1.0 if name.startswith("embedding") else 1.5 / shape[-1] ** 0.5 for name, shape in shapes.items()}
    return {name: scale[name] * torch.randn(shape, generator=gen) for name, shape in shapes.items()}


def prefix_inputs(case: Prefix, gen: torch.Generator) -> dict:
    """Weights of the model and of the encoder, and texts."""
    return {
        "weights": weights_of(case, gen),
        "encoder": random_encoder(encoder_shapes(case), gen),
        **texts_of(case, gen),
    }


def loaded(encoder: torch.nn.Module, weights: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The shapes of an encoder's parameters by name; where they are those of the weights, it now has the weights."""
    shapes = {name: list(item.shape) for name, item in encoder.state_dict().items()}
    if shapes == {name: list(item.shape) for name, item in weights.items()}:
        encoder.load_state_dict(weights)
    return dict(sorted(shapes.items()))


def gradients(encoder: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """The gradient of every parameter by name."""
    return dict(sorted((name, parameter.grad) for name, parameter in encoder.named_parameters()))


class Misshapen(Exception):
    """The model was given a cache or labels of a wrong shape, at which it would stop somewhere inside."""


class GivenShapes:
    """The shapes of the first layer's keys and of the labels that the model is given; the right ones until it is."""

    def __init__(self, model: torch.nn.Module, case: Prefix) -> None:
        self._right = {"cache": cache_shape(case), "labels": [case.batch, case.length]}
        self.found = dict(self._right)
        model.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, model: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        # Under the name of transformers 5.24 and later, or under the one before, which works there as well.
        layers = getattr(kwargs.get("cache", kwargs.get("past_key_values")), "layers", ())
        keys = getattr(layers[0], "keys", None) if len(layers) else None
        for name, given in (("cache", keys), ("labels", kwargs.get("labels"))):
            if isinstance(given, torch.Tensor):
                self.found[name] = list(given.shape)
        if self.found != self._right:
            raise Misshapen


def cache_shape(case: Prefix) -> list[int]:
    """Of the keys of one layer, and of its values."""
    return [case.batch, case.n_kv_heads, case.n_prompt, case.head_dim]


def drive_prefix(ans, case: Prefix, tree: dict, stage) -> dict:
    """The encoder by itself, then the frozen model behind its output, and a step back.

    again: the logits of a second call, with the prefix of opposite sign.
    """
    tree = on(stage.device, tree)
    encoder = ans.PrefixEncoder(config_of(case), case.n_prompt, case.bottleneck).to(stage.device)
    got = dict.fromkeys(OBSERVED) | {"parameters": loaded(encoder, tree["encoder"])}
    if got["parameters"] != {name: list(item.shape) for name, item in sorted(tree["encoder"].items())}:
        return got
    prefix = encoder()
    if not isinstance(prefix, torch.Tensor) or prefix.shape != (case.n_prompt, case.n_layers * 2 * case.kv_width):
        return got | {"prefix": prefix}
    model = model_of(case, tree["weights"], stage.device).requires_grad_(False)
    shapes = GivenShapes(model, case)
    texts = [tree[name] for name in READ]
    try:
        got |= backpropagated(ans.with_prefix(model, prefix, *texts))
        again = ans.with_prefix(model, -prefix.detach(), *texts)
    except Misshapen:
        return got | {"prefix": prefix, **shapes.found}
    return got | {
        "prefix": prefix,
        **shapes.found,
        "logits": at_text(got["logits"], tree["attention_mask"]),
        "grads": gradients(encoder),
        "again": at_text(getattr(again, "logits", again), tree["attention_mask"]),
    }


PREFIX_TUNING = Exercise(
    id="08-prefix-tuning",
    title="Keys and values for every layer",
    points=1,
    optional=True,
    minutes=30,
    difficulty=3,
    answers=(Answer("PrefixEncoder"), Answer("with_prefix")),
    public=(
        Prefix(n_prompt=3, n_layers=3),
        Prefix(n_prompt=3, padding="right", n_kv_heads=4, n_heads=4, head_dim=8),
        Prefix(n_prompt=5, length=8, padding="left", bottleneck=7),
    ),
    inputs=prefix_inputs,
    drive=drive_prefix,
    forbids=FORBIDDEN,
)
