"""Lab 08, p-tuning: a prompt that a small network makes, and which parameters an optimizer is given.

How a prompt reaches the model beside a text is another exercise's business: here the model reads the prompt alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab08.prefix_tuning import loaded, random_encoder
from labkit.exercises.lab08.prompt_tuning import FORBIDDEN, SoftPrompt, model_of, on, weights_of
from labkit.spec import Answer, Exercise

N_STEPS, LEARNING_RATE = 2, 0.05


@dataclass(frozen=True)
class PTuning(SoftPrompt):
    """A prompt network: kind "MLP" or "LSTM", and its inner width."""

    kind: str = "MLP"
    width: int = 6


def encoder_shapes(case: PTuning) -> dict[str, tuple[int, ...]]:
    """The parameters of the prompt network under peft's names."""
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (case.n_prompt, case.hidden)}
    layers = ((0, case.width, case.hidden), (2, case.width, case.width), (4, case.hidden, case.width))
    if case.kind == "LSTM":
        both = 2 * case.width  # the two directions side by side
        for layer, n_in in ((0, case.hidden), (1, both)):
            for end in (f"l{layer}", f"l{layer}_reverse"):
                shapes[f"lstm_head.weight_ih_{end}"] = (4 * case.width, n_in)
                shapes[f"lstm_head.weight_hh_{end}"] = (4 * case.width, case.width)
                shapes[f"lstm_head.bias_ih_{end}"] = shapes[f"lstm_head.bias_hh_{end}"] = (4 * case.width,)
        layers = ((0, both, both), (2, case.hidden, both))
    for index, n_out, n_in in layers:
        shapes |= {f"mlp_head.{index}.weight": (n_out, n_in), f"mlp_head.{index}.bias": (n_out,)}
    return shapes


def ptuning_inputs(case: PTuning, gen: torch.Generator) -> dict:
    """Weights of the model and of the network, and the token that should follow the prompt."""
    shapes = encoder_shapes(case)
    encoder = random_encoder({name: shape for name, shape in shapes.items() if len(shape) > 1}, gen)
    encoder |= {name: 0.3 * torch.randn(shape, generator=gen) for name, shape in shapes.items() if len(shape) == 1}
    return {
        "weights": weights_of(case, gen),
        "encoder": encoder,
        "target": torch.randint(5, 50, (1,), generator=gen),
    }


def next_token_loss(model: torch.nn.Module, prompt: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """How unlikely the model finds the target after the prompt."""
    logits = model(inputs_embeds=prompt[None]).logits[:, -1]
    return torch.nn.functional.cross_entropy(logits, target)


def drive_ptuning(ans, case: PTuning, tree: dict, stage) -> dict:
    """The network by itself; then the parameters that the answer names train for a few steps.

    live: all parameters of the network have requires_grad. What cannot be run without parameters is None.
    """
    tree = on(stage.device, tree)
    model = model_of(case, tree["weights"], stage.device)
    encoder = ans.PromptEncoder(case.n_prompt, case.hidden, case.width, case.kind).to(stage.device)
    got = {"parameters": loaded(encoder, tree["encoder"]), "prompt": None, "trained": None, "losses": None}
    got |= {"frozen": None, "live": None, "trained_prompt": None, "model_kept": None}
    if got["parameters"] != {name: list(item.shape) for name, item in sorted(tree["encoder"].items())}:
        return got
    prompt = encoder()
    got["prompt"] = prompt.detach().clone() if isinstance(prompt, torch.Tensor) else prompt
    if not isinstance(prompt, torch.Tensor) or prompt.shape != (case.n_prompt, case.hidden):
        return got
    parameters = list(ans.trained_parameters(model, encoder))
    owned = [(f"prompt network: {name}", item) for name, item in encoder.named_parameters()]
    owned += [(f"model: {name}", item) for name, item in model.named_parameters()]
    got["trained"] = sorted(next((n for n, own in owned if own is item), "neither's") for item in parameters)
    got["frozen"] = not any(item.requires_grad for item in model.parameters())
    got["live"] = all(item.requires_grad for item in encoder.parameters())
    if "neither's" in got["trained"]:
        return got
    got["losses"] = train(model, encoder, parameters, tree["target"])
    got["trained_prompt"] = encoder().detach().clone()
    got["model_kept"] = all(torch.equal(item, tree["weights"][name]) for name, item in model.named_parameters())
    return got


def train(model, encoder, parameters: list, target: torch.Tensor) -> list[float]:
    """The loss before each of N_STEPS steps of plain gradient descent; none where no gradient reaches a parameter."""
    if not any(item.requires_grad for item in parameters):
        return []
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE)
    losses = []
    for _ in range(N_STEPS):
        optimizer.zero_grad()
        loss = next_token_loss(model, encoder(), target)
        if not loss.requires_grad:
            return []
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


P_TUNING = Exercise(
    id="08-p-tuning",
    title="A network that makes the prompt",
    points=0.8,
    optional=True,
    minutes=15,
    difficulty=2,
    answers=(Answer("PromptEncoder"), Answer("trained_parameters")),
    public=(
        PTuning(n_prompt=4),
        PTuning(n_prompt=4, kind="LSTM"),
        PTuning("gpt2", n_prompt=7, kind="LSTM", width=3),
    ),
    inputs=ptuning_inputs,
    drive=drive_ptuning,
    forbids=FORBIDDEN,
)
