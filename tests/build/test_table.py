"""The generated table of exercises, and where it goes."""

from dataclasses import replace

import pytest

from grading.build.table import LABS_HEAD, PLACE, SUMMARY, NoPlaceForTable, markers, table, with_table
from tests.build.lesson import EXERCISES

BEGIN, END = markers(PLACE)
ROW = "| [20](notebooks/20_small_lab.ipynb) All of it together | 2 | 3.5 | – | – | – |"
TABLE = """\
**[20_small_lab](notebooks/20_small_lab.ipynb)** · 2 exercises · 3.5 points · exercises about 16 min

| exercise | what | points | difficulty | minutes without reading |
|---|---|---:|---:|---:|
| 20-decode | The decode | 3 | 2 of 3 | 15 |
| 20-guess | The guess | 0.5 | 1 of 3 | 1 |"""


def test_a_row_for_each_lab_then_folded_away_a_table_for_each():
    text = table(list(EXERCISES.values()), {"20": "20_small_lab"})
    rows, _, folded = text.partition("\n\n")
    assert rows == f"{LABS_HEAD}\n{ROW}"
    assert folded == f"<details>\n<summary>{SUMMARY}</summary>\n\n{TABLE}\n\n</details>"
    other = replace(EXERCISES["20-guess"], id="08-guess")
    text = table([*EXERCISES.values(), other], {"20": "20_small_lab"})
    assert f"{ROW}\n| 08 Parameter-efficient fine-tuning | 1 | 0.5 | 3 h 15 min | 1 h 15 min | – |\n\n<details>" in text
    assert (
        f"{TABLE}\n\n**08** · 1 exercise · 0.5 points · about 3 h 15 min with reading, 1 h 15 min more for what is "
        "optional\n"
    ) in text


def test_what_is_optional_is_marked_and_added_up_apart():
    extra = replace(EXERCISES["20-guess"], optional=True, points=0.3)
    text = table([EXERCISES["20-decode"], extra], {"20": "20_small_lab"})
    assert "· 2 exercises · 3 points and 0.3 extra ·" in text
    assert "| 20-guess | The guess | +0.3 (optional) | 1 of 3 | 1 |" in text


def test_a_bar_in_a_title_is_no_column():
    odd = replace(EXERCISES["20-guess"], title="|x| + 1")
    assert "| \\|x\\| + 1 |" in table([odd], {})


def test_only_what_is_between_the_markers_is_replaced():
    text = f"# Labs\n\n{BEGIN}\nold\n{END}\n\nmore\n"
    new = with_table(text, "new")
    assert new == f"# Labs\n\n{BEGIN}\nnew\n{END}\n\nmore\n"
    assert with_table(new, "new") == new


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}{END}{BEGIN}", f"{BEGIN}{END}{END}"])
def test_without_its_place_it_is_refused(text):
    with pytest.raises(NoPlaceForTable, match="it needs the lines <!-- exercises:begin --> and"):
        with_table(text, "new")
