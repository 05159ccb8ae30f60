"""What one program touches, in the figure and in the records under it: right kernels, wrong ones and blank ones."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from grading.demo.examples import example
from labkit import figures
from labkit.material.kernel_costs import compare_steps, compare_traffic
from labkit.meters.traffic.accesses import track_accesses
from labkit.spec import STUB_MESSAGE
from tests.exercises.harness import answers_in, solution_of


def of_solution(exercise_id: str, name: str):
    return answers_in(exercise_id, solution_of(exercise_id))[name]


def blank(*args):
    raise NotImplementedError(STUB_MESSAGE)


def texts_of(figure) -> str:
    """All that is written in a figure, panels' titles included."""
    axes = [panel.get_title() for panel in figure.axes]
    below = [text.get_text() for part in figure.subfigs for text in part.texts]
    return "\n".join([*axes, *below])


def test_accesses_are_recorded_in_order_with_their_elements() -> None:
    add = of_solution("12-add", "add")
    with track_accesses() as accesses:
        add(torch.ones(1100), torch.ones(1100))
    second = [one for one in accesses if one.program == (1, 0, 0)]
    assert [(one.kind, one.argument) for one in second] == [("load", "x_ptr"), ("load", "y_ptr"), ("store", "out_ptr")]
    assert all(one.elements.tolist() == list(range(1024, 1100)) and one.n_masked == 948 for one in second)
    assert {one.launch for one in accesses} == {0} and second[0].shape == (1100,)


def test_nothing_is_recorded_after_the_block() -> None:
    add = of_solution("12-add", "add")
    with track_accesses() as accesses:
        pass
    add(torch.ones(5), torch.ones(5))
    assert accesses == []


def test_a_program_of_a_product_is_drawn_step_by_step() -> None:
    matmul = of_solution("13-matmul", "matmul")
    said = texts_of(figures.program_steps(lambda: matmul(torch.randn(40, 70), torch.randn(70, 24), "ieee", 16), (1, 1)))
    assert "a_ptr (40, 70)" in said and "c_ptr (40, 24)" in said
    assert "1 load   a_ptr" in said and "7 store  c_ptr" in said and "128 masked" in said


def test_a_kernel_without_a_mask_is_drawn_with_its_lanes_outside() -> None:
    add = answers_in("12-add", example("wrong", "12-add/no_mask").source)["add"]
    said = texts_of(figures.program_steps(lambda: add(torch.ones(600), torch.ones(600))))
    assert "424 lanes outside of it" in said and "424 OUTSIDE" in said


def test_a_call_that_raises_is_drawn_up_to_its_error() -> None:
    add = of_solution("12-add", "add")

    def call() -> None:
        add(torch.ones(5), torch.ones(5))
        raise ValueError("after the launch")

    assert "then ValueError: after the launch" in texts_of(figures.program_steps(call))


def test_in_a_grid_without_this_program_another_one_is_drawn() -> None:
    add = of_solution("12-add", "add")
    assert "program (0, 0, 0)" in texts_of(figures.program_steps(lambda: add(torch.ones(5), torch.ones(5)), 7))


def test_a_call_that_touches_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no program of launch 0 touches anything: the call launches no such kernel"):
        figures.program_steps(lambda: torch.ones(3) + 1)


def test_a_blank_stub_has_a_note_in_place_of_its_figure() -> None:
    note = figures.program_steps(lambda: blank())
    assert "Nothing to draw yet" in note.axes[0].texts[0].get_text()


@pytest.mark.parametrize("name", ["masked_block", "fused_chain", "tile_walk", "query_walk", "backward_walks"])
def test_sketches_are_drawn(name: str) -> None:
    figure = getattr(figures, name)()
    assert figure.axes[0].patches and figure.axes[0].texts


def test_a_blank_answer_is_left_out_of_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = torch.ones(8), torch.ones(8)
    found = compare_traffic({"theirs": lambda: x + y, "yours": lambda: blank(x)})
    assert list(found) == ["theirs"] and found["theirs"].total_bytes == 3 * x.nbytes
    steps = compare_steps({"theirs": lambda a, b: a * b, "yours": blank}, (x, y))
    assert list(steps) == ["theirs"] and steps["theirs"].kept_bytes == 2 * x.nbytes
    # Forward two read and one written; backward twice the same.
    assert steps["theirs"].traffic.total_bytes == 9 * x.nbytes
    assert compare_steps({"theirs": lambda a, b: a * b}, (x, y), count_inputs=False)["theirs"].kept_bytes == 0
    assert capsys.readouterr().out == 2 * "Left out here: yours, because blank is still blank.\n"


def test_other_errors_of_an_answer_are_raised() -> None:
    def wrong() -> None:
        raise NotImplementedError("something else")

    with pytest.raises(NotImplementedError, match="something else"):
        compare_traffic({"yours": wrong})
