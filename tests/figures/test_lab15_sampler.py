"""The figure of lab 15's sampler shows who got what, and what went wrong."""

from __future__ import annotations

from labkit import figures
from labkit.figures.sampler import NOBODY, SEVERAL
from tests.figures.on_page import assert_every_text_is_on_the_page


class Dealt:
    """Rank r gets r, r + W, ...; every rank gets sample 0 as well if `doubled`."""

    doubled = False

    def __init__(self, n_samples: int, rank: int, world_size: int) -> None:
        self.indices = [*([0] * self.doubled), *range(rank, n_samples, world_size)]

    def set_epoch(self, epoch: int) -> None:
        self.indices = self.indices if epoch == 0 else self.indices[::-1]

    def __iter__(self):
        return iter(self.indices)


class Doubled(Dealt):
    doubled = True


def boxes(sampler, **sizes):
    return figures.who_sees_what(sampler, n_epochs=2, **sizes).axes[0].collections[0].get_array()


def test_a_box_has_the_colour_of_its_rank() -> None:
    assert boxes(Dealt, n_samples=6, world_size=3).tolist() == [[0, 1, 2, 0, 1, 2]] * 2


def test_what_comes_twice_or_never_stands_out() -> None:
    assert boxes(Doubled, n_samples=4, world_size=2)[0, 0] == 2
    figure = figures.who_sees_what(lambda n, rank, w: Dealt(n - 1, rank, w), 4, 2, 1)
    mesh = figure.axes[0].collections[0]
    assert mesh.get_array()[0, 3] == -1
    assert (mesh.cmap.colors[0], mesh.cmap.colors[-1]) == (NOBODY, SEVERAL)


def test_the_number_in_a_box_is_its_step() -> None:
    figure = figures.who_sees_what(Dealt, 6, 2, 2)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["0", "0", "1", "1", "2", "2", "2", "2", "1", "1", "0", "0"]


def test_every_text_is_on_the_page() -> None:
    figure = figures.who_sees_what(Dealt)
    assert_every_text_is_on_the_page(figure)
