"""Lab 10: which of a program's compiled forms of a kernel a GPU uses."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import Call, drive_calls
from labkit.spec import Answer, Exercise

RELEASE = ("sm_80", "sm_86", "sm_90", "compute_90")

IMAGE = Exercise(
    id="10-image",
    title="What a GPU makes of a compiled kernel",
    points=0.2,
    optional=True,
    minutes=10,
    difficulty=1,
    answers=(Answer("image_for"),),
    public=(
        # forms that a program carries, compute capability of the chip (major, minor)
        Call("image_for", (RELEASE, (9, 0))),
        Call("image_for", (RELEASE, (8, 0))),
        Call("image_for", (RELEASE, (8, 9))),
        Call("image_for", (RELEASE, (12, 0))),
        Call("image_for", (RELEASE[:3], (12, 0))),
        Call("image_for", (("compute_80", "compute_90", "sm_86"), (10, 0))),
        Call("image_for", (("sm_80", "compute_80"), (9, 0))),
        Call("image_for", (("sm_86", "compute_80"), (8, 0))),
        Call("image_for", (("sm_86", "sm_80", "compute_89"), (8, 9))),
        Call("image_for", (("compute_90", "sm_89", "sm_90"), (8, 6))),
        Call("image_for", (("compute_80", "sm_90a"), (9, 0))),
        Call("image_for", (("sm_90a", "compute_90a"), (10, 0))),
        Call("image_for", (("compute_90a", "compute_80"), (12, 0))),
        Call("image_for", (("sm_100a", "compute_90"), (10, 3))),
        Call("image_for", (("sm_90", "sm_120", "compute_100"), (12, 0))),
        Call("image_for", (("compute_90", "compute_100"), (12, 0))),
    ),
    inputs=lambda case, gen: {},
    drive=drive_calls("image_for"),
)
