"""A schedule to play: a button for each stage's next pass, and the chart that grows. A chart alone without ipywidgets.

What a click means is `labkit.pipeline.ScheduleGame`'s; here it is shown.
"""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Sequence
from html import escape

from labkit.figures.canvas import LabFigure
from labkit.figures.pipeline import pipeline_chart
from labkit.pipeline import ScheduleGame

REFUSED, PLAIN = "var(--jp-error-color1,#c62828)", "var(--jp-ui-font-color1,#222)"
NAMES = {"F": "forward", "B": "backward"}
ROOM_FOR = 1.25
"""The time axis is so many times as long as the shortest schedule, until a longer one needs more."""


def schedule_strip(
    moves: Sequence[tuple[str, int]], n_stages: int = 3, n_microbatches: int = 4, title: str = ""
) -> LabFigure:
    """The chart after these moves, ("F", stage) or ("B", stage). A move that is refused is named in the title."""
    game = ScheduleGame(n_stages, n_microbatches)
    refused = [reason for kind, stage in moves if (reason := game.play(kind, stage))]
    return _chart(game, " ".join([title, *refused]).strip() or game.score)


def schedule_game(n_stages: int = 3, n_microbatches: int = 4, room: int | None = None) -> object:
    """The game, with nothing played yet. room: how many micro-batches a stage may hold at once."""
    game = ScheduleGame(n_stages, n_microbatches, room)
    if importlib.util.find_spec("ipywidgets") is None:
        return _chart(game, "to be played where ipywidgets is installed")
    import ipywidgets as widgets

    chart, status = widgets.HTML(), widgets.HTML()
    chart.layout.max_width = "100%"

    def show(refusal: str = "") -> None:
        chart.value = _chart(game, "").element()
        colour, text = (REFUSED, refusal) if refusal else (PLAIN, game.score)
        status.value = f'<span class="schedule-said" role="status" style="color:{colour}">{escape(text)}</span>'

    def button(text: str, width: str, clicked) -> widgets.Button:
        made = widgets.Button(description=text, layout=widgets.Layout(width=width))
        made.on_click(lambda _: show(clicked() or ""))
        return made

    rows = []
    for stage in range(n_stages):
        passes = [
            button(f"{NAMES[kind]} {stage}", "7.5em", lambda kind=kind, stage=stage: game.play(kind, stage))
            for kind in NAMES
        ]
        rows.append(widgets.HBox([widgets.Label(f"stage {stage}", layout=widgets.Layout(width="4em")), *passes]))
    rows.append(widgets.HBox([button("undo", "7.5em", game.undo), button("start again", "7.5em", game.clear)]))
    show()
    return widgets.VBox([*rows, status, chart])


def _chart(game: ScheduleGame, title: str) -> LabFigure:
    until = max(game.run.makespan, ROOM_FOR * game.least)
    figure = pipeline_chart(game.run, until=until)
    (axes, *_) = figure.axes
    axes.set_title(textwrap.fill(title, 112), loc="left", fontsize=10)
    figure.alt = f"{title} {game.score}".strip()
    return figure
