"""Lab 06: an optimizer's steps on given gradients, so that a mistake in one step changes nothing but what comes after.

It builds the parameter groups, hands out gradients, saves and loads the optimizer where a case asks for it, and writes
the weights down after every step. What an optimizer computes is none of its business.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from labkit.spec import Case, Tree

SHAPES = {"embedding": (6, 4), "norm": (4,), "head": (3, 4), "bias": (3,)}
N_METERED = 2
"""Steps whose live bytes are measured: a state may be made in the second."""
COUNTED = 3
"""The step whose operations are counted: by then the parameters have their states."""

Groups = list[dict[str, object]]
Params = Groups | Iterator[torch.nn.Parameter]
"""What torch.optim.Optimizer takes: groups, or parameters alone, as model.parameters() gives them."""


@dataclass(frozen=True)
class Stepping(Case):
    """n_steps on parameters of SHAPES, the embedding with n_tokens rows and all with `width` columns.

    n_embeddings: more than one makes a large model of many tensors.
    n_groups: 1, or 2: what has two axes, and the rest with half the learning rate and no decay. rare: RARE, behind
    which others come, has a gradient in the steps 2, 4, 6, ... alone. resumed_after: after this many steps the
    optimizer is saved, and loaded by a new one. grad_scale: the gradients' size.
    """

    RARE: ClassVar[str] = "norm"
    n_steps: int = 20
    n_groups: int = 1
    rare: bool = False
    resumed_after: int | None = None
    n_tokens: int = 6
    width: int = 4
    n_embeddings: int = 1
    grad_scale: float = 1.0

    def group_settings(self) -> tuple[dict[str, float], ...]:
        """What each group has beside its parameters; the first alone where there is one."""
        return ({}, {})[: self.n_groups]

    def group_of(self, name: str, shape: tuple[int, ...]) -> int:
        return int(self.n_groups == 2 and len(shape) < 2)

    def handed_out(self, step: int, drawn: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Of a step's gradients, the first step being 0, those that the parameters have."""
        return {name: grad for name, grad in drawn.items() if not (self.rare and name == self.RARE and step % 2 == 0)}


def shapes_of(case: Stepping) -> dict[str, tuple[int, ...]]:
    replaced = {6: case.n_tokens, 4: case.width}
    shapes = {name: tuple(replaced.get(size, size) for size in shape) for name, shape in SHAPES.items()}
    return shapes | {f"embedding {n}": shapes["embedding"] for n in range(2, case.n_embeddings + 1)}


def stepping_inputs(case: Stepping, gen: torch.Generator) -> dict[str, Tree]:
    """weights: by name, float32 of size 1. grads: one such dict a step, without RARE where it has none."""
    shapes = shapes_of(case)
    weights = {name: torch.randn(shape, generator=gen) for name, shape in shapes.items()}
    grads = []
    for step in range(case.n_steps):
        # A direction that stays and one that does not: moments of both kinds.
        drawn = {name: 0.5 + torch.randn(shape, generator=gen) for name, shape in shapes.items()}
        grads.append({name: case.grad_scale * grad for name, grad in case.handed_out(step, drawn).items()})
    return {"weights": weights, "grads": grads}


def play(
    make: Callable[[Params], object], case: Stepping, tree: dict, stage=None, counted: bool = False
) -> dict[str, Tree]:
    """Step `make(params)` through the gradients: "step 1" -> weights by name, and so on.

    stage: if it is given, measures `saved_bytes` of the first steps and `peak_bytes` of all, the history among them.
    counted: also the operations of one later step.
    """
    if stage is None:
        return _play(make, case, tree, None, counted)
    warm_up(make, device=stage.device)
    with stage.meter("memory"):
        return _play(make, case, tree, stage, counted)


def _play(make: Callable[[Params], object], case: Stepping, tree: dict, stage, counted: bool) -> dict[str, Tree]:
    device = "cpu" if stage is None else stage.device
    parameters = {name: torch.nn.Parameter(value.clone().to(device)) for name, value in tree["weights"].items()}
    optimizer = make(grouped(case, parameters))
    history = {}
    for step, grads in enumerate(tree["grads"], start=1):
        for name, parameter in parameters.items():
            parameter.grad = grads[name].clone().to(device) if name in grads else None
        with none_explained(), ExitStack() as meters:
            if stage is not None and step <= N_METERED:
                meters.enter_context(stage.meter("saved"))
            if stage is not None and counted and step == COUNTED:
                meters.enter_context(stage.meter("ops"))
            optimizer.step()
        history[f"step {step}"] = {name: value.detach().clone() for name, value in parameters.items()}
        if step == case.resumed_after:
            # As from a file: nothing of the old optimizer is alive in the new one.
            saved = copy.deepcopy(optimizer.state_dict())
            parameters = {name: torch.nn.Parameter(value.detach().clone()) for name, value in parameters.items()}
            optimizer = make(grouped(case, parameters))
            optimizer.load_state_dict(saved)
    return history


def grouped(case: Stepping, parameters: dict[str, torch.nn.Parameter]) -> Params:
    """The parameters in their groups; alone where there is one, which has no settings of its own."""
    if case.n_groups == 1:
        return iter(parameters.values())
    groups: Groups = [{"params": [], **settings} for settings in case.group_settings()]
    for name, parameter in parameters.items():
        groups[case.group_of(name, tuple(parameter.shape))]["params"].append(parameter)
    return groups


@contextmanager
def none_explained() -> Iterator[None]:
    """Say in the error of an answer that meets a gradient of None where it comes from."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        if "NoneType" in str(error):
            # PyTorch goes on with a list of what it would have taken.
            head = str(error).partition("\n")[0].removesuffix(", but expected one of:")
            error.args = (f"{head} (some parameters have no gradient in this step: their p.grad is None)",)
        raise


def warm_up(
    make: Callable[[Params], object], dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> None:
    """Two steps of a parameter of its own, in a group: what Python keeps of the first is no state of the optimizer."""
    parameter = torch.nn.Parameter(torch.ones(2, 2, dtype=dtype, device=device))
    optimizer = make([{"params": [parameter]}])
    for _ in range(2):
        if parameter.dtype != dtype:
            return  # whatever has become of it, the judge of the real steps says so
        parameter.grad = torch.ones(2, 2, dtype=dtype, device=device)
        optimizer.step()
