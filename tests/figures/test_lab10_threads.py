"""Lab 10's figures of threads: whose element is whose, and what a student's function calls a trace."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from grading.build.stub import CODE_STUB
from labkit import figures
from labkit.exercises.lab10.traces import PROGRAMS, Trace
from labkit.figures.thread_traces import _FACES

pytestmark = pytest.mark.lab("10")


def test_the_grid_counts_the_threads_that_have_no_element() -> None:
    (axes,) = figures.thread_grid(11, 40, (16, 4)).axes
    assert axes.get_xlabel().startswith("9 blocks of (16, 4): 576 threads, 440 elements, 136 threads without one")
    shades = axes.images[0].get_array()
    assert shades.shape == (12, 48) and (shades == 2).sum() == 136
    assert (shades == 3).sum() == 32, "one warp"
    assert (shades[4:6, 16:32] == 3).all()
    assert (len(axes.xaxis.get_minorticklocs()), len(axes.yaxis.get_minorticklocs())) == (49, 13), "a line around each"


def test_a_trace_has_a_box_for_each_access_and_the_students_word_in_its_title() -> None:
    def classify(trace: Trace) -> str:
        return "deadlock" if len(trace[0]) == 2 else "right"

    traces = {"with barrier": PROGRAMS["with_barrier"](2, 3), "two launches": PROGRAMS["in_two_launches"](3, 2)}
    figure = figures.thread_traces(traces, classify)
    first, second, rest = figure.axes
    assert first.get_title(loc="left") == "with barrier: deadlock" and second.get_title(loc="left").endswith(": right")
    faces = [to_hex(box.get_facecolor()) for box in first.patches]
    assert [faces.count(to_hex(_FACES[kind])) for kind in ("write", "barrier", "read")] == [6, 6, 6]
    texts = [text.get_text() for text in first.texts]
    assert {"write s0", "read s2", "1.2"} <= {*texts} and not rest.patches
    assert len(second.lines) == 1, "a line between the launches"
    assert "with barrier" in figure.alt


def test_what_a_thread_does_fits_into_its_box() -> None:
    """In the widest programs, too: those of a tile in a loop."""
    figure = figures.thread_traces({name: program(2, 2) for name, program in PROGRAMS.items()})
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    n_words = 0
    for axes in figure.axes:
        boxes = [box.get_window_extent(renderer) for box in axes.patches]
        for words in (text.get_window_extent(renderer) for text in axes.texts if " " in text.get_text()):
            n_words += 1
            assert any(box.x0 <= words.x0 and words.x1 <= box.x1 and box.y0 <= words.y0 for box in boxes)
    assert n_words > 100


def test_a_blank_function_leaves_a_note() -> None:
    namespace: dict = {}
    exec(f"def classify(trace):\n    {CODE_STUB}\n", namespace)
    figure = figures.thread_traces({"a": PROGRAMS["with_barrier"](2, 2)}, namespace["classify"])
    assert "classify is still blank" in figure.axes[0].texts[0].get_text().replace("\n", " ")
