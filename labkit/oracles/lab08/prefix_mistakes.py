"""Lab 08: what a wrong prefix does to the logits: layouts that are mixed up, masks, positions, networks between."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab08.prefix_tuning import Prefix
from labkit.exercises.lab08.prompt_tuning import at_text, model_of
from labkit.oracles.hints import looks_like
from labkit.oracles.lab08.prompt_tuning import close, quiet
from labkit.spec import CaseRun


def true_prefix(run: CaseRun[Prefix]) -> torch.Tensor:
    """The table, or what the network makes of it."""
    weights = run.tree["encoder"]
    return weights["embedding.weight"] if run.case.bottleneck is None else through(torch.tanh)(weights)


Layers = list[tuple[torch.Tensor, torch.Tensor]]


def layers_of(case: Prefix, prefix: torch.Tensor) -> Layers:
    """Keys and values (1, key heads, n_prompt, head_dim) of each layer."""
    parts = prefix.view(case.n_prompt, case.n_layers * 2, case.n_kv_heads, case.head_dim).permute(1, 2, 0, 3)[:, None]
    return list(zip(parts[0::2], parts[1::2]))


def negated(case: Prefix, prefix: torch.Tensor) -> Layers:
    return layers_of(case, -prefix)


def swapped(case: Prefix, prefix: torch.Tensor) -> Layers:
    return [(values, keys) for keys, values in layers_of(case, prefix)]


def kinds_first(case: Prefix, prefix: torch.Tensor) -> Layers:
    """All keys before all values."""
    parts = [part for pair in layers_of(case, prefix) for part in pair]
    return list(zip(parts[: case.n_layers], parts[case.n_layers :]))


def heads_before_kinds(case: Prefix, prefix: torch.Tensor) -> Layers:
    """Of each head its keys, then its values."""
    parts = prefix.view(case.n_prompt, case.n_layers, case.n_kv_heads, 2, case.head_dim).permute(1, 3, 2, 0, 4)
    return [(keys[None], values[None]) for keys, values in parts]


def first_layer_only(case: Prefix, prefix: torch.Tensor) -> Layers:
    return layers_of(case, prefix)[:1] * case.n_layers


def then_zeros(case: Prefix, prefix: torch.Tensor) -> Layers:
    first, *others = layers_of(case, prefix)
    return [first, *((0 * keys, 0 * values) for keys, values in others)]


def heads_last(case: Prefix, prefix: torch.Tensor) -> Layers:
    """head_dim before heads."""
    parts = prefix.view(case.n_prompt, case.n_layers * 2, case.head_dim, case.n_kv_heads).permute(1, 3, 0, 2)[:, None]
    return list(zip(parts[0::2], parts[1::2]))


def heads_unpermuted(case: Prefix, prefix: torch.Tensor) -> Layers:
    """Positions and heads mixed: the axes are named, but not moved."""
    parts = prefix.view(case.n_prompt, case.n_layers * 2, -1).transpose(0, 1)
    parts = parts.reshape(-1, 1, case.n_kv_heads, case.n_prompt, case.head_dim)
    return list(zip(parts[0::2], parts[1::2]))


def never_moved(case: Prefix, prefix: torch.Tensor) -> Layers:
    """The matrix cut up in the order in which the axes are needed, as if its numbers lay in it."""
    parts = prefix.reshape(case.n_layers * 2, 1, case.n_kv_heads, case.n_prompt, case.head_dim)
    return list(zip(parts[0::2], parts[1::2]))


def logits_with(run: CaseRun[Prefix], layers: Callable = layers_of, mask: str = "right", restart: bool = False):
    """The logits that one mistake leads to."""
    from transformers import DynamicCache

    case = run.case
    model = model_of(case, run.tree["weights"])
    given = run.tree["attention_mask"]
    batch = len(given)
    ones = given.new_ones(batch, case.n_prompt)
    masks = {
        "right": torch.cat((ones, given), 1),
        "at the end": torch.cat((given, ones), 1),
        "as given": torch.cat((given, 0 * ones), 1),
        "none": torch.ones(batch, case.n_prompt + case.length, dtype=torch.long),
    }
    prefix = true_prefix(run)
    pairs = [tuple(part.expand(batch, -1, -1, -1) for part in pair) for pair in layers(case, prefix)]
    more = {"position_ids": torch.arange(case.length)[None]} if restart else {}
    with torch.no_grad(), quiet():
        output = model(run.tree["input_ids"], past_key_values=DynamicCache(pairs), attention_mask=masks[mask], **more)
    return at_text(output.logits, given)


def logits_are(**mistake) -> Callable[[CaseRun[Prefix]], bool]:
    """A hint's condition: the logits are wrong, and are those of the model fed in this way."""
    return looks_like("logits", lambda run: logits_with(run, **mistake), close)


def prefix_is(encode: Callable[[dict[str, torch.Tensor]], torch.Tensor]) -> Callable[[CaseRun[Prefix]], bool]:
    """A hint's condition: with a bottleneck, the wrong prefix is made in this way."""
    return lambda run: run.case.bottleneck is not None and close(run.got["prefix"], encode(run.tree["encoder"]))


def through(between: Callable[[torch.Tensor], torch.Tensor], after=lambda out: out) -> Callable[[dict], torch.Tensor]:
    """Two linear layers with something else between them than peft has."""

    def encode(w: dict[str, torch.Tensor]) -> torch.Tensor:
        inner = between(w["embedding.weight"] @ w["transform.0.weight"].T + w["transform.0.bias"])
        return after(inner @ w["transform.2.weight"].T + w["transform.2.bias"])

    return encode
