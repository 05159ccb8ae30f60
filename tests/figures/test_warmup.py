"""The figure of lab 00 shows the student's own function, and a notebook shows the figure."""

from __future__ import annotations

import io

import torch
from PIL import Image

from labkit.figures import rms_over_scale
from labkit.figures.canvas import MARGIN, RADIUS


def right(x: torch.Tensor, dim: int) -> torch.Tensor:
    return x.float().square().mean(dim).sqrt().to(x.dtype)


def test_the_two_lines_are_the_naive_result_and_the_student_s() -> None:
    (axes,) = rms_over_scale(right).axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert set(lines) == {"exact", "squared in float16", "yours"}
    assert all(abs(ratio - 1) < 0.01 for ratio in lines["yours"])
    naive = lines["squared in float16"]
    assert naive[0] == 0
    assert naive[-1] == axes.get_yticks()[-1], "infinity is drawn at the top"


def test_a_naive_answer_coincides_with_the_naive_line() -> None:
    (axes,) = rms_over_scale(lambda x, dim: x.square().mean(dim).sqrt()).axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert lines["yours"] == lines["squared in float16"]


def test_a_notebook_gets_a_picture_without_pyplot() -> None:
    data, size = rms_over_scale(right)._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert (size["width"], size["height"]) == (700 + 2 * MARGIN, 360 + 2 * MARGIN)
    card = Image.open(io.BytesIO(data))
    assert card.size == (2 * size["width"], 2 * size["height"])
    edge = card.height - 1
    # Round corners, and white up to the edge between them.
    assert [card.getpixel((x, y))[3] for x in (0, card.width - 1) for y in (0, edge)] == [0, 0, 0, 0]
    assert {card.getpixel((2 * RADIUS, y)) for y in (0, 2 * MARGIN - 1, edge)} == {(255, 255, 255, 255)}
