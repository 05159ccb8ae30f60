"""Lab 08, prefix tuning: equal to peft given the same weights, and what the usual mistakes do to the logits."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.prefix_tuning import Prefix, cache_shape
from labkit.exercises.lab08.prompt_tuning import at_text, model_of
from labkit.oracles.lab08.prefix_mistakes import (
    first_layer_only,
    heads_before_kinds,
    heads_last,
    heads_unpermuted,
    kinds_first,
    logits_are,
    logits_with,
    negated,
    never_moved,
    prefix_is,
    swapped,
    then_zeros,
    through,
    true_prefix,
)
from labkit.oracles.lab08.prompt_tuning import CLOSE, close, in_peft, quiet, run_in_peft
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


def expected(run: CaseRun[Prefix]) -> dict:
    """What peft says; of a second call, what the model says behind a cache made by hand."""
    from peft import PrefixTuningConfig

    case = run.case
    more = {"prefix_projection": True, "encoder_hidden_size": case.bottleneck} if case.bottleneck else {}
    config = PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=case.n_prompt, **more)
    model = in_peft(run, config, run.tree["encoder"])
    encoder = model.prompt_encoder["default"]
    return {
        "parameters": {name: list(item.shape) for name, item in sorted(run.tree["encoder"].items())},
        "prefix": encoder(torch.arange(case.n_prompt)).detach(),
        "cache": cache_shape(case),
        "labels": [case.batch, case.length],
        **run_in_peft(model, run.tree),
        "grads": {name: parameter.grad for name, parameter in sorted(encoder.named_parameters())},
        "again": logits_with(run, layers=negated),
    }


def without_prefix(run: CaseRun[Prefix]) -> bool:
    tree = run.tree
    with torch.no_grad(), quiet():
        output = model_of(run.case, tree["weights"])(tree["input_ids"], attention_mask=tree["attention_mask"])
    return close(run.got["logits"], at_text(output.logits, tree["attention_mask"]))


def shape_of(name: str, shape: Callable[[Prefix], list[int]]) -> Callable[[CaseRun[Prefix]], bool]:
    """A hint's condition: a parameter of the encoder has this wrong shape."""
    return lambda run: (
        run.got["parameters"][name] == shape(run.case)
        and run.got["parameters"][name] != list(run.tree["encoder"][name].shape)
    )


def as_wide_as(width: Callable[[Prefix], int]) -> Callable[[CaseRun[Prefix]], object]:
    """A hint's condition: the prefix has this wrong width, as the table or as what the network's last layer makes."""

    def when(run: CaseRun[Prefix]) -> object:
        name = "embedding.weight" if run.case.bottleneck is None else "transform.2.bias"
        got, wrong = run.got["parameters"][name][-1], width(run.case)
        right = run.tree["encoder"][name].shape[-1]
        return CANNOT_TELL if got == wrong == right else got == wrong

    return when


def heads_and_positions_swapped(run: CaseRun[Prefix]) -> object:
    """Seen from the shape, unless there are as many heads as positions."""
    swapped_shape = [run.case.batch, run.case.n_prompt, run.case.n_kv_heads, run.case.head_dim]
    if swapped_shape == cache_shape(run.case):
        return CANNOT_TELL
    return run.got["cache"] == swapped_shape


EVERY_LAYER = (
    "The prefix is that of the first layer everywhere. Every layer has keys and values of its own: that is what sets "
    "prefix tuning apart from a prompt at the input."
)
LAYOUT = (
    "The numbers of a position are not cut up as layer, then key or value, then head, then head_dim. View them in this "
    "order first, and move the axes with permute afterwards."
)
ONLY_CUTS = (
    "view and reshape only cut up, in the order in which the numbers lie. Keep n_prompt as the first axis of the view, "
    "and move it with permute afterwards."
)
BETWEEN = "The network between the table and the prefix is linear, tanh, linear: check what stands between the two."

