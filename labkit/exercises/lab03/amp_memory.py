"""Lab 03: how many bytes a stack of linear layers holds in float32 and under autocast."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Tree

SETTINGS = {
    "inference, float32": (False, False),
    "inference, autocast": (False, True),
    "training, float32": (True, False),
    "training, autocast": (True, True),
}
"""What is asked of every stack: (training, autocast)."""


@dataclass(frozen=True)
class Stack(Case):
    """Linear layers without bias from width to width, with a GELU between any two of them, on n_rows inputs."""

    widths: tuple[int, ...]
    n_rows: int


def drive_memory(ans, case: Stack, tree: dict, stage) -> dict[str, Tree]:
    """What the two functions return, by their names; the bytes for each of SETTINGS."""

    def number(value: object) -> object:
        return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value

    return {
        "bytes_after_forward": {
            name: number(ans.bytes_after_forward(case.widths, case.n_rows, training=training, autocast=autocast))
            for name, (training, autocast) in SETTINGS.items()
        },
        "break_even_rows": number(ans.break_even_rows(case.widths)),
    }


AMP_MEMORY = Exercise(
    id="03-amp-memory",
    title="When mixed precision saves memory",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("bytes_after_forward"), Answer("break_even_rows")),
    public=(
        Stack((192, 1024, 768, 320), 1),
        Stack((256, 1024, 1024, 256), 512),
        Stack((800, 200, 420), 700),
        Stack((64, 512, 96, 512, 32), 200),
    ),
    inputs=lambda case, gen: {},
    drive=drive_memory,
    forbids=("labkit.track_memory", "labkit.meters.track_memory", "labkit.meters.memory.track_memory"),
)
