"""Sliders over a figure: moved, it is drawn again; without ipywidgets it is drawn once."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure


def with_sliders(draw: Callable[..., Figure], sliders: Mapping[str, tuple[str, Sequence[Any], Any]]) -> object:
    """draw under sliders: by argument the label, the values (or pairs of a text and a value) and where it starts."""
    if importlib.util.find_spec("ipywidgets") is None:
        return draw(**{name: start for name, (_, _, start) in sliders.items()})
    import ipywidgets
    from IPython.display import display

    made = {
        name: ipywidgets.SelectionSlider(
            options=[value if isinstance(value, tuple) else (f"{value:g}", value) for value in values],
            value=start,
            description=label,
            continuous_update=False,
            style={"description_width": "initial"},  # or longer labels are cut
        )
        for name, (label, values, start) in sliders.items()
    }
    shown = ipywidgets.interactive_output(lambda **values: display(draw(**values)), made)
    return ipywidgets.VBox([ipywidgets.HBox(list(made.values())), shown])