PREFIX_TUNING = Oracle(
    id="08-prefix-tuning",
    expect=expected,
    judge=(inputs_untouched,),
    call=lambda run: (
        f"PrefixEncoder(config, {run.case.n_prompt}, bottleneck={run.case.bottleneck}), then with_prefix on "
        f"{run.case.batch} texts; the model has {run.case.n_layers} layers, {run.case.n_heads} heads, "
        f"{run.case.n_kv_heads} key heads of size {run.case.head_dim}"
    ),
    places={
        "parameters": "parameters",
        "prefix": "prefix",
        "cache": "shape of keys and values of a layer",
        "labels": "shape of the labels given to the model",
        "logits": "logits",
        "again": "logits of a second call with another prefix",
        "grads": "gradients",
    },
    axis="numbers of layers, heads and positions, with and without a bottleneck, and padding",
    tolerance=CLOSE,
    errors={
        "is invalid for input of size": "A row of the prefix has num_hidden_layers x 2 x num_key_value_heads x "
        "head_dim numbers. Where heads share their keys, num_attention_heads is larger than num_key_value_heads.",
    },
    diagnose=(
        Hint(
            lambda run: run.case.bottleneck is not None and list(run.got["parameters"]) == ["embedding.weight"],
            "With a bottleneck the prefix comes out of a network: a narrow embedding, then a torch.nn.Sequential named "
            "transform of linear, tanh, linear.",
        ),
        Hint(
            lambda run: run.case.bottleneck is None and "transform.0.weight" in run.got["parameters"],
            "Without a bottleneck there is no network: the embedding holds the whole prefix.",
        ),
        Hint(
            lambda run: (
                run.case.bottleneck is not None
                and run.got["parameters"]["embedding.weight"]
                == [run.case.n_prompt, run.case.n_layers * 2 * run.case.kv_width]
            ),
            "With a bottleneck the table is narrow: (n_prompt, key heads x head_dim). The network widens it.",
        ),
        Hint(
            as_wide_as(lambda case: case.n_layers * 2 * case.n_heads * case.head_dim),
            "The prefix is as wide as if every query head had a key head of its own. The cache holds "
            "config.num_key_value_heads heads.",
        ),
        Hint(
            as_wide_as(lambda case: case.n_layers * 2 * case.hidden),
            "The prefix is as wide as the hidden state. The cache holds config.num_key_value_heads heads of "
            "config.head_dim numbers.",
        ),
        Hint(
            lambda run: (
                run.case.bottleneck is None
                and run.got["parameters"]["embedding.weight"][1]
                == run.case.n_layers * 2 * run.case.n_kv_heads * (run.case.hidden // run.case.n_heads)
                != run.case.n_layers * 2 * run.case.kv_width
            ),
            "A head is not hidden / heads wide in every model: take config.head_dim.",
        ),
        Hint(
            as_wide_as(lambda case: case.n_layers * case.kv_width),
            "Half of the prefix is missing: a layer needs keys and values.",
        ),
        Hint(
            as_wide_as(lambda case: 2 * case.kv_width),
            "There is a prefix for one layer only. Every layer has keys and values of its own.",
        ),
        Hint(
            shape_of("embedding.weight", lambda case: [case.n_prompt, case.hidden]),
            "The table of the network is as wide as the keys of one layer, kv_width, not as the hidden state.",
        ),
        Hint(
            lambda run: (
                run.case.bottleneck is not None
                and list(run.got["parameters"]) == ["embedding.weight", "transform.0.weight", "transform.2.weight"]
            ),
            "The two linear layers of the network have no bias. peft's have one each, as torch.nn.Linear makes them by "
            "itself.",
        ),
        Hint(
            lambda run: list(run.got["parameters"]) != sorted(run.tree["encoder"]),
            "The parameters do not have peft's names, so that its checkpoints would not load: an embedding, and with a "
            "bottleneck a torch.nn.Sequential named transform.",
        ),
        Hint(
            lambda run: (
                run.got["parameters"] != {name: list(item.shape) for name, item in sorted(run.tree["encoder"].items())}
            ),
            "Some part of the encoder has another shape than in peft. The network goes from key heads x head_dim to "
            "the bottleneck, and from there to the whole width.",
        ),
        Hint(prefix_is(through(torch.relu)), BETWEEN),
        Hint(prefix_is(through(lambda inner: inner)), BETWEEN),
        Hint(prefix_is(through(torch.nn.functional.gelu)), BETWEEN),
        Hint(prefix_is(through(torch.sigmoid)), BETWEEN),
        Hint(
            prefix_is(through(torch.tanh, after=torch.tanh)),
            "There is a tanh after the last layer too, which keeps keys and values between -1 and 1: leave it out.",
        ),
        Hint(
            lambda run: run.got["prefix"].dim() == 3,
            "The encoder has no batch axis: it returns (n_prompt, width), and with_prefix expands it over the texts.",
        ),
        Hint(
            heads_and_positions_swapped,
            "Heads and positions have changed places: keys and values are (batch, key heads, n_prompt, head_dim).",
        ),
        Hint(
            lambda run: (
                run.got["cache"]
                == [run.case.batch, run.case.n_kv_heads, run.case.n_prompt + run.case.length, run.case.head_dim]
            ),
            "The cache of an earlier call was used again, and by then the text is in it too. Make a new one in "
            "every call.",
        ),
        Hint(
            lambda run: run.got["cache"] in (cache_shape(run.case)[1:], [1, *cache_shape(run.case)[1:]]),
            "Keys and values are those of one text. Give them a batch axis, and expand it over all texts.",
        ),
        Hint(
            lambda run: run.got["labels"] == [run.case.batch, run.case.n_prompt + run.case.length],
            "The labels were made longer by the prefix. Nothing is computed for its positions, so the model gives "
            "logits for the text alone: hand the labels on as they are.",
        ),
        Hint(
            without_prefix,
            "The prefix has no effect at all. Either the cache was not handed to the model as past_key_values (cache "
            "from transformers 5.24 on), or the mask has zeros for it, which hide it.",
        ),
        Hint(logits_are(layers=first_layer_only), EVERY_LAYER),
        Hint(logits_are(layers=then_zeros), EVERY_LAYER),
        Hint(
            logits_are(layers=swapped),
            "Keys and values have changed places: of each layer's two parts the first holds the keys.",
        ),
        Hint(logits_are(layers=kinds_first), LAYOUT),
        Hint(logits_are(layers=heads_before_kinds), LAYOUT),
        Hint(logits_are(layers=heads_last), LAYOUT),
        Hint(logits_are(layers=heads_unpermuted), LAYOUT),
        Hint(logits_are(layers=never_moved), ONLY_CUTS),
        Hint(
            logits_are(mask="as given"),
            "The mask was not made longer: it still begins with the text. transformers fills the missing end with "
            "zeros and says nothing, so the last tokens are hidden.",
        ),
        Hint(
            logits_are(mask="at the end"),
            "The ones for the prefix stand at the end of the mask, but the cache comes before the text.",
        ),
        Hint(
            logits_are(mask="none"),
            "Padding is not masked: the attention mask of the texts got lost on the way to the model.",
        ),
        Hint(
            logits_are(restart=True),
            "The text's positions start at 0 as if there were no prefix. Give no position_ids: the model then starts "
            "at the length of the cache.",
        ),
        Hint(
            lambda run: run.got["loss"] is None and isinstance(run.got["logits"], torch.Tensor),
            "No loss came back: hand the labels to the model as well. They are as long as the text, and need nothing "
            "in front.",
        ),
        Hint(
            lambda run: any(grad is None or not grad.any() for grad in run.got["grads"].values()),
            "No gradient reaches the prefix: a .detach(), .data or torch.no_grad() cuts it off on its way into the "
            "cache.",
        ),
        Hint(
            lambda run: run.got["prefix"].shape != true_prefix(run).shape,
            "The encoder returns a matrix (n_prompt, width), one row for each position.",
        ),
        Hint(
            lambda run: not close(run.got["prefix"], true_prefix(run)),
            "The encoder's output is off. Without a bottleneck it is the table as it stands, and with one nothing but "
            "linear, tanh, linear of it.",
        ),
        Hint(
            lambda run: not close(run.got["logits"], logits_with(run)),
            "The logits are off. Each layer gets its own keys and values for every text, in the prefix's order and as "
            "they are, and the model counts positions by itself.",
        ),
        Hint(
            lambda run: close(run.got["again"], run.got["logits"]),
            "A second call with another prefix gave the logits of the first one: something is kept between the calls. "
            "Make the cache from the prefix in every call.",
        ),
        Hint(
            lambda run: not close(run.got["loss"], run.expected["loss"]),
            "The logits are right and the labels are not: pass them on as they are, one for each token of the text.",
        ),
    ),
)
