"""The answers under `tests/` that are known to be wrong or right: `FOLDER/NN-slug/what_it_does.py`.

The first line of a wrong one is `# hint: …`, a piece of the hint that the student must read; that of a right one may be
a comment on what is unusual about it. Neither is part of the answer. Nothing is run here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"


@dataclass(frozen=True)
class Example:
    """One known answer, such as Example("02-sums", "sorted_by_value", "def …", "by size and not by value").

    source: the text of the answer's cell. hint: a part of the hint that it must get, and empty where it is right.
    """

    exercise: str
    name: str
    source: str
    hint: str = ""


def examples(folder: str, exercise: str) -> tuple[Example, ...]:
    """Those of one exercise in "wrong" or "right", by name."""
    return tuple(_read(path) for path in sorted((TESTS / folder / exercise).glob("*.py")))


def example(folder: str, path: str) -> Example:
    """One of them: example("wrong", "02-sums/sorted_by_value"). Raises FileNotFoundError where there is none."""
    return _read(TESTS / folder / f"{path}.py")


def _read(path: Path) -> Example:
    text = path.read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    if path.parents[1].name == "right":
        return Example(path.parent.name, path.stem, rest if first.startswith("#") else text)
    if not first.startswith("# hint: "):
        raise ValueError(f"{path}: the first line must be `# hint: …`, a part of the hint that this answer gets")
    return Example(path.parent.name, path.stem, rest, first.removeprefix("# hint: "))
