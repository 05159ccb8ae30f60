"""The figures of lab 07 count padding as it is, show leaks in a packed window, and how far a buffer moves a sample."""

from __future__ import annotations

import io

import pytest

from labkit import figures
from labkit.exercises.lab07.slow_loop import Images
from labkit.figures.batches import ALLOWED, LEAK, MISSING, NOT, in_percent, mask_kinds
from labkit.material.lab07 import Batches, batches_of, in_random_batches, in_windows, places_moved, timed
from labkit.simdevice import Span


def test_padding_is_what_the_rows_leave_of_the_width() -> None:
    lengths = [3, 5, 2, 2]
    assert in_random_batches(lengths, 2, 8).padding == 1 - 12 / 32
    assert in_random_batches(lengths, 2).padding == 1 - 12 / (2 * 5 + 2 * 2)
    assert batches_of(lengths, [[2, 3], [0], [1]]).padding == 0
    assert in_windows(lengths, [[0, 1], [2, 3]], 8, 2) == Batches((((3, 5), (2, 2)),), (8,))


def test_the_batch_that_is_shown_is_of_about_the_mean_width() -> None:
    batches = Batches((((1,),), ((90,),), ((40,),)), (1, 90, 40))
    assert batches.picture() == (((40,),), 40)
    figure = figures.padding_pictures({"by length": batches})
    assert figure.axes[0].get_title(loc="left") == "by length: 0 % of all places are padding"


@pytest.mark.parametrize(
    ("share", "text"), [(0.86, "86 %"), (0.066, "6.6 %"), (0.0004, "0.04 %"), (0.001, "0.1 %"), (0.0, "0 %")]
)
def test_shares_have_the_digits_that_tell_something(share: float, text: str) -> None:
    assert in_percent(share) == text


def test_a_mask_shows_what_leaks_and_what_is_missing() -> None:
    right = mask_kinds((2, 1), (0, 2, 3), 4)
    assert right.tolist() == [
        [ALLOWED, NOT, NOT, NOT],
        [ALLOWED, ALLOWED, NOT, NOT],
        [NOT, NOT, ALLOWED, NOT],
        [NOT, NOT, NOT, NOT],
    ]
    assert (mask_kinds((2, 1), (0, 4), 4) == LEAK).sum() == 2 + 4
    assert (mask_kinds((2, 1), (0, 1, 2, 3), 4) == MISSING).sum() == 1
    assert "0 leaks" in figures.packed_mask((2, 1), (0, 2, 3), 4).axes[0].get_title(loc="left")


def test_the_title_of_a_mask_tells_leaks_between_documents_from_padding() -> None:
    title = figures.packed_mask((7, 9, 5), (0, 24), 24).axes[0].get_title(loc="left")
    assert "143 leaks between documents, 69 of padding" in title


@pytest.mark.parametrize("cu_seqlens", [(0, 7, 16, 21), (0, 24)])
def test_the_label_of_a_mask_is_not_cut_off(cu_seqlens: tuple[int, ...]) -> None:
    figure = figures.packed_mask((7, 9, 5), cu_seqlens, 24)
    figure.savefig(io.BytesIO(), format="png")
    assert figure.axes[0].yaxis.label.get_window_extent().x0 >= 0


def test_a_buffer_moves_samples_as_far_as_it_says() -> None:
    assert places_moved([0, 1, 2]) == 0 and places_moved([2, 1, 0]) == 4 / 3
    figure = figures.shuffle_places(lambda n, size: range(n - 1, -1, -1), 3, 2)
    assert "moved by 1 places" in figure.axes[0].get_title(loc="left")


def test_the_timeline_has_a_row_for_each_worker_above_the_hosts() -> None:
    def train(DataLoader, dataset, model, device, n_epochs, batch_size, n_cores):
        model = model.to(device)
        for images in DataLoader(dataset, batch_size, num_workers=2):
            model(images.to(device) / 255)

    spans = timed(train, Images(n=32, n_epochs=1)).spans
    chart = figures.gantt({"yours": spans}).axes[0]
    rows = [label.get_text() for label in chart.get_yticklabels()]
    assert rows == ["default stream", "worker 0", "worker 1", "host"]
    assert sum(span.kind == "worker loads" for span in spans) == 4


def test_loading_on_the_host_has_another_colour_than_python() -> None:
    def train(DataLoader, dataset, model, device, n_epochs, batch_size, n_cores):
        model = model.to(device)
        for images in DataLoader(dataset, batch_size):
            model(images.to(device) / 255)

    spans = timed(train, Images(n=32, n_epochs=1)).spans
    kinds = {span.name: span.kind for span in spans}
    assert (kinds["load"], kinds["Python"]) == ("host loads", "host works")
    labels = [text.get_text() for text in figures.gantt({"slow": spans}).legends[0].get_texts()]
    assert {"the host works", "the host loads"} <= set(labels)


def test_a_timeline_keeps_its_height_where_it_has_room_for_more_lanes() -> None:
    few, many = (
        {"yours": [Span(stream, "mm", 0.0, 1e-3, "kernel") for stream in range(n)], "slow": [Span(0, "mm", 0.0, 1e-3)]}
        for n in (2, 5)
    )
    least = {"yours": 5}
    heights = [figures.gantt(traces, least_lanes=least).get_figheight() for traces in (few, many)]
    assert heights[0] == heights[1] > figures.gantt(few).get_figheight()
