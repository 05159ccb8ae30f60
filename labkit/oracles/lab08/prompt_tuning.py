"""Lab 08, prompt tuning: equal to peft given the same weights, and what the usual mistakes do to logits and loss."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.prompt_tuning import IGNORED, SoftPrompt, at_text, backpropagated, model_of
from labkit.oracles.hints import looks_like
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-4, rtol=1e-4)
"""Two float32 roads through two small layers differ by 1e-6; the mildest mistake moves a logit by more than 1e-2."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """peft and transformers warn of names that they themselves use; a student should not read that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def in_peft(run: CaseRun[SoftPrompt], config: Any, encoder: dict[str, torch.Tensor]) -> torch.nn.Module:
    """The case's model inside peft, its prompt encoder with these weights."""
    from peft import get_peft_model

    with quiet():
        model = get_peft_model(model_of(run.case, run.tree["weights"]), config).eval()
    model.prompt_encoder["default"].load_state_dict(encoder)
    return model


def run_in_peft(model: torch.nn.Module, tree: dict) -> dict:
    """Loss and logits of peft's model on the texts, after the loss was sent backward."""
    with quiet():
        got = backpropagated(model(**{name: tree[name] for name in ("input_ids", "attention_mask", "labels")}))
    return {"logits": at_text(got["logits"], tree["attention_mask"]), "loss": got["loss"].detach()}


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    """The same values, as far as two roads to them agree."""
    return a.shape == b.shape and torch.allclose(a, b.to(a.dtype), atol=2e-4, rtol=2e-4)


def expected(run: CaseRun[SoftPrompt]) -> dict:
    """What peft says, and a model that stays as it was."""
    from peft import PromptTuningConfig

    config = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=run.case.n_prompt)
    model = in_peft(run, config, {"embedding.weight": run.tree["prompt"]})
    return {
        "is_parameter": True,
        "frozen": True,
        "trained": [[run.case.n_prompt, run.case.hidden]],
        "start": model.get_input_embeddings().weight.detach()[run.tree["init_ids"]],
        "embedding_kept": True,
        **run_in_peft(model, run.tree),
        "grad": model.prompt_encoder["default"].embedding.weight.grad,
    }


def logits_are(**mistake) -> Callable[[CaseRun[SoftPrompt]], bool]:
    """A hint's condition: the logits are wrong, and are those of the model fed in this way."""
    return looks_like("logits", lambda run: logits_with(run, **mistake), close)


def logits_with(
    run: CaseRun[SoftPrompt], mask: str = "right", prompt_first: bool = True, positions: str = ""
) -> torch.Tensor:
    """The logits that one mistake leads to. mask: how it was made longer; positions: how they were counted."""
    case, tree = run.case, run.tree
    model = model_of(case, tree["weights"])
    ids, given = tree["input_ids"], tree["attention_mask"]
    text, prompt = model.get_input_embeddings()(ids), tree["prompt"].expand(len(ids), -1, -1)
    ones = given.new_ones(len(ids), case.n_prompt)
    masks = {
        "right": torch.cat((ones, given), 1),
        "at the end": torch.cat((given, ones), 1),
        "zeros": torch.cat((0 * ones, given), 1),
        "as given": torch.cat((given, 0 * ones), 1),
        "none": torch.ones(len(ids), case.n_prompt + case.length, dtype=torch.long),
    }
    more = {}
    if positions:
        before = torch.arange(case.n_prompt) if positions == "restart" else torch.zeros(case.n_prompt, dtype=torch.long)
        more["position_ids"] = torch.cat((before, torch.arange(case.length)))[None]
    if positions == "of the mask":
        more["position_ids"] = (masks["right"].cumsum(1) - 1).clamp(min=0)
    parts = (prompt, text) if prompt_first else (text, prompt)
    with torch.no_grad(), quiet():
        logits = model(inputs_embeds=torch.cat(parts, 1), attention_mask=masks[mask], **more).logits
    return at_text(logits, given)


def loss_is(labels_of: Callable[[CaseRun[SoftPrompt]], torch.Tensor]) -> Callable[[CaseRun[SoftPrompt]], object]:
    """A hint's condition: the loss follows from the (right) logits and these labels of prompt and text.

    Logits of padding are not sent along, and where padding comes first one of them predicts a text's first token.
    """

    def holds(run: CaseRun[SoftPrompt]) -> object:
        if run.case.padding == "left":
            return CANNOT_TELL
        targets = labels_of(run)[:, 1:]
        loss = cross_entropy(run.got["logits"][:, :-1].transpose(1, 2), targets, ignore_index=IGNORED)
        return close(run.got["loss"], loss)

    return holds


def before_text(value: int | str) -> Callable[[CaseRun[SoftPrompt]], torch.Tensor]:
    """The labels with `value` in front of them, or with the tokens that the prompt started from."""

    def labels(run: CaseRun[SoftPrompt]) -> torch.Tensor:
        ids = run.tree["init_ids"] if value == "start" else torch.full((run.case.n_prompt,), value)
        return torch.cat((ids.expand(run.case.batch, -1), run.tree["labels"]), 1)

    return labels


def without_first(run: CaseRun[SoftPrompt]) -> torch.Tensor:
    """The labels of a text whose first token nobody predicts."""
    labels = before_text(IGNORED)(run)
    labels[:, run.case.n_prompt] = IGNORED
    return labels


def shifted_twice(run: CaseRun[SoftPrompt]) -> torch.Tensor:
    """The labels moved to the left by one, which the model then does again."""
    labels = before_text(IGNORED)(run)
    return torch.cat((labels[:, 1:], torch.full((run.case.batch, 1), IGNORED)), 1)


