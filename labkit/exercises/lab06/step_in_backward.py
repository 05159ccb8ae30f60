"""Lab 06: an optimizer that steps inside of the backward pass, on a small language model, and what it has to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.spec import Answer, Case, Exercise, Tree

N_TOKENS, BATCH = 32, 4
REFUSED: dict[str, object] = {"max_norm": 1.0, "accumulation_steps": 4, "scaler": "a GradScaler"}
"""What cannot be done, by argument, with a value that asks for it."""
SHOWN_ROWS = 4
"""Of a weight in a case that is watched: all of them, sent back, would take more memory than the gradients."""


@dataclass(frozen=True)
class Training(Case):
    """n_steps of a model with n_layers of `width`. tied: its head is its embedding. frozen: its norm is not trained.

    optimizer: "sgd" or "adamw". watched: SHOWN_ROWS of each weight are written down, at the end alone, so that nothing
    hides what is alive in a backward pass.
    """

    n_layers: int = 6
    width: int = 48
    tied: bool = False
    frozen: bool = False
    optimizer: str = "adamw"
    n_steps: int = 3
    watched: bool = False


@dataclass(frozen=True)
class Asked(Case):
    """A call with one argument that cannot be served."""

    argument: str


class Chain(nn.Module):
    """Tokens to logits. The gradient of a layer's weight is far larger than the activations of its BATCH tokens."""

    def __init__(self, case: Training) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_TOKENS, case.width)
        self.layers = nn.ModuleList(nn.Linear(case.width, case.width, bias=False) for _ in range(case.n_layers))
        self.norm = nn.LayerNorm(case.width)
        self.head = nn.Linear(case.width, N_TOKENS, bias=False)
        if case.tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = x + layer(x).tanh()
        return self.head(self.norm(x))


def training_inputs(case: Training | Asked, gen: torch.Generator) -> dict[str, Tree]:
    """seed: of the weights. tokens, targets: (n_steps, BATCH)."""
    if isinstance(case, Asked):
        return {}
    drawn = torch.randint(N_TOKENS, (2, case.n_steps, BATCH), generator=gen)
    return {"seed": int(torch.randint(2**31, (), generator=gen)), "tokens": drawn[0], "targets": drawn[1]}


def build(case: Training, seed: int) -> Chain:
    with torch.device("meta"):
        model = Chain(case)
    model = model.to_empty(device="cpu")
    if case.tied:
        model.head.weight = model.embedding.weight
    gen = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 1 / case.width**0.5, generator=gen)
    model.norm.requires_grad_(not case.frozen)
    return model


def maker_of(case: Training) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]:
    """What makes the optimizer of some parameters."""
    if case.optimizer == "sgd":
        return lambda params: torch.optim.SGD(params, lr=0.1, foreach=False)
    return lambda params: torch.optim.AdamW(params, lr=0.02, weight_decay=0.1, fused=True)


def weights_of(model: Chain, watched: bool = False) -> dict[str, Tensor]:
    """Copies by name; of their first rows alone where the case is watched."""
    n_rows = SHOWN_ROWS if watched else None
    return {name: value.detach()[:n_rows].clone() for name, value in model.named_parameters()}


def drive_training(ans, case: Training | Asked, tree: dict, stage) -> dict[str, Tree]:
    """The weights after each step of backward passes alone; or what became of a call that cannot be served."""
    if isinstance(case, Asked):
        model = Chain(Training())
        arguments = {case.argument: REFUSED[case.argument]}
        with stage.meter("memory"):
            try:
                ans.step_in_backward(model, maker_of(Training()), **arguments)
            except ValueError as error:
                return {"refusal": str(error)}
            except (RuntimeError, AssertionError) as error:
                if isinstance(error, NotImplementedError):
                    raise  # as an answer that is not written yet
                return {"refusal": None, "raised": f"{type(error).__name__}: {error}"}
        return {"refusal": None}
    # What PyTorch loads at a first backward pass is no memory of the answer.
    small = build(Training(n_layers=1, width=4), tree["seed"])
    F.cross_entropy(small(tree["tokens"][0]), tree["targets"][0]).backward()
    with stage.meter("memory"):
        model = build(case, tree["seed"]).to(stage.device)
        ans.step_in_backward(model, maker_of(case))
        history = {}
        for step, (tokens, targets) in enumerate(zip(tree["tokens"], tree["targets"]), start=1):
            F.cross_entropy(model(tokens.to(stage.device)), targets.to(stage.device)).backward()
            if not case.watched:
                history[f"step {step}"] = weights_of(model)
    if case.watched:
        history[f"step {case.n_steps}"] = weights_of(model, watched=True)
    return history


STEP_IN_BACKWARD = Exercise(
    id="06-step-in-backward",
    title="Step inside the backward pass",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("step_in_backward"),),
    public=(
        Training(optimizer="sgd", n_steps=1),
        Training(),
        Training(tied=True),
        Training(frozen=True, n_steps=2),
        Training(n_layers=12, width=256, optimizer="sgd", n_steps=2, watched=True),
        *map(Asked, REFUSED),
    ),
    inputs=training_inputs,
    drive=drive_training,
    meters=("memory",),
)
