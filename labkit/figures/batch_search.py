"""The figure of lab 04's search: what a size should need by a sum, what training needs, what fits under the cap."""

from __future__ import annotations

from matplotlib.figure import Figure

from labkit.exercises.lab04.find_batch import Capped
from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.material.lab04 import needs_of, peaks_of

MB = 1e6
MARGIN = 3
"""Sizes that are drawn on either side of the predicted one."""


def predicted_and_found(case: Capped, predicted: int, found: int) -> Figure:
    """Bytes against the texts in a micro-batch: one batch a step as lab 01 adds it up, and training that accumulates.

    predicted, found: the largest size by lab 01's sum, and the student's.
    """
    needs = needs_of(case)
    fixed, each = needs["weights"] + needs["optimizer"], needs["activations_per_sequence"] + needs["loss_per_sequence"]
    sizes = range(max(predicted - MARGIN, 1), predicted + MARGIN)
    figure, axes = new_figure(8.0, 3.4)
    axes.plot(sizes, [(fixed + size * each) / MB for size in sizes], color=OTHER, marker="o", label="lab 01's sum")
    peaks = [max(peaks_of(case, size).values()) / MB for size in sizes]
    axes.plot(sizes, peaks, color=YOURS, marker="o", label="measured, with two micro-batches a step")
    axes.axhline(case.cap_bytes / MB, color=TRUTH, linestyle="--", linewidth=1)
    limit = f"limit {case.cap_bytes / MB:.1f} MB"
    axes.text(sizes[0], case.cap_bytes / MB, limit, va="bottom", color=TRUTH, fontsize=9)
    axes.axvline(predicted, color=OTHER, linewidth=0.8)
    axes.axvline(found, color=YOURS, linewidth=0.8)
    axes.set_title(f"predicted {predicted}, found {found}", loc="left", fontsize=10)
    axes.set_xlabel("texts in a micro-batch")
    axes.set_ylabel("peak memory, MB")
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    return figure
