"""Lab 08, p-tuning: equal to peft given the same weights, before and after training, and what mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.p_tuning import PTuning, train
from labkit.oracles.calls import as_call
from labkit.oracles.hints import looks_like
from labkit.oracles.lab08.prompt_tuning import CLOSE, close, in_peft, quiet
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

Weights = dict[str, torch.Tensor]


def expected(run: CaseRun[PTuning]) -> dict:
    """What peft says, which trains its prompt network and nothing else."""
    from peft import PromptEncoderConfig

    config = PromptEncoderConfig(
        task_type="CAUSAL_LM",
        num_virtual_tokens=run.case.n_prompt,
        encoder_reparameterization_type=run.case.kind,
        encoder_hidden_size=run.case.width,
    )
    model = in_peft(run, config, run.tree["encoder"])
    encoder = model.prompt_encoder["default"]

    def prompt() -> torch.Tensor:
        return model.get_prompt(batch_size=1)[0]

    first = prompt().detach()
    with quiet():
        losses = train(
            model.base_model, prompt, [item for item in model.parameters() if item.requires_grad], run.tree["target"]
        )
    return {
        "parameters": {name: list(item.shape) for name, item in sorted(run.tree["encoder"].items())},
        "prompt": first,
        "trained": sorted(f"prompt network: {name}" for name, _ in encoder.named_parameters()),
        "frozen": True,
        "live": True,
        "losses": losses,
        "trained_prompt": prompt().detach(),
        "model_kept": True,
    }


def made_by(encode: Callable[[PTuning, Weights], torch.Tensor], kind: str) -> Callable[[CaseRun[PTuning]], object]:
    """A hint's condition: the wrong prompt of a network of this kind is made so; the other kind cannot tell."""
    is_made_so = looks_like("prompt", lambda run: encode(run.case, run.tree["encoder"]), close)
    return lambda run: is_made_so(run) if run.case.kind == kind else CANNOT_TELL


def linear(x: torch.Tensor, w: Weights, index: int) -> torch.Tensor:
    """One layer of the head."""
    return torch.nn.functional.linear(x, w[f"mlp_head.{index}.weight"], w[f"mlp_head.{index}.bias"])


def mlp(between: Callable = torch.relu, after: Callable = lambda x: x) -> Callable[[PTuning, Weights], torch.Tensor]:
    """The MLP with another function between its layers or after them."""
    return lambda case, w: after(linear(between(linear(between(linear(w["embedding.weight"], w, 0)), w, 2)), w, 4))


def table(case: PTuning, w: Weights) -> torch.Tensor:
    return w["embedding.weight"]


def alone(case: PTuning, w: Weights) -> torch.Tensor:
    """The LSTM reads every position as a text of its own."""
    lstm = torch.nn.LSTM(case.hidden, case.width, num_layers=2, bidirectional=True)
    lstm.load_state_dict({n.removeprefix("lstm_head."): v for n, v in w.items() if n.startswith("lstm_head.")})
    return linear(torch.relu(linear(lstm(w["embedding.weight"][None])[0][0], w, 0)), w, 2).detach()


def lacks(ending: str, kind: str) -> Callable[[CaseRun[PTuning]], bool]:
    """A hint's condition: the network of this kind is there, and has no parameter whose name ends so."""
    return lambda run: (
        run.case.kind == kind
        and "mlp_head.0.weight" in run.got["parameters"]
        and not any(name.endswith(ending) for name in run.got["parameters"])
    )


BETWEEN = "Between the linear layers of the prompt network stands a ReLU, and none after the last one."

