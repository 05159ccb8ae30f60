"""Lab 01: a deep model measured through shallow ones."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.exercises.lab01.function_calls import number
from labkit.exercises.lab01.llama import Llama, moments
from labkit.spec import Answer, Exercise


@dataclass(frozen=True)
class Deep(Llama):
    """A model of `num_hidden_layers`, of which two of other depths were measured."""

    measured_layers: tuple[int, int] = (1, 2)
    batch_size: int = 2
    seq_len: int = 32


def shallow_inputs(case: Deep, gen) -> dict[str, list[int]]:
    """layers, peak_bytes: the two measurements of a training step, in the order in which they were made."""
    peaks = [moments(case.shape(depth), case.batch_size, case.seq_len).peak for depth in case.measured_layers]
    return {"layers": list(case.measured_layers), "peak_bytes": peaks}


def drive_extrapolate(ans, case: Deep, tree: dict[str, list[int]], stage) -> dict[str, object]:
    """out: the bytes that are expected. measured: what the answer has left of the two measurements."""
    measured = dict(zip(tree["layers"], tree["peak_bytes"], strict=True))
    return {"out": number(ans.extrapolate(measured, case.num_hidden_layers)), "measured": measured}


EXTRAPOLATE = Exercise(
    id="01-extrapolate",
    title="A deep model from two shallow ones",
    points=2,
    minutes=6,
    difficulty=1,
    answers=(Answer("extrapolate"),),
    public=(
        Deep(32, 64, 5, 4, 2, 400),
        Deep(48, 96, 7, 4, 4, 200, measured_layers=(2, 4), batch_size=1),
        Deep(32, 96, 6, 2, 1, 800, measured_layers=(4, 1)),
    ),
    inputs=shallow_inputs,
    drive=drive_extrapolate,
)
