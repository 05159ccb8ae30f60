"""Lab 03: the bytes that a stack of layers really holds, counted while it runs on fake tensors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import nn

from labkit.exercises.lab03.amp_memory import SETTINGS, Stack
from labkit.meters.memory import fake_tensors, track_memory
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance


def stack(widths: tuple[int, ...]) -> nn.Sequential:
    """The model of a case."""
    pairs = itertools.pairwise(widths)
    layers = [part for n_in, n_out in pairs for part in (nn.Linear(n_in, n_out, bias=False), nn.GELU())]
    return nn.Sequential(*layers[:-1])


@functools.lru_cache(1024)
def measured(widths: tuple[int, ...], n_rows: int, training: bool, autocast: bool) -> int:
    """Bytes alive after the forward pass, inside the autocast block, the result still held.

    In training AdamW has its states, and the gradients of the step before are there, as while they accumulate.
    """
    with fake_tensors():
        model, optimizer, x = stack(widths), None, torch.empty(n_rows, widths[0])
        if training:
            optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
            optimizer.step()
        precision = torch.autocast("cpu", dtype=torch.bfloat16) if autocast else nullcontext()
        with track_memory(model, optimizer, x, sites=False, device="cpu") as profile, precision:
            with torch.set_grad_enabled(training):
                held = model(x)
            live_bytes = profile.live_bytes
        del held
    return live_bytes


def break_even(case: Stack) -> int:
    """The first number of rows with which autocast holds less in training; every row adds the same bytes."""

    def more_under_autocast(n_rows: int) -> int:
        return measured(case.widths, n_rows, True, True) - measured(case.widths, n_rows, True, False)

    here, next_to_it = more_under_autocast(case.n_rows), more_under_autocast(case.n_rows + 1)
    saved_by_a_row = here - next_to_it
    copies = here + saved_by_a_row * case.n_rows
    return copies // saved_by_a_row + 1


def true_memory(run: CaseRun[Stack]) -> dict[str, object]:
    found = {name: measured(run.case.widths, run.case.n_rows, *setting) for name, setting in SETTINGS.items()}
    return {"bytes_after_forward": found, "break_even_rows": break_even(run.case)}


def slack_bytes(case: Stack) -> int:
    """AdamW's counters of steps, 4 bytes for each weight matrix, which may be left out."""
    return 4 * (len(case.widths) - 1)


class Sizes:
    """How far off the four figures are, beside what they consist of."""

    def __init__(self, run: CaseRun[Stack]) -> None:
        right = run.expected
        self.off = {
            name: run.got["bytes_after_forward"][name] - right["bytes_after_forward"][name] for name in SETTINGS
        }
        self.slack = slack_bytes(run.case)
        self.n_parameters = sum(a * b for a, b in itertools.pairwise(run.case.widths))
        self.n_in_first = run.case.widths[0] * run.case.widths[1]
        self.n_biases, self.n_rows = sum(run.case.widths[1:]), run.case.n_rows
        self.n_inputs, self.n_outputs = run.case.n_rows * run.case.widths[0], run.case.n_rows * run.case.widths[-1]
        self.n_first_hidden = run.case.n_rows * run.case.widths[1]
        self.n_hidden = run.case.n_rows * sum(run.case.widths[1:-1])

    def right(self, name: str) -> bool:
        return abs(self.off[name]) <= self.slack

    def is_off(self, name: str, *n_bytes: float) -> bool:
        """Whether this figure is wrong by one of these amounts."""
        return not self.right(name) and any(abs(self.off[name] - one) <= self.slack for one in n_bytes)


def sizes(when: Callable[[Sizes], object]) -> Callable[[CaseRun[Stack]], object]:
    """A diagnosis of 03-amp-memory."""
    return lambda run: when(run.memo(Sizes))


def in_units(run: CaseRun[Stack]) -> str:
    """By how much the first wrong amount is off, beside what it may consist of."""
    s = run.memo(Sizes)
    name = next(name for name in SETTINGS if not s.right(name))
    off = s.off[name]
    return (
        f"{abs(off):,.0f} bytes too {'many' if off > 0 else 'few'} in {name}. There are {s.n_parameters:,} parameters "
        f"and {s.n_inputs:,} elements of the input, {s.n_hidden:,} of the hidden layers, {s.n_outputs:,} of the output."
    )


