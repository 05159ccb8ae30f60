"""Lab 10: how many threads are on an SM at once, in how many waves a grid runs, and which bytes are on their way."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import NOT_ANSWERED, Call, number
from labkit.exercises.lab10.chips import CHIPS
from labkit.spec import Answer, Exercise

OCCUPANCY_FUNCTIONS = ("resident", "waves", "in_flight", "fastest")

COPIES = (
    (256, 32, 0, 1, 4),
    (1024, 40, 0, 2, 4),
    (32, 64, 112 * 1024, 8, 16),
    (128, 64, 0, 1, 16),
    (64, 80, 0, 4, 16),
    (128, 128, 0, 2, 16),
)
"""Ways to write one copying kernel: threads of a block, registers, shared bytes, loads in flight, bytes of each. On an
H100, full of threads, large blocks, wide loads by few, and three that keep the memory busy."""


def arguments_of(case: Call) -> tuple:
    """The arguments of the call: a chip stands in a case by its name."""
    return tuple(CHIPS.get(one, one) if isinstance(one, str) else one for one in case.arguments)


def _drive(ans, case: Call, tree: dict, stage) -> dict[str, object]:
    given = tuple(list(one) if isinstance(one, tuple) else one for one in arguments_of(case))
    try:
        out = getattr(ans, case.function)(*given)
    except NotImplementedError:
        if case.function == OCCUPANCY_FUNCTIONS[0]:
            raise
        return {"out": NOT_ANSWERED}
    return {"out": [number(x) for x in out] if isinstance(out, tuple | list) else number(out)}


OCCUPANCY = Exercise(
    id="10-occupancy",
    title="Occupancy, waves and bytes in flight",
    points=3,
    minutes=25,
    difficulty=2,
    answers=tuple(Answer(name) for name in OCCUPANCY_FUNCTIONS),
    public=(
        # threads of a block, registers of a thread, bytes of shared memory of a block, chip
        Call("resident", (256, 32, 0, "H100")),
        Call("resident", (512, 64, 0, "H100")),
        Call("resident", (512, 65, 0, "H100")),
        Call("resident", (64, 24, 0, "RTX_3090")),
        Call("resident", (256, 24, 0, "A100")),
        Call("resident", (128, 99, 0, "RTX_4090")),
        Call("resident", (32, 88, 0, "A100")),
        Call("resident", (256, 48, 32 * 1024, "A100")),
        Call("resident", (128, 40, 20 * 1024, "RTX_4090")),
        Call("resident", (100, 96, 0, "H100")),
        Call("resident", (64, 32, 12680, "H100")),
        Call("resident", (100, 24, 0, "H100")),
        Call("resident", (64, 32, 13576, "H100")),
        Call("resident", (64, 32, 13668, "H100")),
        Call("resident", (128, 32, 100 * 1024, "RTX_4090")),
        Call("resident", (1024, 96, 0, "A100")),
        # blocks of the grid, blocks on an SM at once, chip
        Call("waves", (528, 4, "H100")),
        Call("waves", (529, 4, "H100")),
        Call("waves", (3000, 2, "A100")),
        # threads on an SM, loads that each has in flight, bytes of a load, chip
        Call("in_flight", (2048, 1, 4, "H100")),
        Call("in_flight", (512, 2, 16, "H100")),
        Call("in_flight", (768, 1, 8, "RTX_4090")),
        # kernels, chip
        Call("fastest", (COPIES, "H100")),
        Call("fastest", (COPIES[:3], "B200")),
        Call("fastest", (((100, 96, 0, 2, 4), (64, 64, 0, 1, 4)), "H100")),
        Call("fastest", (((256, 32, 0, 4, 2), (256, 32, 0, 1, 4)), "B200")),
    ),
    inputs=lambda case, gen: {},
    drive=_drive,
)
