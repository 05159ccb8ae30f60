"""Lab 20: what to try next: for each way in which a try ends, each part of the peak, and each ghost that is ahead."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.capstone.entry import Entry
from labkit.capstone.ghosts import ghosts
from labkit.capstone.score import SPREAD, TARGET_LOSS
from labkit.exercises.lab20.budget import Try
from labkit.oracles.hints import Condition
from labkit.oracles.lab20.budget_entry import entry
from labkit.spec import CaseRun, Hint


def ended(kind: str, *words: str) -> Condition:
    """A hint's condition: the try ended in this way, and the problem speaks of all of these."""
    return lambda run: run.got["kind"] == kind and all(word in run.got["problem"] for word in words)


def most_is(category: str) -> Condition:
    """It does not fit, and this is the largest part of the peak."""
    return lambda run: run.got["kind"] == "memory" and entry(run).largest == category


def fits_and(holds: Callable[[Entry], bool]) -> Condition:
    """It keeps to the rules, and this is so of the entry."""
    return lambda run: not run.got["kind"] and holds(entry(run))


def slower_than(level: str) -> Condition:
    """It counts, this ghost is still ahead of it, and no slower one is."""

    def behind(found: Entry) -> bool:
        hours = {name: ghost.virtual_hours for name, ghost in ghosts()[found.machine].items() if ghost.counts}
        slower = [other for name, other in hours.items() if other > hours[level]]
        ahead = found.virtual_hours > hours[level] and all(found.virtual_hours <= other for other in slower)
        return found.counts and ahead

    return fits_and(behind)


_HALF = ("bfloat16", "float16", "half", "autocast")
_CURES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "activations",
        ("fused",),
        'The attention keeps all its scores: ask for `attention="fused"`. Then look what the peak consists of.',
    ),
    (
        "activations",
        ("checkpoint",),
        "Recompute the blocks (`kit.checkpoint`), or take fewer sequences at a time and accumulate.",
    ),
    (
        "activations",
        ("chunked_loss",),
        "The blocks are recomputed. Never hold all logits at once (`kit.chunked_loss`), or take fewer sequences at a "
        "time and accumulate.",
    ),
    ("activations", (), "Take fewer sequences at a time, and accumulate."),
    (
        "optimizer",
        ("AdamW8bit", "Adafactor"),
        "Two moments in float32 are 8 bytes for each parameter: `kit.AdamW8bit` keeps 2, `kit.Adafactor` almost none.",
    ),
    (
        "optimizer",
        ("Adafactor",),
        "Two moments in 8 bits are 2 bytes for each parameter. `kit.Adafactor` keeps almost none.",
    ),
    ("optimizer", (), "Adafactor itself keeps almost nothing: what else does the script keep from step to step?"),
    (
        "gradients",
        _HALF,
        "Keep the weights, and so the gradients, in 16 bits, or update each weight as soon as its gradient is there "
        "(`kit.step_in_backward`).",
    ),
    (
        "gradients",
        ("step_in_backward",),
        "Update each weight as soon as its gradient is there (`kit.step_in_backward`), or take all sequences at once, "
        "so that no gradients are summed.",
    ),
    ("gradients", (), "Take all sequences at once: gradients that are summed over micro-batches stay all the time."),
    (
        "parameters",
        _HALF,
        "Ask for the model in 16 bits: `run.model(dtype=...)`. The optimizers of `kit` round such weights "
        "stochastically.",
    ),
    ("parameters", (), "Keep no copy of them, and no dtype wider than 16 bits: `run.model(dtype=...)`."),
    (
        "temporaries",
        (),
        "The largest tensors live for a moment: the logits and their gradient, scores of eager attention, or what an "
        "optimizer computes with in float32.",
    ),
)
"""(largest part of the peak, names that the script uses none of, what to do), the first that holds. What a script does
already is not told to it."""
_GAINS: tuple[tuple[Condition, str], ...] = (
    (
        lambda run: not uses(run, *_HALF),
        "The products are in float32. A card multiplies at least twice as fast in 16 bits",
    ),
    (
        lambda run: not uses(run, "fused"),
        'Eager attention writes all scores and reads them again: `attention="fused"` keeps none',
    ),
    (
        lambda run: uses(run, "checkpoint"),
        "The blocks are recomputed, which is up to a sixth of a step. Make room in what the peak consists of, and "
        "recompute less",
    ),
    (
        lambda run: uses(run, "to_host"),
        "The card waits for every byte that goes to the host and back. Make room on it, and move less",
    ),
    (
        lambda run: True,
        "Nothing is recomputed, so memory is no longer what holds you up: look for what is read and written more often "
        "than it has to be, such as the states of an optimizer",
    ),
)
"""(whether it holds, what to do), the first that holds."""
_LEARN_FASTER = (
    ". Otherwise let each sequence teach more: a higher learning rate that falls to 0 at the end, fewer sequences a "
    "step, another optimizer, fewer steps."
)


