"""Lab 01: what a token keeps against the length of its text, and a deep model's memory from two shallow ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure

MB = 10**6
GB = 10**9


def kept_per_token(
    activation_bytes: Callable[[object, int, int, str, int], int],
    config: object,
    exponents: Sequence[int] = range(8, 15),
) -> Figure:
    """Activation bytes a token keeps in bf16, fused and eager, for texts of 2^k tokens, by the student's function.

    A ring marks the length at which the scores of eager attention weigh as much as all the rest.
    """
    lengths = [2**k for k in exponents]
    figure, axes = new_figure(7.6, 3.8)
    for attention, label, color in (("eager", "eager", OTHER), ("sdpa", "fused", YOURS)):
        values = [activation_bytes(config, 1, length, attention, 2) / length / MB for length in lengths]
        axes.plot(lengths, values, color=color, marker="o", markersize=4, linewidth=2)
        axes.annotate(label, (lengths[-1], values[-1]), (7, 0), textcoords="offset points", color=color, va="center")
    short, long = (activation_bytes(config, 1, n, "eager", 2) / n for n in (64, 128))
    per_length = (long - short) / 64
    without_scores = short - 64 * per_length
    if per_length > 0:
        equal = without_scores / per_length
        axes.plot(equal, 2 * without_scores / MB, "o", color=OTHER, markersize=9, markerfacecolor="white")
        axes.annotate(
            f"scores = all the rest\nat {equal:,.0f} tokens",
            (equal, 2 * without_scores / MB),
            (-8, 8),
            textcoords="offset points",
            color=OTHER,
            ha="right",
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("length of the text s, tokens")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlim(None, 1.8 * lengths[-1])
    axes.set_ylabel("kept for each token, MB")
    return figure


def depth_line(
    extrapolate: Callable[[Mapping[int, int], int], float], shallow: Mapping[int, int], deep: Mapping[int, int]
) -> Figure:
    """The student's line through two shallow measurements, and measurements of deep models that it did not see.

    shallow, deep: number of layers -> measured bytes. Dashed: the line through the origin and the first measurement.
    """
    first, deepest = next(iter(shallow)), max(deep)
    depths = range(deepest + 1)
    figure, axes = new_figure(7.6, 3.6)
    axes.plot(depths, [extrapolate(shallow, n) / GB for n in depths], color=YOURS, linewidth=2, label="your line")
    origin = [n * shallow[first] / first / GB for n in depths]
    axes.plot(depths, origin, color=TRUTH, linewidth=1.2, linestyle="--", label="through the origin")
    axes.plot(list(shallow), [n / GB for n in shallow.values()], "o", color=YOURS, label="measured, used")
    axes.plot(list(deep), [n / GB for n in deep.values()], "D", color=OTHER, markersize=7, label="measured, not used")
    axes.set_xlim(0, deepest * 1.04)
    # The line through the origin would leave the rest too small to see.
    axes.set_ylim(0, 2 * max(deep.values()) / GB)
    axes.set_xlabel("number of layers")
    axes.set_ylabel("peak of a step, GB")
    axes.legend(frameon=False, loc="upper right")
    return figure