P_TUNING = Oracle(
    id="08-p-tuning",
    expect=expected,
    judge=(inputs_untouched,),
    call=lambda run: as_call("PromptEncoder", run.case.n_prompt, run.case.hidden, run.case.width, run.case.kind),
    places={
        "prompt": "prompt",
        "parameters": "parameters",
        "trained": "list of what the optimizer gets",
        "trained_prompt": "prompt after two steps",
        "losses": "losses of two steps",
        "frozen": "answer to whether the model is frozen",
        "live": "answer to whether the encoder still trains",
        "model_kept": "answer to whether the model's weights stayed as they were",
    },
    axis="kinds, widths and numbers of positions",
    tolerance=CLOSE,
    diagnose=(
        Hint(
            lambda run: list(run.got["parameters"]) == ["embedding.weight"],
            "There is only the table, which is prompt tuning. p-tuning puts a network after it, mlp_head or lstm_head "
            "and mlp_head.",
        ),
        Hint(
            lambda run: (
                run.case.kind == "LSTM"
                and "mlp_head.4.weight" in run.got["parameters"]
                and not any(name.startswith("lstm_head") for name in run.got["parameters"])
            ),
            "The MLP was built where an LSTM was asked for: look at `kind`.",
        ),
        Hint(
            lacks("_reverse", "LSTM"),
            "The LSTM reads in one direction only. With bidirectional=True a position's vector depends on those before "
            "and after it, and is twice as wide.",
        ),
        Hint(
            lacks("_l1", "LSTM"),
            "The LSTM has one layer; peft's has num_layers=2.",
        ),
        Hint(
            lacks("mlp_head.4.weight", "MLP"),
            "The MLP has three linear layers with a ReLU between any two: hidden to width, width to width, width to "
            "hidden.",
        ),
        Hint(
            lambda run: run.case.kind == "LSTM" and "mlp_head.4.weight" in run.got["parameters"],
            "After the LSTM the head has two linear layers with a ReLU between them, and not three.",
        ),
        Hint(
            lambda run: run.got["parameters"].keys() != run.tree["encoder"].keys(),
            "The parameters do not have peft's names, so that its checkpoints would not load: embedding, lstm_head, "
            "and a torch.nn.Sequential named mlp_head.",
        ),
        Hint(
            lambda run: (
                run.got["parameters"]["embedding.weight"] != list(run.tree["encoder"]["embedding.weight"].shape)
            ),
            "The table holds one row of `hidden` numbers for each of the n_prompt positions.",
        ),
        Hint(
            lambda run: run.got["parameters"] != {n: list(item.shape) for n, item in run.tree["encoder"].items()},
            "A layer has the wrong width: `width` is the inner one, 2 x width after an LSTM that reads in both "
            "directions, and the last layer leads back to `hidden`.",
        ),
        Hint(
            lambda run: run.got["prompt"].dim() == 3,
            "The prompt has no batch axis: return (n_prompt, hidden).",
        ),
        Hint(
            lambda run: close(run.got["prompt"], run.tree["encoder"]["embedding.weight"]),
            "The table itself came back: the network was built, but never used.",
        ),
        Hint(made_by(mlp(between=lambda x: x), "MLP"), BETWEEN),
        Hint(made_by(mlp(between=torch.tanh), "MLP"), BETWEEN),
        Hint(made_by(mlp(between=torch.nn.functional.gelu), "MLP"), BETWEEN),
        Hint(made_by(mlp(after=torch.relu), "MLP"), BETWEEN),
        Hint(
            looks_like("prompt", lambda run: run.expected["prompt"] + table(run.case, run.tree["encoder"]), close),
            "The table was added to what the network makes of it. The prompt is the network's output alone.",
        ),
        Hint(
            made_by(alone, "LSTM"),
            "The LSTM took every position for a sequence of its own, so none knows of the others: set batch_first=True "
            "or give it (n_prompt, hidden) without a batch axis.",
        ),
        Hint(
            lambda run: run.case.kind == "LSTM" and not close(run.got["prompt"], run.expected["prompt"]),
            "The LSTM's prompt differs: its output for all positions (not its last state) goes through linear, ReLU, "
            "linear.",
        ),
        Hint(
            lambda run: any("embed" in n or "wte" in n for n in run.got["trained"] if n.startswith("model: ")),
            "The model's own embeddings train too. p-tuning trains the prompt network alone: no parameter of the model "
            "goes to the optimizer.",
        ),
        Hint(
            lambda run: any(name.startswith("model: ") for name in run.got["trained"]),
            "Parameters of the model go to the optimizer. p-tuning trains the prompt network alone.",
        ),
        Hint(
            lambda run: "neither's" in run.got["trained"],
            "trained_parameters returns something that is neither the model's nor the network's: return the parameters "
            "themselves, not copies.",
        ),
        Hint(
            lambda run: len(run.got["trained"]) < len(run.tree["encoder"]),
            "Parameters of the prompt network are missing: its table and its layers all train.",
        ),
        Hint(
            lambda run: not run.got["frozen"],
            "The model still computes gradients for its own weights, which costs the memory that this was to save: "
            "switch requires_grad off for all of them.",
        ),
        Hint(
            lambda run: run.got["losses"] == [] and run.got["live"] is False,
            "Nothing trains: the prompt network was frozen as well.",
        ),
        Hint(
            lambda run: not run.got["live"],
            "A part of the prompt network was frozen as well: its table and its layers all train.",
        ),
        Hint(
            lambda run: close(run.got["prompt"], run.expected["prompt"]),
            "The prompt is right, but not all of the network learns from it: a .detach(), .data or a stored result "
            "stands between. Make the prompt anew from the parameters in each forward.",
        ),
        Hint(
            lambda run: run.case.kind == "MLP",
            "The MLP's prompt differs: the whole table, in order and as it is, goes through linear, ReLU, linear, "
            "ReLU, linear, and nothing is added or dropped.",
        ),
    ),
)
