"""Lab 06: what torch's AdamW does with the same gradients, and what the usual mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.adamw import AdamSteps, Grouping, LanguageModel
from labkit.exercises.lab06.playing import play
from labkit.oracles.calls import fields_in_words
from labkit.oracles.hints import any_of
from labkit.oracles.lab06.adam_mistakes import moved_as
from labkit.oracles.lab06.histories import (
    CLOSE,
    ONE_BY_ONE,
    OTHER_STATE_BYTES,
    STEP_ERRORS,
    STOPS_AT_NONE,
    first_off,
    in_words,
    nothing_moved,
    zeros_for_none,
)
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, MiB, Observation, Oracle, Tolerance

MOST_LAYERS = 4
"""Of a model whose parameters are named in messages."""
GROUPS_BYTES = 64 * KiB
"""For two lists of parameters: what they hold was there before."""

TOO_MANY_BYTES = (
    "More than two float32 numbers per weight stay alive after a step: keep exp_avg and exp_avg_sq, in the dtype of "
    "the parameter, and change them and the weights in place."
)


def by_torch(run: CaseRun) -> dict:
    if isinstance(run.case, AdamSteps):
        return play(lambda groups: torch.optim.AdamW(groups, foreach=False, **run.case.settings()), run.case, run.tree)
    model = LanguageModel(run.case, stacked=True)
    return {
        "decay": {name: run.case.weight_decay if value.dim() >= 2 else 0.0 for name, value in model.named_parameters()}
    }


def tolerance(run: CaseRun) -> Tolerance:
    return CLOSE if isinstance(run.case, AdamSteps) else Tolerance(atol=1e-9)


def two_moments(run: CaseRun) -> float:
    """Two numbers for each weight, in its dtype."""
    if not isinstance(run.case, AdamSteps):
        return GROUPS_BYTES
    sizes = [value.nbytes for value in run.tree["weights"].values()]
    return 2 * sum(sizes) + OTHER_STATE_BYTES * len(sizes)


def peak_bytes(run: CaseRun) -> float:
    """Weights, gradients, moments, the weights after each step; temporary tensors for the largest parameter."""
    if not isinstance(run.case, AdamSteps):
        return MiB
    sizes = [value.nbytes for value in run.tree["weights"].values()]
    return (4 + run.case.n_steps) * sum(sizes) + 12 * max(sizes) + MiB


def called(run: Observation) -> str:
    if isinstance(run.case, Grouping):
        head = "the embedding's" if run.case.tied else "of its own"
        return (
            f"decay_groups(model, {run.case.weight_decay}), model with {run.case.n_layers} "
            f"block{'s' * (run.case.n_layers != 1)} and a head whose weight is {head}"
        )
    return f"AdamW(params, {fields_in_words(run.case.settings())}), {in_words(run.case)}"


def grouped(when) -> object:
    """A diagnosis of decay_groups: when(got, right), both decays by name."""

    def holds(run: CaseRun) -> object:
        # What is wrong with the steps of AdamW beside it is said when the groups are right.
        return CANNOT_TELL if isinstance(run.case, AdamSteps) else when(run.got["decay"], run.expected["decay"])

    return holds


def text_in(words: str):
    return grouped(lambda got, right: any(isinstance(value, str) and words in value for value in got.values()))


STEP_HINTS = (
    Hint(
        any_of(nothing_moved, moved_as("only the decay")),
        "No weight makes its step. Change the parameter in place, with p.sub_(...) or p.add_(...): `p = p - ...` makes "
        "a new tensor that the model does not have.",
    ),
    Hint(
        moved_as("adam"),
        "The decay went into the gradient, and through it into the moments: that is Adam with L2 regularization. "
        "AdamW shrinks the weight itself, by the factor 1 - lr * weight_decay.",
    ),
    Hint(moved_as("no decay"), "The weights do not decay: multiply them by 1 - lr * weight_decay."),
    Hint(
        moved_as("decay not times lr"),
        "The weights decay too fast: the factor is 1 - lr * weight_decay, not 1 - weight_decay.",
    ),
    Hint(
        moved_as("decay after the update"),
        "The decay came after the update and shrank that as well: first decay the weight, then subtract.",
    ),
    Hint(
        moved_as("no correction", "no first correction", "no second correction"),
        "The moments start at zero and are too small at first: divide exp_avg by 1 - beta1**step, and exp_avg_sq "
        "by 1 - beta2**step.",
    ),
    Hint(
        moved_as("state lost"),
        "After load_state_dict the moments began at zero again: they have to be in self.state[p], which "
        "state_dict() saves, not in an attribute of your own.",
    ),
    Hint(
        moved_as("count lost"),
        "After load_state_dict the count of steps began at zero again, the moments did not. Keep it in "
        "self.state[p], which state_dict() saves.",
    ),
    Hint(
        moved_as("one count for all parameters"),
        "One count of steps serves all parameters, and each of them moves it on. Each parameter has its own: "
        'self.state[p]["step"].',
    ),
    Hint(
        moved_as("state made anew"),
        "Every step begins with new moments. Fill self.state[p] in the parameter's first step alone, when it is still "
        "empty.",
    ),
    Hint(
        moved_as("factors without powers"),
        "The corrections are those of the first step in every step: 1 - beta**step, with the count of steps as the "
        "power.",
    ),
    Hint(
        moved_as("new and old swapped", "swapped in the mean", "swapped in the square"),
        "New and old are swapped in a moment: the old moment counts beta, the new value 1 - beta.",
    ),
    Hint(
        moved_as("square not squared", "magnitude for the square"),
        "exp_avg_sq is the running mean of the gradient's square, and yours of the gradient itself or its magnitude.",
    ),
    Hint(
        moved_as("one count in the group", "counts without a gradient"),
        "A parameter that had no gradient in some step is corrected by a count that went on, or by another's. Each has "
        'a count of its own, self.state[p]["step"], and one whose p.grad is None makes no step.',
    ),
    Hint(
        moved_as("correction of the step before"),
        "The count is 0 in the first step, so 1 - beta**0 divides by 0. Count the step before you correct: `step` is "
        "the step being taken.",
    ),
    Hint(
        moved_as("correction of the next step"),
        "The corrections are those of the next step: `step` counts from 1, and is the step being taken.",
    ),
    Hint(
        moved_as("count times the betas", "count times beta1", "count times beta2"),
        "The count of steps multiplies a beta. In a correction it is the exponent: 1 - beta**step.",
    ),
    Hint(
        moved_as("powers of what is new", "power of what is new in the mean", "power of what is new in the square"),
        "The power belongs to beta alone: 1 - beta**step, not (1 - beta)**step.",
    ),
    Hint(
        moved_as("corrections swapped"),
        "The corrections are swapped: 1 - beta1**step belongs to exp_avg, 1 - beta2**step to exp_avg_sq.",
    ),
    Hint(
        moved_as("beta1 in both corrections"),
        "Both corrections have beta1. That of exp_avg_sq is 1 - beta2**step.",
    ),
    Hint(
        moved_as("correction outside the root"),
        "The root was taken before the correction. First divide exp_avg_sq by 1 - beta2**step, then take the root.",
    ),
    Hint(moved_as("uphill"), "The weights climb up the gradient. Subtract the step."),
    Hint(moved_as("no learning rate"), "The step is not multiplied by the learning rate."),
    Hint(moved_as("betas swapped"), "The betas are swapped: the first belongs to exp_avg."),
    Hint(
        moved_as("no root"),
        "The root is missing: the update divides by the square root of the corrected exp_avg_sq.",
    ),
    Hint(
        moved_as("eps inside the root", "eps before the correction", "no eps"),
        "eps is at the wrong place, or missing: it is added to the root of the corrected second moment, as the "
        "last thing before the division.",
    ),
    Hint(moved_as("zeros in place of None"), zeros_for_none("moments")),
    Hint(
        moved_as("earlier groups again"),
        "The parameters of an earlier group were stepped again with those of the next one: begin each group with empty "
        "lists.",
    ),
    Hint(
        moved_as("settings of the first group"),
        "Every parameter was updated with the settings of one group. lr, betas, eps and weight_decay are those of "
        'the group that the parameter is in: group["lr"].',
    ),
    Hint(
        moved_as("gradient in place of the mean"),
        "The weight moves by the gradient of this step: the numerator is the corrected exp_avg.",
    ),
    Hint(moved_as("stops at None", "group stops at None"), STOPS_AT_NONE),
    Hint(
        moved_as("moments made anew"),
        "The new moments are not kept: they go into self.state[p], in place or by an assignment there.",
    ),
    Hint(
        moved_as("old mean kept whole", "new gradient whole", "new square whole"),
        "A moment is a mean: the old value counts beta, the new one 1 - beta. In yours one of the two counts whole.",
    ),
    Hint(moved_as("beta1 for the square"), "exp_avg_sq has beta1 in your answer: beta2 is its own."),
    Hint(
        moved_as("square of the mean"),
        "exp_avg_sq is the running mean of the gradient's square, and yours of the square of exp_avg.",
    ),
    Hint(
        moved_as("both corrected kept"),
        "The correction changes the stored moments, so the next step corrects them again. Divide into new tensors: "
        "exp_avg / (1 - beta1**step), not div_.",
    ),
    Hint(
        moved_as("corrections multiplied"),
        "The moments are multiplied by 1 - beta**step, which makes them smaller still: divide.",
    ),
    Hint(
        moved_as("mean begins with the gradient"),
        "exp_avg begins with the first gradient. It begins with zeros, which is what the correction is for.",
    ),
    Hint(
        moved_as("eps after the division"),
        "eps is added to the step, not to the root: Python divides first. Write (root + eps) in parentheses.",
    ),
)
"""On a step of AdamW, however it is computed."""

PLACES = {
    f"decay.{name}": f"weight decay of {name}"
    for name, _ in LanguageModel(Grouping(n_layers=MOST_LAYERS, tied=False), stacked=True).named_parameters()
}


ADAMW = Oracle(
    id="06-adamw",
    expect=by_torch,
    tolerance=tolerance,
    judge=(inputs_untouched,),
    call=called,
    axis="numbers of steps, settings, groups, and optimizers that are saved and loaded",
    fact=first_off,
    places=PLACES,
    budgets=(
        Budget("saved_bytes", two_moments, TOO_MANY_BYTES),
        Budget("peak_bytes", peak_bytes, ONE_BY_ONE),
    ),
    errors=STEP_ERRORS,
    diagnose=(
        Hint(
            grouped(lambda got, right: isinstance(got, str)),
            'decay_groups returns a list of two dicts, each {"params": [...], "weight_decay": ...}.',
        ),
        Hint(
            text_in("times in the groups"),
            "A parameter is listed twice, so it would be updated twice in every step. A tied weight has two names and "
            "is one tensor: model.parameters() gives it once.",
        ),
        Hint(
            text_in("in no group"),
            "A parameter is in no group, so it would never be trained. Put everything that does not decay into the "
            "second group.",
        ),
        Hint(
            grouped(lambda got, right: all(got[name] == max(right.values()) - right[name] for name in right)),
            "The groups are the wrong way round: what has two axes or more decays, and vectors have weight_decay 0.",
        ),
        Hint(
            grouped(lambda got, right: all(got[name] == value for name, value in right.items() if value)),
            "Something decays that has fewer than two axes. Norms, biases and single numbers have weight_decay 0; look "
            "at parameter.dim(), not at the name.",
        ),
        Hint(
            grouped(lambda got, right: all(got[name] == value for name, value in right.items() if not value)),
            "Something with two axes or more does not decay: embeddings and heads are matrices too, "
            "and a stack of matrices has three axes.",
        ),
        *STEP_HINTS,
    ),
)
