"""Lab 04: tiles, waves and multiples: what the shape of a product costs beside its FLOPs."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import Call, drive_calls
from labkit.spec import Answer, Exercise

ARGUMENTS = {
    "tiles_and_waves": ("rows", "cols", "tile_rows", "tile_cols", "n_sms"),
    "padded": ("n", "itemsize", "multiple_bytes"),
}
"""The functions that are asked for, each with its arguments in order."""
A100_SMS, V100_SMS, H100_SMS = 108, 80, 132

ALIGNMENT = Exercise(
    id="04-alignment",
    title="Tiles, waves and multiples",
    points=0.8,
    optional=True,
    minutes=15,
    difficulty=2,
    answers=tuple(Answer(name) for name in ARGUMENTS),
    public=(
        Call("tiles_and_waves", (2304, 1536, 256, 128, A100_SMS)),
        Call("tiles_and_waves", (2304, 1537, 256, 128, A100_SMS)),
        Call("tiles_and_waves", (2304, 1537, 128, 256, A100_SMS)),
        Call("tiles_and_waves", (2305, 1408, 256, 128, A100_SMS)),  # 110 tiles with room for the outputs of 99
        Call("tiles_and_waves", (1000, 5150, 128, 64, V100_SMS)),
        Call("tiles_and_waves", (5, 7, 128, 128, H100_SMS)),
        Call("padded", (50257, 2, 128)),
        Call("padded", (50304, 2, 128)),
        Call("padded", (1027, 4, 16)),
        Call("padded", (33, 1, 128)),
    ),
    inputs=lambda case, gen: {},
    drive=drive_calls("tiles_and_waves"),
)
