"""Lab 06: what an ordinary training loop makes of the weights, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.step_in_backward import REFUSED, Asked, Chain, Training, build, maker_of, weights_of
from labkit.oracles.hints import once
from labkit.oracles.lab06.histories import near
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Observation, Oracle, Tolerance

SLACK_BYTES = 256 * KiB
"""For activations, and for what Python keeps."""
ROUNDED = Tolerance(atol=2e-4, rtol=2e-5)
"""A hundredth of a step. AdamW divides a gradient by its own size: where that is nearly 0, rounding decides."""
ANOTHER_ERROR = "What cannot be done is refused with a ValueError, and with no other error."


@once
def ordinary(run: CaseRun[Training], mistake: str = "") -> dict:
    """A loop with backward(), step() and zero_grad(); with a mistake."""
    case, history = run.case, {}
    model = build(case, run.tree["seed"])
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if mistake == "matrices alone":
        trained = [layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)]
    if mistake == "last alone":
        trained = trained[-1:]
    if mistake == "first alone":
        trained = trained[:1]
    optimizer = maker_of(case)(trained)
    for step, (tokens, targets) in enumerate(zip(run.tree["tokens"], run.tree["targets"]), start=1):
        if mistake == "made anew":
            optimizer = maker_of(case)(trained)
        F.cross_entropy(model(tokens), targets).backward()
        if mistake == "clips each":
            for parameter in trained:
                nn.utils.clip_grad_norm_([parameter], 1.0)
        optimizer.step()
        if mistake != "adds up":
            model.zero_grad()
        history[f"step {step}"] = weights_of(model, case.watched)
    return history


def weights(run: CaseRun) -> str | None:
    """The weights after each step are those of the ordinary loop."""
    if isinstance(run.case, Asked):
        return None
    for step, got in run.got.items():
        for name, right in ordinary(run)[step].items():
            off = (got[name] - right).abs()
            if not (off <= ROUNDED.atol + ROUNDED.rtol * right.abs()).all():
                at = int(off.nan_to_num(nan=torch.inf).argmax())
                return (
                    f"{step} {name}.view(-1)[{at}] is {got[name].flatten()[at]:.6g}, and a loop with backward(), "
                    f"step() and zero_grad() makes it {right.flatten()[at]:.6g}"
                )
    return None


def refusal(run: CaseRun) -> str | None:
    """A call that cannot be served raises ValueError, whose text names the argument."""
    if isinstance(run.case, Training):
        return None
    text = run.got["refusal"]
    asked = f"{run.case.argument}={REFUSED[run.case.argument]!r}"
    if "raised" in run.got:
        return f"for {asked} no ValueError was raised, but {run.got['raised'][:120]}"
    if text is None:
        return f"no ValueError was raised for {asked}"
    if run.case.argument not in text:
        return f'the text of the ValueError is "{text[:80]}": it does not name {run.case.argument}'
    return None


def peak_bytes(run: CaseRun) -> float:
    """Weights, states, the weights after each step; of the gradients the largest, and once more while it is made.

    A tied weight's first gradient waits for the second one, while the layers between go by.
    """
    if isinstance(run.case, Asked):
        return 64 * SLACK_BYTES
    case = run.case
    with torch.device("meta"):
        sizes = [parameter.nbytes for parameter in Chain(case).parameters()]
    kept = 1 + (0 if case.watched else case.n_steps) + (2 if case.optimizer == "adamw" else 0)
    return kept * sum(sizes) + (4 if case.tied else 2) * max(sizes) + SLACK_BYTES


def moved_as(mistake: str) -> Callable[[CaseRun], object]:
    """A diagnosis: the weights went where this mistake takes them, which is not where they should be."""

    def when(run: CaseRun) -> object:
        if isinstance(run.case, Asked):
            return False
        right, wrong = ({step: ordinary(run, one)[step] for step in run.got} for one in ("", mistake))
        return near(run.got, wrong) and not near(wrong, right)

    return when


def nothing_moved(run: CaseRun) -> object:
    """Not in the first backward pass."""
    if isinstance(run.case, Training) and run.case.watched:
        return CANNOT_TELL
    first = "step 1"
    return near({first: run.got[first]}, {first: weights_of(build(run.case, run.tree["seed"]))})


def some_stay(run: CaseRun) -> object:
    """In the first backward pass some parameters have moved, and some that should have not."""
    if isinstance(run.case, Asked):
        return False
    if run.case.watched:
        return CANNOT_TELL
    before, got, right = weights_of(build(run.case, run.tree["seed"])), run.got["step 1"], ordinary(run, "")["step 1"]
    stay = [torch.equal(got[name], value) for name, value in before.items() if not torch.equal(right[name], value)]
    return any(stay) and not all(stay)


def not_refused(argument: str) -> Callable[[CaseRun], object]:
    def when(run: CaseRun) -> object:
        if isinstance(run.case, Training) or run.case.argument != argument:
            return CANNOT_TELL
        return run.got["refusal"] is None and "raised" not in run.got

    return when


def refused_otherwise(run: CaseRun) -> object:
    return "raised" in run.got if isinstance(run.case, Asked) else CANNOT_TELL


def called(run: Observation) -> str:
    if isinstance(run.case, Asked):
        return f"step_in_backward(model, make_optimizer, {run.case.argument}={REFUSED[run.case.argument]!r})"
    case = run.case
    return (
        f"step_in_backward(model, make_optimizer), a model of {case.n_layers} layers"
        f"{', head and embedding tied' * case.tied}{', its norm frozen' * case.frozen}, {case.n_steps} backward "
        f"pass{'es' * (case.n_steps != 1)} with {case.optimizer}"
    )


STEP_IN_BACKWARD = Oracle(
    id="06-step-in-backward",
    judge=(inputs_untouched, weights, refusal),
    call=called,
    axis="numbers of layers and steps, tied and frozen parameters",
    errors={
        "NotImplementedError": ANOTHER_ERROR,
        "cannot register a hook on a tensor that doesn't require gradient": "Go over model.parameters(), and leave out "
        "those whose requires_grad is False: a frozen parameter gets no gradient. (What state_dict() gives needs none "
        "either.)",
        "but hook returned": "PyTorch takes what a hook returns for a new gradient. A lambda returns its value: write "
        "a function that returns nothing.",
        "'NoneType' object is not callable": "None was called. Is it the hook? step(...) in the call that registers "
        "it runs at once, and what it returns is registered. Register a function for later: partial(step, optimizer).",
    },
    budgets=(
        Budget(
            "peak_bytes",
            peak_bytes,
            "Gradients of several layers were alive at the same time. Step and set p.grad to None as soon as the "
            "gradient of a parameter is there, in its own hook.",
        ),
    ),
    diagnose=(
        Hint(
            nothing_moved,
            "No weight has moved in the first backward pass. A hook registered with "
            "p.register_post_accumulate_grad_hook(hook) is called with p when p.grad is there; p.register_hook calls "
            "its hook before.",
        ),
        Hint(
            moved_as("adds up"),
            "The gradients of earlier steps are still in p.grad: set it to None after the parameter's step.",
        ),
        Hint(
            moved_as("made anew"),
            "The optimizer's moments began at zero in every step: make the optimizers once, before the backward pass.",
        ),
        Hint(
            moved_as("last alone"),
            "Only the last parameter moved. A function defined in a loop looks its variables up when it is called, "
            "after the loop: bind the optimizer, with functools.partial or a default argument.",
        ),
        Hint(
            moved_as("matrices alone"),
            "Only the weights of linear layers moved: register a hook for every parameter that needs a gradient.",
        ),
        Hint(
            some_stay,
            "Some parameters have not moved in the first backward pass. A hook on a module may run before the "
            "gradients of its parameters are there: register one for each parameter that needs a gradient, with "
            "p.register_post_accumulate_grad_hook(hook).",
        ),
        Hint(
            moved_as("clips each"),
            "Each tensor was clipped by its own norm, which nobody asked for: without max_norm nothing is clipped.",
        ),
        Hint(refused_otherwise, ANOTHER_ERROR),
        Hint(
            not_refused("max_norm"),
            "Clipping by the global norm has to be refused: the norm of all gradients is known when the last one is "
            "there, and by then the first parameters have stepped. Clipping each tensor by its own norm is another "
            "thing.",
        ),
        Hint(
            not_refused("accumulation_steps"),
            "Accumulation has to be refused: it needs the gradients to stay until the last batch, and here each is "
            "gone at once.",
        ),
        Hint(
            not_refused("scaler"),
            "A loss scaler has to be refused: it looks at all gradients, and skips the step of all if one of them is "
            "infinite.",
        ),
        Hint(
            lambda run: isinstance(run.case, Asked) and isinstance(run.got["refusal"], str),
            "The ValueError has to say what cannot be done: put the name of the argument into its text.",
        ),
    ),
)
