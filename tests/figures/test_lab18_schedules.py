"""Lab 18's charts of schedules: bars where the passes are, grey where a rank waits, strips as high as what it keeps."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit import figures
from labkit.figures import pipeline as charts
from labkit.figures.canvas import ink_like
from labkit.figures.pipeline import BAR, BUBBLE, COLOURS, STRIP
from labkit.pipeline import Action, Costs, ScheduleRun, run_schedule
from labkit.spec import STUB_MESSAGE


def gpipe(stage: int, n_stages: int, n_microbatches: int) -> list[tuple[str, int]]:
    return [(kind, i) for kind in "FB" for i in range(n_microbatches)]


def two_stages(m: int) -> ScheduleRun:
    orders = [[Action(kind, stage, i) for kind, i in gpipe(stage, 2, m)] for stage in range(2)]
    return run_schedule(orders, Costs.equal(2))


def boxes(figure: Figure, colour: str) -> list[Rectangle]:
    return [box for box in figure.axes[0].patches if to_hex(box.get_facecolor()) == colour.lower()]


def test_bars_stand_where_the_passes_ran() -> None:
    run = two_stages(3)
    figure = figures.pipeline_chart(run, "mine")
    for kind in "FB":
        found = sorted((round(box.get_y()), box.get_x(), box.get_width()) for box in boxes(figure, COLOURS[kind]))
        ran = [(one.rank, one.start, one.end - one.start) for one in run.events if one.action.kind == kind]
        assert found == sorted(ran)
    assert [box.get_width() for box in boxes(figure, BUBBLE)] == [12, 12]
    title = "mine: 12 units of time; bubble 6 of 24: 25.0% of the whole, 33.3% of the ideal"
    assert figure.axes[0].get_title(loc="left") == title
    assert figure.alt == f"{title.removeprefix('mine: ')}. Kept alive at most, stage by stage: 3, 3."
    assert [text.get_text() for text in figure.axes[0].texts if "keeps" in text.get_text()] == ["keeps 3", "keeps 3"]


def test_what_is_said_of_a_strip_can_be_read() -> None:
    figure = charts.pipeline_sketch()
    inks = {text.get_color() for text in figure.axes[0].texts if "keeps" in text.get_text()}
    assert inks and all(ink == ink_like(ink) for ink in inks)


def bands(figure: Figure) -> int:
    """How many bars have a white line."""
    return sum(line.get_color() == "white" for line in figure.axes[0].lines)


def test_a_strip_is_as_high_as_what_is_kept() -> None:
    run = two_stages(3)
    strip = figures.pipeline_chart(run).axes[0].collections[0]
    (outline,) = strip.get_paths()
    xs, ys = outline.vertices.T
    area = (
        abs(sum(x * after - y * before for x, y, before, after in zip(xs, ys, [*xs[1:], xs[0]], [*ys[1:], ys[0]]))) / 2
    )
    lives = [run.event_of(Action("B", 0, i)).end - run.event_of(Action("F", 0, i)).start for i in range(3)]
    assert area * 3 / STRIP == pytest.approx(sum(lives))
    assert min(ys) >= BAR


def test_numbers_stand_in_all_bars_of_a_kind_or_in_none() -> None:
    def numbers(m: int) -> list[str]:
        texts = [text.get_text() for text in figures.pipeline_chart(two_stages(m)).axes[0].texts]
        return [text for text in texts if text.isdigit()]

    assert sorted(numbers(3)) == sorted(4 * ["0", "1", "2"])
    assert numbers(60) == []


def test_later_chunks_have_a_white_line_and_count_as_parts() -> None:
    orders = [[Action(kind, stage, 0) for kind, stage in (("F", 0), ("F", 1), ("B", 1), ("B", 0))]]
    figure = figures.pipeline_chart(run_schedule(orders, Costs.equal(2)), names="rank", of_whole=2)
    assert len(boxes(figure, COLOURS["F"])) == len(boxes(figure, COLOURS["B"])) == bands(figure) == 2
    assert "rank by rank: 1." in figure.alt


def test_the_bars_of_memory_are_the_peaks() -> None:
    figure = figures.pipeline_memory({"a": two_stages(3), "b": two_stages(5)})
    assert [bar.get_height() for bar in figure.axes[0].patches] == [3, 3, 5, 5]
    assert "a 3, 3 in 12 units of time; b 5, 5 in 18 units of time" in figure.alt
    with pytest.raises(ValueError, match="give at least one schedule"):
        figures.pipeline_memory({})


def test_the_sketch_is_of_two_stages_and_three_micro_batches() -> None:
    assert "12 units of time" in figures.pipeline_sketch().alt
    journey = figures.pipeline_sketch(4, 1)
    assert "12 units of time" in journey.alt and "stage by stage: 1, 1, 1, 1." in journey.alt
    looped = figures.pipeline_sketch(2, 2, n_chunks=2)
    assert len(boxes(looped, COLOURS["F"])) == bands(looped) == 8


def test_players_draw_the_student_s_order(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(charts, "with_sliders", lambda draw, sliders: drawn.append((draw, sliders)))
    figures.pipeline_player(gpipe)
    draw, sliders = drawn.pop()
    assert "39 units of time" in draw(n_stages=4, n_microbatches=10).alt
    assert {name: start for name, (_, _, start) in sliders.items()} == {"n_microbatches": 8, "n_stages": 4}

    def looped(rank: int, n_ranks: int, n_chunks: int, n_microbatches: int) -> list[tuple[str, int, int]]:
        forward = [("F", chunk, i) for chunk in range(n_chunks) for i in range(n_microbatches)]
        return forward + [("B", n_chunks - 1 - chunk, i) for _, chunk, i in forward]

    figures.interleaved_player(looped)
    draw, _ = drawn.pop()
    figure = draw(n_chunks=2, n_ranks=2)
    assert figure.axes[0].get_title(loc="left").startswith("looped, 2 chunks: ") and "rank by rank: 8, 8." in figure.alt


def test_a_stub_gives_a_note() -> None:
    def gpipe(stage: int, n_stages: int, n_microbatches: int) -> None:
        raise NotImplementedError(STUB_MESSAGE)

    note = figures.pipeline_player(gpipe)
    assert isinstance(note, Figure) and "is still blank" in note.axes[0].texts[0].get_text().replace("\n", " ")
