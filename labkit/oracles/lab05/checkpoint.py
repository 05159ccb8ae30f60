"""Lab 05: what is true of a checkpoint, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab05.checkpoint import FAR_APART, Blocks, plain, run_blocks
from labkit.oracles.hints import Condition, once
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Oracle, Tolerance

SLACK_BYTES = 192 * KiB
"""For the state of the generator of each call, small vectors, and the objects of the autograd graph."""


@once
def plain_run(run: CaseRun[Blocks]) -> dict[str, Any]:
    """The same blocks without any checkpoint, by PyTorch's own autograd; each block should have run twice."""
    with torch.random.fork_rng(devices=[]):
        found = run_blocks(plain, run.case, run.tree, torch.device("cpu"))
    return {**found, "calls": torch.full((run.case.n_blocks,), 2)}


def tolerances(run: CaseRun[Blocks]) -> dict[str, Tolerance]:
    """float32 sums of a few hundred terms in another order. How far a second draw was off only serves the hints."""
    close = Tolerance(rtol=1e-4, of_largest=1e-4)
    return {"loss": Tolerance(atol=5e-3, rtol=1e-4), "grads": close, "redrawn": Tolerance(atol=math.inf)}


def kept_bytes(run: CaseRun[Blocks]) -> float:
    """The output of every block, which is the next one's argument."""
    return run.case.n_blocks * (run.case.x_bytes + 8 * KiB) + SLACK_BYTES


def peak_bytes(run: CaseRun[Blocks]) -> float:
    """The outputs, the parameters' gradients, and one block: its four activations and as many for its backward."""
    return kept_bytes(run) + 2 * run.case.parameter_bytes + 8 * run.case.hidden_bytes + 6 * run.case.x_bytes


def all_grads(got: dict) -> list[tuple[str, torch.Tensor | None]]:
    """(what it belongs to, gradient) of every leaf."""
    found = [("x", got["grads"]["x"])]
    for weights in got["grads"]["blocks"]:
        found += list(weights.items())
    return found


def missing(got: dict, names: tuple[str, ...]) -> bool:
    """Some gradient of this kind did not arrive."""
    return any(gradient is None for name, gradient in all_grads(got) if name in names)


def without_the_gradient_from_above(run: CaseRun[Blocks]) -> bool:
    """The last block's gradients are those of the plain sum of its output."""
    mine = run.got["grads"]["blocks"][-1]
    right, wrong = (
        plain_run(replace(run, tree={**run.tree, "probe": probe}))["grads"]["blocks"][-1]
        for probe in (run.tree["probe"], torch.ones_like(run.tree["probe"]))
    )
    return all(torch.allclose(mine[name], wrong[name], rtol=1e-3, atol=1e-3) for name in ("w_in", "w_out")) and not (
        torch.allclose(wrong["w_out"], right["w_out"], rtol=1e-2, atol=1e-2)
    )


def tensors_first(fn: Callable[..., torch.Tensor], *args: object) -> torch.Tensor:
    """fn(*args), with the gradients that a second run has whose arguments that are no tensors stand at the end."""
    before = torch.get_rng_state()
    right = fn(*args)
    after = torch.get_rng_state()
    torch.set_rng_state(before)
    wrong = fn(*sorted(args, key=lambda arg: not isinstance(arg, torch.Tensor)))
    torch.set_rng_state(after)
    return wrong + (right - wrong).detach()


def in_another_order(run: CaseRun[Blocks]) -> bool:
    """All gradients are those of a second run with the tensors first; each block gets a number behind one tensor."""
    with torch.random.fork_rng(devices=[]):
        found = run_blocks(tensors_first, run.case, run.tree, torch.device("cpu"))
    pairs = zip(all_grads(run.got), all_grads(found), strict=True)
    return all(torch.allclose(mine, other, rtol=1e-3, atol=1e-3) for (_, mine), (_, other) in pairs)


def only_the_generator(run: CaseRun[Blocks]) -> bool:
    """All gradients arrived, the second run drew what the first had drawn, and then the generator stood elsewhere."""
    right = run.expected
    return bool((run.got["redrawn"] == 0).all()) and not torch.equal(run.got["next_random"], right["next_random"])


def other_loss(run: CaseRun[Blocks]) -> object:
    """Without dropout the loss is right whatever was drawn."""
    differs = not torch.allclose(run.got["loss"], run.expected["loss"], rtol=1e-3, atol=1e-2)
    return CANNOT_TELL if run.case.drop == 0 and not differs else differs


