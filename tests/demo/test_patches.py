"""Answers written as patches: what fits exactly once is applied, and anything else says which line and what to do."""

from __future__ import annotations

import pytest

from grading.demo import examples
from grading.demo.patches import PatchError, hunks_of, patched

BASE = """\
def step(self):
    self.n = 0
    self.scale = 1

def skip(self):
    self.n = 0
    return
"""


@pytest.mark.parametrize(
    ("patch", "new"),
    [
        ("-    self.scale = 1\n+    self.scale = 2\n", BASE.replace("scale = 1", "scale = 2")),
        ("-    return\n", BASE.replace("    return\n", "")),
        (" def skip(self):\n+    self.m = 1\n", BASE.replace("skip(self):\n", "skip(self):\n    self.m = 1\n")),
        (" def skip(self):\n-    self.n = 0\n", BASE.replace("skip(self):\n    self.n = 0\n", "skip(self):\n")),
        ("-    return\n+    pass\n\n\n-    self.scale = 1\n", BASE.replace("    self.scale = 1\n", "")[:-7] + "pass\n"),
        ("     self.scale = 1\n+\n+x = 1\n \n", BASE.replace("scale = 1\n", "scale = 1\n\nx = 1\n")),
    ],
    ids=["replaced", "removed", "added", "the second of two", "two hunks in any order", "blank lines"],
)
def test_a_patch_is_applied(patch: str, new: str) -> None:
    assert patched(BASE, hunks_of(patch)) == new


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("", "line 3: nothing is changed"),
        ("    return\n", "line 3: this hunk changes nothing"),
        ("return\n", "line 3, 'return', begins with neither"),
        ("\n+x = 1\n", "line 4: say where this goes"),
        ("-    return\n+    return\n", "line 3: this hunk changes nothing"),
        ("-    self.n = 0\n", r"line 3, '    self.n = 0', and what follows is found 2 times in the base: add"),
        (
            "-    return\n+    pass\n\n-    raise\n",
            "line 6, '    raise', is found 0 times in the base. If the base",
        ),
        ("-    self.scale = 1\n-    return\n", "the lines from 3 are found in the base, but not one after the other"),
        (" def skip(self):\n-    self.n = 0\n\n     self.n = 0\n-    return\n", "hunks of line 3 and line 6 overlap"),
    ],
)
def test_a_patch_that_does_not_fit_says_so(patch: str, says: str) -> None:
    with pytest.raises(PatchError, match=says):
        patched(BASE, hunks_of(patch, first=3))


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """A folder of answers to one exercise, whose solution is the course's own."""
    monkeypatch.setattr(examples, "TESTS", tmp_path)
    for name, text in {
        "wrong/02-sums/whole.py": "# hint: the hint\nx = 1\n",
        "wrong/02-sums/of_a_right_one.patch": "# hint: another\n# base: right/short\n\n-x = 2\n+x = 3\n",
        "wrong/02-sums/of_the_solution.patch": "# hint: a third\n# base: solution\n\n-    total = torch.ones(())\n",
        "wrong/02-sums/of_nothing.patch": "# hint: a fourth\n# base: right/gone\n\n-x = 2\n",
        "wrong/02-sums/without.py": "x = 1\n",
        "wrong/02-sums/empty.py": "# hint: \nx = 1\n",
        "wrong/02-sums/baseless.patch": "# hint: a fifth\n-x = 2\n",
        "right/02-sums/short.py": "# is short\nx = 2\n",
        "right/02-sums/plain.py": "x = 4\n",
        "right/02-sums/shorter.patch": "# is shorter\n# base: right/short\n\n-x = 2\n+x=2\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)


def test_answers_are_read_whole_or_patched(tests: None) -> None:
    assert examples.example("wrong", "02-sums/whole") == examples.Example("02-sums", "whole", "x = 1\n", "the hint")
    assert examples.example("wrong", "02-sums/of_a_right_one").source == "x = 3\n"
    assert examples.example("wrong", "02-sums/of_a_right_one").hint == "another"
    assert [known.source for known in examples.examples("right", "02-sums")] == ["x = 4\n", "x = 2\n", "x=2\n"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("without", r"without\.py: the first line must be `# hint: …`"),
        ("empty", r"empty\.py: the first line must be `# hint: …`"),
        ("baseless", r"baseless\.patch: line 2 must be `# base: solution` or .*, and is '-x = 2'"),
        ("of_nothing", r"of_nothing\.patch: line 2 must be `# base: solution` or .* no right/gone\.py"),
        (
            "of_the_solution",
            r"of_the_solution\.patch: line 4, '    total = torch.ones\(\(\)\)', is found 0 times",
        ),
    ],
)
def test_an_answer_that_cannot_be_read_names_its_file(tests: None, name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        examples.example("wrong", f"02-sums/{name}")


def test_no_two_answers_share_a_name() -> None:
    """One would hide the other from `example`."""
    for folder in ("wrong", "right"):
        names = [path.with_suffix("") for path in (examples.TESTS / folder).glob("*/*.p*")]
        assert sorted(names) == sorted(set(names))
