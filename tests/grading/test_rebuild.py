"""A submission is the text of its answer cells and of its added cells; the rest is the template's."""

from __future__ import annotations

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from grading.build import student_version
from grading.rebuild import read_submission, read_template, rebuilt_notebook, steps_of
from grading.rebuild.dependencies import needed
from grading.rebuild.merge import merge
from grading.rebuild.readable import MOST_IN_A_CELL, MOST_IN_ALL
from grading.worker.protocol.steps import RunTest
from tests.grading.lessons import LAB, SOLUTION, cell_of, index_of, solved

pytestmark = pytest.mark.filterwarnings("ignore::nbformat.warnings.DuplicateCellId")


@pytest.fixture
def template(tmp_path):
    path = tmp_path / f"{LAB}.ipynb"
    nbformat.write(solved(), path)
    return read_template(path)


@pytest.fixture
def hand_in(tmp_path, template):
    """Change the released notebook in some way, write it, and merge it back."""

    def change_and_merge(change=lambda notebook: None):
        notebook = student_version(solved())
        change(notebook)
        path = tmp_path / "submitted.ipynb"
        path.write_text(json.dumps(notebook))
        return merge(template, read_submission(path))

    return change_and_merge


def run_order(merged) -> list[str]:
    return [step.cell_id for step in steps_of(merged)]


def source_of(merged, cell_id: str) -> str:
    return next(cell.source for cell in merged.cells if cell.id == cell_id)


ORDER = ["00-setup", "00-warm-up", "00-warm-up-check", "00-plain"]


def test_the_template_knows_what_each_cell_is_for(template) -> None:
    kinds = {cell.id: cell.kind for cell in template.cells}
    assert kinds == {
        "00-setup": "locked",
        "00-warm-up": "answer",
        "00-warm-up-check": "check",
        "00-plain": "test",
        "00-open": "manual",
        "00-c006": "code",
        "00-c007": "code",
    }


def test_hidden_tests_run_and_are_not_shown(template, hand_in) -> None:
    merged = hand_in()
    (test,) = [step for step in steps_of(merged) if isinstance(step, RunTest)]
    assert "5,), 3.0" in test.source
    assert "5,), 3.0" not in json.dumps(rebuilt_notebook(template, merged))


def test_an_untouched_release_is_rebuilt_as_it_was(template, hand_in) -> None:
    merged = hand_in()
    assert run_order(merged) == ORDER and merged.notes == ()
    assert rebuilt_notebook(template, merged) == template.notebook


def test_answers_are_taken_and_everything_else_is_not(template, hand_in) -> None:
    def change(notebook):
        for cell in notebook.cells:
            cell.metadata["evil"] = True
            if cell.cell_type == "code":
                cell.outputs = [nbformat.v4.new_output("stream", text="full marks")]
        cell_of(notebook, "00-setup").source = "import torch; torch.allclose = lambda *a: True"
        cell_of(notebook, "00-warm-up-check").source = "pass"
        cell_of(notebook, "00-plain").source = "pass"
        cell_of(notebook, "00-warm-up").source = SOLUTION
        cell_of(notebook, "00-open").source = "my words"
        notebook.metadata["kernelspec"] = {"name": "evil", "display_name": "Evil", "language": "perl"}

    merged = hand_in(change)
    rebuilt = rebuilt_notebook(template, merged)
    wanted = student_version(solved())
    cell_of(wanted, "00-warm-up").source = SOLUTION
    cell_of(wanted, "00-open").source = "my words"
    assert rebuilt == wanted


def test_pages_show_the_beginning_of_what_is_long_and_all_of_it_runs(template, hand_in) -> None:
    code, words = SOLUTION + "  \n" + "x.a" * 10_000, "$" * MOST_IN_A_CELL + "the end"

    def change(notebook):
        cell_of(notebook, "00-warm-up").source = code
        cell_of(notebook, "00-open").source = words
        notebook.cells.extend(new_code_cell("y" * MOST_IN_A_CELL) for _ in range(12))

    merged = hand_in(change)
    assert source_of(merged, "00-warm-up") == code
    rebuilt = rebuilt_notebook(template, merged)
    shown = cell_of(rebuilt, "00-warm-up").source
    assert shown.startswith(SOLUTION + "\nx.ax.a") and "# [10," in shown and "as it was handed in" in shown
    assert len(shown) < MOST_IN_A_CELL + 200
    assert cell_of(rebuilt, "00-open").source.endswith(
        "$\n\n[7 more characters of this cell are in the notebook as it was handed in]"
    )
    assert sum(len(cell.source) for cell in rebuilt.cells) < MOST_IN_ALL + 12 * 200 + 2000
    assert rebuilt.cells[-1].source.startswith("\n\n# [20,000 more")


