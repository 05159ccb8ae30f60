"""Lab 20: the two cells of a feature's row, from measured runs, and the cells that usual mistakes come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from labkit.exercises.lab20.flags import Feature
from labkit.spec import CaseRun

YES, NO, DEPENDS = "✅", "❌", "❌✅"
ENOUGH = 1.05
"""Times as many samples a second, or as few bytes."""
SLIDE = {
    "batch size": (YES, YES),
    "gradient accumulation": (NO, YES),
    "gradient checkpointing": (NO, YES),
    "mixed precision": (YES, DEPENDS),
    "torch_empty_cache_steps": (NO, YES),
    "optimizer choice": (YES, YES),
    "data preloading": (YES, NO),
    "torch.compile": (YES, NO),
}
"""As the documentation of transformers has it."""
Run = Mapping[str, float]
Sizes = Sequence[Sequence[Run]]
Cells = dict[str, str]
Mistake = Callable[[CaseRun[Feature]], Cells]


def faster(before: Run, after: Run) -> float:
    """How many times as many samples a second."""
    return after["samples"] / after["seconds"] * before["seconds"] / before["samples"]


def smaller(before: Run, after: Run) -> float:
    return before["peak_bytes"] / after["peak_bytes"]


def by_size(better: Iterable[bool]) -> str:
    """The cell: at all sizes, at none, or it depends."""
    found = set(better)
    return DEPENDS if len(found) > 1 else YES if found == {True} else NO


def cells_of(
    sizes: Sizes,
    speed: Callable[[Run, Run], float] = faster,
    memory: Callable[[Run, Run], float] = smaller,
    enough: float = ENOUGH,
    cell: Callable[[Iterable[bool]], str] = by_size,
) -> Cells:
    return {
        "speed": cell([speed(*pair) >= enough for pair in sizes]),
        "memory": cell([memory(*pair) >= enough for pair in sizes]),
    }


def in_ratios(sizes: Sizes) -> str:
    """By size, as a student would write them."""
    speed, memory = (", ".join(f"{ratio(*pair):.2f}" for pair in sizes) for ratio in (faster, smaller))
    return f"by size, samples a second are {speed} times those before, and the peak before is {memory} times that after"


def of_the_mean(run: CaseRun[Feature]) -> Cells:
    """One ratio, the mean over sizes."""
    sizes = run.tree["sizes"]
    speed, memory = (sum(ratio(*pair) for pair in sizes) / len(sizes) for ratio in (faster, smaller))
    return {"speed": YES if speed >= ENOUGH else NO, "memory": YES if memory >= ENOUGH else NO}


def from_the_slide(run: CaseRun[Feature]) -> Cells:
    return dict(zip(("speed", "memory"), SLIDE[run.case.name], strict=True))


def the_other_way(run: CaseRun[Feature]) -> Cells:
    return dict(zip(("speed", "memory"), reversed(run.expected.values()), strict=True))


def of_a_step(before: Run, after: Run) -> float:
    return before["seconds"] / after["seconds"]


def of_a_sample(before: Run, after: Run) -> float:
    return smaller(before, after) * after["samples"] / before["samples"]


MISTAKES: tuple[tuple[Mistake, str], ...] = (
    (
        from_the_slide,
        "These are the cells of the documentation's table. Here a cell comes from `sizes`, and what was measured there "
        "says something else.",
    ),
    (
        lambda run: cells_of(run.tree["sizes"], speed=of_a_step),
        "The seconds of a step were compared. Where a step has other samples than before, it is samples a second that "
        "count.",
    ),
    (
        lambda run: cells_of(run.tree["sizes"], memory=of_a_sample),
        "The bytes of a sample were compared. It is the peak itself that has to fit into the card.",
    ),
    (
        lambda run: cells_of(run.tree["sizes"][:1]),
        "Only the first size was looked at. What a feature is worth may depend on the size.",
    ),
    (
        lambda run: cells_of(run.tree["sizes"][-1:]),
        "Only the last size was looked at. What a feature is worth may depend on the size.",
    ),
    (
        of_the_mean,
        "The mean over sizes hides what happens at each of them. A feature that helps at some sizes and not at others "
        "is ❌✅.",
    ),
    (
        lambda run: cells_of(run.tree["sizes"], cell=lambda better: YES if any(better) else NO),
        "A feature that helps at one size and not at another one is ❌✅, not ✅.",
    ),
    (
        lambda run: cells_of(run.tree["sizes"], cell=lambda better: YES if all(better) else NO),
        "A feature that helps at one size and not at another one is ❌✅, not ❌.",
    ),
    (
        lambda run: cells_of(run.tree["sizes"], enough=1.0000001),
        "A gain below 5 % was counted. That is less than two runs of the same script may differ by.",
    ),
    (
        lambda run: cells_of(
            run.tree["sizes"],
            speed=lambda before, after: 1 / faster(before, after),
            memory=lambda before, after: 1 / smaller(before, after),
        ),
        "The ratios are upside down: ✅ is for more samples a second, and for fewer bytes.",
    ),
    (the_other_way, "The cell of speed and that of memory have changed places."),
    (
        lambda run: {part: cell.replace(DEPENDS, "✅❌") for part, cell in run.expected.items()},
        "What depends on the size is written ❌✅, in this order.",
    ),
)
