"""Lab 17: a block's boxes to colour: a button for each tensor and each gradient, whose click gives it the next word.

Nothing is judged here: `tensor_words` shows later which of the words are right.
"""

from __future__ import annotations

import importlib.util

from labkit.figures.tensor_words import white_boxes
from labkit.material.lab17_words import STAGES, Colouring

ROWS = {"forward": "tensor", "backward": "gradient"}


def colour_words(given: Colouring) -> object:
    """The boxes and their buttons, which write into `given`. White boxes alone without ipywidgets."""
    if importlib.util.find_spec("ipywidgets") is None:
        return white_boxes(given)
    import ipywidgets as widgets

    chart = widgets.HTML()
    chart.layout.max_width = "100%"

    def show() -> None:
        chart.value = white_boxes(given).element()

    def button(way: str, stage: str) -> widgets.Button:
        made = widgets.Button(
            description=stage,
            tooltip=f"the next word for {stage}" if way == "forward" else f"the next word for the gradient of {stage}",
            layout=widgets.Layout(width="6.2em"),
        )

        def click(_: object) -> None:
            given.give_next(way, stage)
            show()

        made.on_click(click)
        return made

    rows = [
        widgets.HBox(
            [
                widgets.Label(name, layout=widgets.Layout(width="4.5em")),
                *(button(way, stage) for stage in STAGES),
            ],
            layout=widgets.Layout(flex_flow="row wrap"),
        )
        for way, name in ROWS.items()
    ]
    show()
    return widgets.VBox([*rows, chart])
