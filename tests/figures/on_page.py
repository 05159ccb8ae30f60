"""No text of a figure runs out of the page. What the texts say is not read here."""

from __future__ import annotations

from matplotlib.figure import Figure


def assert_every_text_is_on_the_page(figure: Figure) -> None:
    """Texts in the axes, titles, labels and legends; the ticks' labels beside the axes, from left to right."""
    figure.draw_without_rendering()
    page, n_texts = figure.bbox.padded(2), 0
    for legend in filter(None, (*figure.legends, *(axes.get_legend() for axes in figure.axes))):
        box = legend.get_window_extent()
        assert page.containsx(box.x0) and page.containsx(box.x1), "the legend"
        assert page.containsy(box.y0) and page.containsy(box.y1), "the legend"
    for axes in figure.axes:
        # On a logarithmic axis there are ticks beyond the view, which are not drawn.
        ticks = axes.get_yticklabels() if axes.axison and axes.get_yscale() == "linear" else []
        texts = (*axes.texts, axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label)
        for text in (*texts, *ticks):
            if text.get_text() and text.get_visible() and text.get_in_layout():
                n_texts += 1
                box = text.get_window_extent()
                assert page.containsx(box.x0) and page.containsx(box.x1), text.get_text()
                assert text in ticks or (page.containsy(box.y0) and page.containsy(box.y1)), text.get_text()
    assert n_texts, "there is nothing to read"