def uses(run: CaseRun[Try], *names: str) -> bool:
    """Whether the script's text has one of these."""
    return bool(set(names) & set(run.got["script"]["uses"]))


def lacks(category: str, names: tuple[str, ...]) -> Condition:
    """It does not fit, this is the largest part of the peak, and the script has none of the names."""
    is_largest = most_is(category)
    return lambda run: is_largest(run) and not uses(run, *names)


def both(one: Condition, other: Condition) -> Condition:
    return lambda run: one(run) and other(run)


DIAGNOSE = (
    Hint(
        ended("refused", "import"),
        "The script is graded as text in a language of its own. `torch`, `nn`, `F`, `math`, `kit` and `run` are there; "
        "nothing else can be imported.",
    ),
    Hint(
        ended("refused", "underscore"),
        "Nothing that begins with an underscore is the script's: tokens, weights and sizes come from `run`'s methods, "
        "and the evaluation's sentences come from nowhere.",
    ),
    Hint(
        ended("refused", "cannot be set"),
        "A script patches nothing: what is counted, and how the model is evaluated, is not its to decide.",
    ),
    Hint(
        ended("refused", "a class of a script"),
        "Tensors tell the meter how large they are, so a script makes no kind of tensor of its own.",
    ),
    Hint(
        ended("refused", "`.GradScaler`"),
        "There is no scaler here, because it reads values and skips steps. Multiply the loss by a constant such as "
        "1024, and divide the gradients by it before the update. Autocast is `kit.autocast(dtype)`.",
    ),
    Hint(
        ended("refused", "among what a script may use"),
        "Only what a training needs is there. A script keeps what it needs in tensors, where it is counted: ways out "
        "of them, such as NumPy or files, are closed.",
    ),
    Hint(
        ended("parked"),
        "What a script keeps from step to step is on its bill: every step of training may hold what the billed one "
        "does, and no more. A tensor that is kept from the third step on, or only where tensors hold data, is found.",
    ),
    Hint(
        ended("rule", "lies on the card"),
        "A script works on one card, and names no device. What is to lie in the host's memory goes there by "
        "`run.to_host`, which is billed.",
    ),
    Hint(
        ended("rule", "run.model made"),
        "A script trains the weights that `run.model` made, all of them and no others: they are what the loss is "
        "worked out from. What else it needs, it keeps beside the model.",
    ),
    Hint(
        ended("rule", "outside of `step`"),
        "`setup` prepares: whatever learns from tokens belongs into `step`, which is billed as often as you declare.",
    ),
    Hint(
        ended("tokens"),
        "Every declared step has to do the same work, on as many sequences as the bill has. If the model has learned "
        "enough before the last step, declare fewer steps.",
    ),
    Hint(
        ended("size"),
        "What a step does may not depend on the size of the model: the tiny run has to prove the script that is "
        "billed. Remove whatever looks at a shape to decide what to do, or works on as many numbers at every size.",
    ),
    Hint(
        ended("data"),
        "What a step does may not depend on the values in tensors or on the step's number. On the bill, tensors hold "
        "no values, and only one step is counted. So no value can be read, as `.item()`, `if loss > 3:` and `print` of "
        "a tensor do.",
    ),
    Hint(
        ended("work"),
        "Every step trains the whole model on every token that it takes: `x` and `y` as they come, through all blocks, "
        "with attention to all that came before, and each weight is updated. To do less, take fewer sequences or "
        "declare fewer steps.",
    ),
    Hint(
        ended("dtype"),
        "This card has no arithmetic for that format. A card without bfloat16 has float16: scale the loss, so that "
        "small gradients do not become 0, and scale it back before the update.",
    ),
    *(
        Hint(lacks(category, names), f"The largest part of the peak is {category}. {cure}")
        for category, names, cure in _CURES
    ),
    Hint(
        fits_and(lambda found: any(math.isnan(loss) for loss in found.losses.values())),
        "The loss is NaN: something overflowed. The learning rate is too high or, in float16, the loss's scale.",
    ),
    Hint(
        fits_and(lambda found: not found.reached and min(found.losses.values(), default=math.inf) <= TARGET_LOSS),
        f"It learns enough on one language and too little on another: they differ by about {SPREAD} nats. Aim at "
        f"{TARGET_LOSS - SPREAD:.2f} on the language of the check.",
    ),
    Hint(
        fits_and(lambda found: not found.reached),
        "It fits, but does not learn enough in the steps that you declare. Try the learning rate first (factors of 2), "
        "then a warm-up and a decay to 0, then more steps.",
    ),
    *(
        Hint(both(slower_than(level), when), f"The {level} ghost is the next ahead of you. {gain}{_LEARN_FASTER}")
        for level in ("silver", "bronze")
        for when, gain in _GAINS
    ),
)
