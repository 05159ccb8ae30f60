"""Lab 15: the loss curve of a launched training that was killed twice, on that of one that was left alone.

It draws what `labkit.material.lab15.launch_twice` brought back, and launches nothing itself.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure
from labkit.material.lab15 import LaunchedTraining


def killed_run(undisturbed: LaunchedTraining, killed: LaunchedTraining) -> Figure:
    """Loss against step: the undisturbed training as a line, the killed one as dots.

    A dashed line marks each kill that happened; the steps between the checkpoint that it left and the kill are shaded,
    because they were done twice. A launch that left no losses is said to have none.
    """
    figure, axes = new_figure(7.6, 3.8)
    for run, name, style in (
        (undisturbed, "left alone", {"color": TRUTH, "linewidth": 1.6}),
        (killed, "killed twice", {"color": YOURS, "linestyle": "none", "marker": "o", "markersize": 4}),
    ):
        losses = run.found["losses"]
        if losses is None:
            axes.plot([], [], label=f"{name}: no losses ({run.found['error'] or 'no result.pt'})"[:70], **style)
        else:
            axes.plot(range(1, len(losses) + 1), losses.tolist(), label=name, **style)
    case = killed.case
    for number, left in enumerate(killed.found["left"]):
        step = case.killed_at[number]
        if left["step"] is not None:
            n_twice = step - left["step"]
            axes.axvspan(left["step"] + 0.5, step + 0.5, color=SHADE, zorder=0)
            axes.annotate(
                f"{n_twice} steps\ndone twice",
                ((left["step"] + step + 1) / 2, 0.97),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="top",
                fontsize=8,
                color=TRUTH,
            )
        what = f"rank {case.kill_rank} killed" if number == 0 else "rank 0 killed\nas it saves"
        axes.axvline(step + 0.5, color=OTHER, linestyle="--", linewidth=1.2)
        axes.annotate(
            what,
            (step + 0.5, 0.80),
            xycoords=("data", "axes fraction"),
            xytext=(5, 0),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color=OTHER,
        )
    axes.set(xlabel="step of the training", ylabel="loss, mean over ranks", title="One training, three starts")
    axes.set_xlim(0, case.n_steps + 1)
    axes.legend(loc="upper right", fontsize=8)
    return figure