PLAIN, CAST = "inference, float32", "inference, autocast"
TRAIN, TRAIN_CAST = "training, float32", "training, autocast"

INPUT_STAYS = "The float32 input is still alive beside its 16-bit copy."

AMP_MEMORY = Oracle(
    id="03-amp-memory",
    expect=true_memory,
    fact=in_units,
    tolerance=lambda run: {"bytes_after_forward": Tolerance(atol=slack_bytes(run.case))},
    call=lambda run: (
        f"bytes_after_forward({run.case.widths}, {run.case.n_rows}, training=..., autocast=...), "
        f"break_even_rows({run.case.widths})"
    ),
    places={f"bytes_after_forward.{name}": f"bytes_after_forward in {name}" for name in SETTINGS},
    diagnose=(
        Hint(
            lambda run: any(not float(value).is_integer() for value in run.got["bytes_after_forward"].values()),
            "A number of bytes is a whole number: is there a division somewhere?",
        ),
        Hint(
            sizes(lambda s: s.is_off(PLAIN, -4 * s.n_parameters)),
            "The weights themselves are missing: 4 bytes each.",
        ),
        Hint(
            sizes(lambda s: s.is_off(PLAIN, -3 * (s.n_parameters + s.n_inputs + s.n_outputs))),
            "These are elements: a float32 number has 4 bytes.",
        ),
        Hint(
            sizes(lambda s: s.is_off(PLAIN, 4 * s.n_parameters, 8 * s.n_parameters, 12 * s.n_parameters)),
            "Inference has neither gradients nor moments: only 4 bytes for each parameter in float32.",
        ),
        Hint(
            sizes(lambda s: s.is_off(PLAIN, 4 * s.n_biases)),
            "These layers have no bias: the parameters are the weights alone.",
        ),
        Hint(
            sizes(
                lambda s: (
                    s.is_off(PLAIN, 4 * s.n_hidden, 8 * s.n_hidden) or s.is_off(CAST, 2 * s.n_hidden, 4 * s.n_hidden)
                )
            ),
            "Without autograd nothing is kept for a backward pass: after the forward pass only the input and the "
            "output are alive beside the weights.",
        ),
        Hint(
            sizes(
                lambda s: (
                    s.is_off(PLAIN, -4 * s.n_inputs, -4 * s.n_outputs, -4 * (s.n_inputs + s.n_outputs))
                    or s.is_off(TRAIN, -4 * s.n_inputs, -4 * s.n_outputs)
                )
            ),
            "The input (float32, in either precision) and the output are alive too.",
        ),
        Hint(
            sizes(lambda s: s.is_off(PLAIN, -4 * (s.n_inputs + s.n_outputs) * (1 - 1 / s.n_rows))),
            "The input and the output have n_rows rows, not one.",
        ),
        Hint(
            sizes(lambda s: s.is_off(CAST, 2 * s.n_parameters) or s.is_off(TRAIN_CAST, 2 * s.n_parameters)),
            "The copies are counted twice: there is one of each weight, of 2 bytes for each parameter, and in training "
            "autograd keeps the same one.",
        ),
        Hint(
            sizes(lambda s: s.is_off(CAST, -2 * s.n_parameters) and (s.is_off(TRAIN_CAST, -2 * s.n_parameters))),
            "The cast copies are missing: autocast makes a 16-bit copy of every weight and keeps it until its block "
            "ends, 2 bytes for each parameter.",
        ),
        Hint(
            sizes(lambda s: s.is_off(CAST, -2 * s.n_parameters)),
            "The cast copies are missing in inference: they are kept until the autocast block ends, with autograd or "
            "without.",
        ),
        Hint(
            sizes(lambda s: s.is_off(CAST, -4 * s.n_parameters)),
            "The float32 weights are missing: autocast leaves them where they are and adds 16-bit copies, 4 + 2 bytes "
            "for each parameter.",
        ),
        Hint(
            sizes(lambda s: s.is_off(CAST, 2 * s.n_inputs)),
            "Without autograd nothing keeps the 16-bit copy of the input: in inference only the float32 input is "
            "alive.",
        ),
        Hint(
            sizes(lambda s: s.is_off(CAST, -2 * s.n_inputs)),
            INPUT_STAYS,
        ),
        Hint(
            sizes(lambda s: s.is_off(CAST, 2 * s.n_outputs)),
            "The output of a linear layer is 16 bits wide under autocast.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, -4 * s.n_parameters, -8 * s.n_parameters, -12 * s.n_parameters)),
            "Something of 4 bytes for each parameter is missing in training: there are the weight, its gradient, and "
            "AdamW's two moments.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, -4 * s.n_hidden) or s.is_off(TRAIN_CAST, -2 * s.n_hidden)),
            "Half of the hidden activations are missing: GELU keeps its input, and the next layer keeps GELU's result.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, 4 * s.n_parameters, 8 * s.n_parameters)),
            "Something of 4 bytes for each parameter is counted twice in training: there are the weight, its gradient, "
            "and AdamW's two moments, 16 in all.",
        ),
        Hint(
            sizes(lambda s: CANNOT_TELL if s.n_rows == 1 else s.is_off(TRAIN, -8 * s.n_hidden * (1 - 1 / s.n_rows))),
            "The hidden activations have n_rows rows, not one.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, 8 * s.n_inputs, 8 * (s.n_inputs + s.n_outputs))),
            "The input's width is counted with the hidden ones: the hidden widths are widths[1:-1].",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, 8 * s.n_outputs)),
            "The last width is counted with the hidden ones: no GELU follows the last layer, so its result is there "
            "once.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, 8 * (s.n_first_hidden - s.n_hidden))),
            "Only the first hidden width is counted: every hidden layer keeps its two tensors.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, 4 * s.n_outputs)),
            "The output is counted twice: no GELU follows the last layer.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN, 4 * s.n_inputs)),
            "The input is counted twice: in float32 the first layer keeps the input itself, which is one tensor.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN_CAST, -2 * s.n_in_first)),
            "Inside the block the copy of the first layer's weight is alive too: autocast holds every copy until the "
            "end, whether autograd needs it or not.",
        ),
        Hint(
            sizes(
                lambda s: s.right(TRAIN) and s.is_off(TRAIN_CAST, *(-each * s.n_parameters for each in (2, 4, 6, 8)))
            ),
            "Gradients, weights and moments stay float32 under autocast; the 2 bytes for each copy come on top: 18 for "
            "each parameter.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN_CAST, 2 * s.n_hidden, 4 * s.n_hidden, 4 * s.n_hidden + 2 * s.n_outputs)),
            "Under autocast the results of linear layers and of GELU are 16 bits wide: 2 bytes for each element.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN_CAST, -2 * s.n_inputs, 2 * s.n_inputs)),
            "The first layer keeps a 16-bit copy of the input for its backward pass, beside the input itself: 2 + 4 "
            "bytes for each element.",
        ),
        Hint(
            sizes(lambda s: s.is_off(TRAIN_CAST, -4 * s.n_inputs)),
            INPUT_STAYS,
        ),
        Hint(
            lambda run: not float(run.got["break_even_rows"]).is_integer(),
            "A number of rows is a whole number: the first one above the point where the two amounts are equal.",
        ),
        Hint(
            lambda run: run.got["break_even_rows"] == break_even(run.case) - 1,
            "One row too few: with this number the two are equal, or autocast still holds more. Fewer begins one row "
            "later.",
        ),
        Hint(
            lambda run: run.got["break_even_rows"] == break_even(run.case) + 1,
            "One row too many: with one row less autocast already leaves fewer bytes alive.",
        ),
        Hint(
            sizes(lambda s: all(s.right(name) for name in SETTINGS)),
            "The four amounts are right, and the number of rows is not: it is where your two amounts for training "
            "meet, 2 bytes a parameter against what every row saves.",
        ),
    ),
)