COUNTED = (
    "The prompt was counted in the loss: its positions have labels of their own. Nobody knows what should stand there, "
    f"so put {IGNORED} before the labels, which the loss leaves out."
)
POSITIONS = (
    "The positions do not run on from the prompt to the text. Give no position_ids: the model then counts 0, 1, 2, … "
    "over prompt and text together."
)

PROMPT_TUNING = Oracle(
    id="08-prompt-tuning",
    expect=expected,
    judge=(inputs_untouched,),
    call=lambda run: (
        f"PromptTuning({run.case.model}, init_ids of {run.case.n_prompt} tokens) on {run.case.batch} texts of "
        f"{run.case.length} tokens, padding: {run.case.padding}"
    ),
    places={
        "start": "self.prompt of a new module",
        "logits": "logits",
        "loss": "loss",
        "grad": "gradient of self.prompt",
        "trained": "list of what trains",
        "is_parameter": "answer to whether self.prompt is a parameter",
        "frozen": "answer to whether the model is frozen",
        "embedding_kept": "answer to whether the embedding table stayed as it was",
    },
    axis="models, lengths, and padding on either side",
    tolerance=CLOSE,
    diagnose=(
        Hint(
            lambda run: not run.got["is_parameter"],
            "self.prompt is no nn.Parameter, so no optimizer finds it: wrap the tensor in torch.nn.Parameter(...).",
        ),
        Hint(
            lambda run: not run.got["frozen"],
            "The model itself still trains. Switch requires_grad off for every parameter of the model, its embedding "
            "table included.",
        ),
        Hint(
            lambda run: run.got["trained"] == [],
            "Nothing trains: the prompt was frozen together with the model. Freeze the model's parameters, and only "
            "those.",
        ),
        Hint(
            lambda run: len(run.got["trained"]) > 1,
            "Something trains beside the prompt. self.prompt is the only parameter of this module that has a gradient.",
        ),
        Hint(
            lambda run: run.got["start"].shape != (run.case.n_prompt, run.case.hidden),
            "The prompt is one matrix for all texts, (n_prompt, hidden): no batch axis, which is added with expand in "
            "forward.",
        ),
        Hint(
            lambda run: not close(run.got["start"], run.expected["start"]),
            "The prompt does not start from the embeddings of init_ids: look the rows up in the model's own input "
            "embeddings.",
        ),
        Hint(
            lambda run: not run.got["embedding_kept"],
            "The model's embedding table was changed, so texts with these tokens read differently. The prompt is a "
            "matrix of its own: a copy in the constructor, and inputs_embeds in forward.",
        ),
        Hint(
            lambda run: not isinstance(run.got["logits"], torch.Tensor) and run.got["is_parameter"] is True,
            "forward does not return the model's output. Return what the model returns, which has .loss and .logits.",
        ),
        Hint(
            lambda run: run.got["logits"].shape[1] == run.case.length,
            "The logits of the prompt's positions were cut off. Return the model's output as it is: the last prompt "
            "position predicts the first token of the text.",
        ),
        Hint(logits_are(prompt_first=False), "The prompt stands after the text, where no token of the text sees it."),
        Hint(
            logits_are(prompt_first=False, mask="at the end"),
            "The prompt stands after the text, where no token of the text sees it.",
        ),
        Hint(
            logits_are(mask="as given"),
            "The mask was not made longer: it still begins with the text. transformers fills the missing end with "
            "zeros and says nothing, so the last tokens are hidden.",
        ),
        Hint(
            logits_are(mask="at the end"),
            "The ones for the prompt stand at the end of the mask, but the prompt stands at the beginning: the mask "
            "belongs to other positions than the embeddings do.",
        ),
        Hint(
            logits_are(mask="zeros"),
            "The mask hides the prompt: its positions must be 1, or no token looks at them.",
        ),
        Hint(
            logits_are(mask="none"),
            "Padding is not masked: the attention mask of the texts got lost on the way to the model.",
        ),
        Hint(logits_are(positions="restart"), POSITIONS),
        Hint(logits_are(positions="zeros"), POSITIONS),
        Hint(logits_are(positions="of the mask"), POSITIONS),
        Hint(
            lambda run: run.got["loss"] is None,
            "No loss came back: hand the longer labels to the model, which computes it.",
        ),
        Hint(loss_is(before_text("start")), COUNTED),
        Hint(loss_is(before_text(0)), COUNTED),
        Hint(
            loss_is(without_first),
            "The first token of each text is missing from the loss. The last prompt position predicts it: count it.",
        ),
        Hint(
            loss_is(shifted_twice),
            "The labels were shifted twice: transformers compares position t with label t + 1 by itself. Give each "
            "position its own token as its label.",
        ),
        Hint(
            lambda run: run.got["grad"] is None or not run.got["grad"].any(),
            "No gradient reaches the prompt: a .detach(), .data or torch.no_grad() cuts it off on its way to the "
            "model.",
        ),
        Hint(
            lambda run: not close(run.got["logits"], logits_with(run)),
            "The logits are off. The model reads every row of self.prompt, in order and as it is, then the embeddings "
            "of input_ids, with each text's own mask and the positions 0, 1, 2, …",
        ),
        Hint(
            lambda run: not close(run.got["loss"], run.expected["loss"]),
            f"The logits are right and the labels are not. They are {IGNORED} for every prompt position and those "
            "given after that; the loss is the model's own.",
        ),
    ),
)