def test_points_flags_and_cell_types_are_ignored(template, hand_in) -> None:
    def change(notebook):
        cell_of(notebook, "00-warm-up-check").metadata.nbgrader.update(points=500, grade=False, solution=True)
        answer = cell_of(notebook, "00-warm-up")
        answer.update(cell_type="markdown", source=SOLUTION)
        answer.pop("outputs"), answer.pop("execution_count")

    merged = hand_in(change)
    assert run_order(merged) == ORDER and source_of(merged, "00-warm-up") == SOLUTION
    assert cell_of(rebuilt_notebook(template, merged), "00-warm-up-check").metadata.nbgrader.points == 1


def test_added_cells_stay_behind_the_cell_they_followed(hand_in) -> None:
    def change(notebook):
        notebook.cells.insert(0, new_code_cell("first = 1"))
        notebook.cells.insert(index_of(notebook, "00-warm-up"), new_code_cell("helper = 2"))
        notebook.cells.insert(index_of(notebook, "00-warm-up"), new_markdown_cell("a note"))
        notebook.cells.append(new_code_cell("last = 3"))

    merged = hand_in(change)
    assert run_order(merged) == [
        "top-added-1",
        "00-setup",
        "00-setup-added-1",
        *ORDER[1:],
        "00-c007-added-1",
    ]
    assert source_of(merged, "00-setup-added-1") == "helper = 2"
    assert source_of(merged, "00-setup-added-2") == "a note"


def test_a_changed_demo_cell_counts_as_added_and_a_figure_is_not_run(hand_in) -> None:
    def change(notebook):
        notebook.cells[index_of(notebook, "00-c006")].source = "helper = 5"

    merged = hand_in(change)
    assert run_order(merged) == [*ORDER, "00-c006-added-1"]


def test_a_duplicated_answer_runs_as_in_the_students_notebook(hand_in) -> None:
    def change(notebook):
        copied = dict(cell_of(notebook, "00-warm-up"))
        cell_of(notebook, "00-warm-up").source = "first"
        notebook.cells.insert(index_of(notebook, "00-warm-up") + 1, nbformat.from_dict({**copied, "source": "second"}))

    merged = hand_in(change)
    assert run_order(merged) == ["00-setup", "00-warm-up", "00-warm-up-added-1", *ORDER[2:]]
    assert (source_of(merged, "00-warm-up"), source_of(merged, "00-warm-up-added-1")) == ("first", "second")
    assert "00-warm-up is there twice" in merged.notes[0]


def test_a_duplicated_check_is_ignored(hand_in) -> None:
    merged = hand_in(lambda notebook: notebook.cells.append(dict(cell_of(notebook, "00-warm-up-check"))))
    assert run_order(merged) == ORDER


def test_a_cell_that_is_there_often_is_one_note(hand_in) -> None:
    def change(notebook):
        notebook.cells += [dict(cell_of(notebook, "00-warm-up")) for _ in range(500)]

    assert hand_in(change).notes == (
        "cell 00-warm-up is there 501 times: the first counts as the answer, the others run after it",
    )


@pytest.mark.parametrize(("n", "who"), [(1, "cell 00-warm-up"), (2, "cell 00-warm-up (and 1 more)")])
def test_code_that_does_not_read_as_it_runs_is_noted(hand_in, n, who) -> None:
    def change(notebook):
        cell_of(notebook, "00-warm-up").source = "level = 'user\u202e \u2066# if admin\u2069'"
        notebook.cells += [new_code_cell("x\u2067"), new_markdown_cell("\u2067")][: 2 * n - 2]

    text = "turns the direction of writing, so that it does not read as it runs: look at it with `explain`"
    assert hand_in(change).notes == (f"{who} {text}",)


def test_deleted_cells_come_back(hand_in) -> None:
    def change(notebook):
        notebook.cells = [
            cell for cell in notebook.cells if cell.id not in ("00-warm-up-check", "00-plain", "00-setup")
        ]

    assert run_order(hand_in(change)) == ORDER