def error_says(part: str) -> Condition:
    """A hint's condition: the call ended with an error whose text has this part."""
    return lambda run: part in (run.got["error"] or "")


CHECKPOINT = Oracle(
    id="05-checkpoint",
    expect=plain_run,
    tolerance=tolerances,
    call=lambda run: (
        f"{run.case.n_blocks} blocks, each checkpoint(fn, x, {run.case.drop}, gate, shift) with x of shape "
        f"({run.case.n_rows}, {run.case.width}); fn drops {run.case.drop:.0%} of its inside"
    ),
    places={
        "calls": "number of runs of fn in each block",
        "next_random": "state of the generator after the backward pass",
        "grads.x": "gradient of x",
        "error": "error of the backward pass",
    },
    axis="shapes, depths and rates of dropout",
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "saved_bytes",
            kept_bytes,
            "More than the arguments is still alive after the forward pass. It counts wherever it hides: on ctx, in a "
            "closure, a list or a global, as numpy arrays or as Python numbers; a graph that something holds counts "
            "too.",
        ),
        Budget(
            "peak_bytes",
            peak_bytes,
            "The peak is more than the arguments of all blocks and the inside of one. Recompute a block when its own "
            "backward comes, and free it after that; what is set aside in an earlier call counts as well.",
        ),
    ),
    diagnose=(
        Hint(
            error_says("does not require grad"),
            "Inside backward gradients are off. Recompute within `with torch.enable_grad():`, on detached copies of "
            "the tensors that have their requires_grad again.",
        ),
        Hint(
            error_says("number of gradients"),
            "backward returns one value for each argument of forward, fn included: None for whatever is no tensor or "
            "needs no gradient.",
        ),
        Hint(
            error_says("gradient different"),
            "backward returned a gradient for an argument that is no tensor: the values it returns stand in the order "
            "of forward's arguments, with None for each that is no tensor.",
        ),
        Hint(
            error_says("can require gradients"),
            "A tensor of integers cannot require a gradient. Give each detached copy the requires_grad of its "
            "original.",
        ),
        Hint(
            error_says("second time"),
            "The second run of fn was tied to the first graph, which is gone. Detach all tensors among the arguments "
            "before the second run.",
        ),
        Hint(
            lambda run: bool((run.got["calls"] == 1).all()) and missing(run.got, ("x",)),
            "No gradient reached the arguments: they were detached, and nothing takes the gradient further back.",
        ),
        Hint(
            lambda run: bool((run.got["calls"] == 1).all()),
            "fn ran only once, so whatever its backward needs was kept all the time. Keep the arguments, and run fn "
            "again in backward.",
        ),
        Hint(
            lambda run: bool((run.got["calls"] > 2).any()),
            "fn ran more often than twice: once in forward without a graph, and once in backward with one.",
        ),
        Hint(
            other_loss,
            "The result of the forward pass is not fn's own. Do not seed or change anything before it, and leave the "
            "generator where fn leaves it.",
        ),
        Hint(
            lambda run: missing(run.got, ("x", "gate")),
            "No gradient reached the arguments. Give each detached copy the requires_grad of its original, and return "
            "its .grad from backward.",
        ),
        Hint(
            lambda run: missing(run.got, ("w_in", "w_out")),
            "The parameters inside fn got no gradient. torch.autograd.grad returns those of the arguments only; "
            "torch.autograd.backward also reaches the leaves that fn uses by itself.",
        ),
        Hint(
            without_the_gradient_from_above,
            "The gradients are those of the sum of fn's output. Begin its backward pass with the gradient that comes "
            "from above: torch.autograd.backward(out, grad_out).",
        ),
        Hint(
            in_another_order,
            "In the second run fn got the tensors first, and what is no tensor behind them. Put every argument back in "
            "its own place.",
        ),
        Hint(
            lambda run: bool(((run.got["redrawn"] > 0) & (run.got["redrawn"] < FAR_APART)).any()),
            "The second run drew other random numbers than the first, so that dropout took out other elements. Keep "
            "the state of the generator from before the first run, and set it before the second.",
        ),
        Hint(
            only_the_generator,
            "The generator stands elsewhere after the backward pass than without a checkpoint. Set its state back once "
            "the second run is over: torch.random.fork_rng() does both.",
        ),
    ),
)