def test_a_renamed_answer_still_runs_after_the_blank_one(hand_in) -> None:
    def change(notebook):
        answer = cell_of(notebook, "00-warm-up")
        answer.metadata.nbgrader.grade_id, answer.id, answer.source = "mine", "mine", SOLUTION

    merged = hand_in(change)
    order = run_order(merged)
    assert order == ["00-setup", "00-warm-up", "00-setup-added-1", *ORDER[2:]]
    assert "00-warm-up is missing" in merged.notes[0]


def test_lost_metadata_is_made_good_by_the_cell_ids(hand_in) -> None:
    def change(notebook):
        cell_of(notebook, "00-warm-up").source = SOLUTION
        for cell in notebook.cells:
            cell.metadata = {}

    merged = hand_in(change)
    assert run_order(merged) == ORDER and source_of(merged, "00-warm-up") == SOLUTION


def test_reordered_cells_run_in_the_templates_order(hand_in) -> None:
    assert run_order(hand_in(lambda notebook: notebook.cells.reverse())) == ORDER


def test_a_demonstration_runs_only_where_its_names_are_looked_up(hand_in) -> None:
    """00-c007 binds `unchanged`; a hanging answer costs nothing through the lab's own demonstrations."""

    def reads_it(notebook):
        notebook.cells.append(new_code_cell("def f():\n    return unchanged"))

    def has_its_own(notebook):
        notebook.cells.append(new_code_cell("def f(unchanged):\n    return unchanged"))

    def cannot_be_read(notebook):
        notebook.cells.append(new_code_cell("%timeit unchanged"))

    assert "00-c007" in run_order(hand_in(reads_it))
    assert "00-c007" not in run_order(hand_in(has_its_own))
    assert "00-c007" in run_order(hand_in(cannot_be_read))


def with_a_prediction(notebook):
    """The notebook with a cell before its exercise that takes a prediction."""
    metadata = {"grade_id": "00-predict-size", "schema_version": 3} | dict.fromkeys(
        ("grade", "solution", "locked", "task"), False
    )
    asked = new_code_cell("guesses.take('size', None)", id="00-predict-size", metadata={"nbgrader": metadata})
    notebook.cells.insert(1, asked)
    return notebook


def test_a_prediction_is_the_students_own_and_runs_only_where_they_wrote_something(tmp_path) -> None:
    path = tmp_path / f"{LAB}.ipynb"
    nbformat.write(with_a_prediction(solved()), path)
    template = read_template(path)
    assert template.cells[1].kind == "prediction" and template.cells[1].points == 0
    for written, runs in ((None, False), ("guesses.take('size', 12)", True), ("guesses.take(", True)):
        notebook = student_version(with_a_prediction(solved()))
        if written is not None:
            cell_of(notebook, "00-predict-size").source = written
        (tmp_path / "submitted.ipynb").write_text(json.dumps(notebook))
        merged = merge(template, read_submission(tmp_path / "submitted.ipynb"))
        assert ("00-predict-size" in run_order(merged)) == runs and merged.notes == ()
        assert cell_of(rebuilt_notebook(template, merged), "00-predict-size").source == (
            written or "guesses.take('size', None)"
        )


def test_a_prediction_that_was_deleted_is_not_spoken_of(tmp_path) -> None:
    path = tmp_path / f"{LAB}.ipynb"
    nbformat.write(with_a_prediction(solved()), path)
    (tmp_path / "submitted.ipynb").write_text(json.dumps(student_version(solved())))
    merged = merge(read_template(path), read_submission(tmp_path / "submitted.ipynb"))
    assert merged.notes == () and run_order(merged) == ORDER


@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        (["print(a)"], {"one"}),
        (["b()"], {"one", "two"}),
        (["class C:\n    x = c"], {"three"}),
        (["lambda: [a for _ in range(3)]"], {"one"}),
        (["a = 1\nb = 2"], set()),
        (["def broken(: c"], {"three"}),
        ([], set()),
        (["from x import d"], set()),
        (["helper(1)"], {"four"}),
    ],
)
def test_which_demonstrations_are_needed(others, wanted) -> None:
    demos = [("one", "a = 1"), ("two", "def b():\n    return a"), ("three", "import c"), ("four", "%load helper")]
    assert needed(demos, others) == wanted
