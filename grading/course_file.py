"""`course.toml`, by which a course adapts the labs: which ones it has, what of them it leaves out, other points.

    labs = ["00", "02"]                        # all of them without this line
    leave_out = ["02-encode", "02-open-order"] # exercises, and questions that a person reads

    [points]
    "02-decode" = 5

Above the table may stand `own_labs = ["/home/me/my-labs"]`: folders with labs that are not in this repository. Only the
file's form is looked at here. Whether the names are those of a lab is found out when that lab is built.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grading.build.adaptation import Adaptation
from grading.errors import UserError

NAME = "course.toml"
KEYS = ("labs", "leave_out", "own_labs", "points")
LAB = re.compile(r"\d\d")
ITEM = re.compile(r"\d\d-.+")
WHOLE_PATH = re.compile(r"[/~].*")
"""The file is copied into the course's folder: from there another path would lead elsewhere."""


@dataclass(frozen=True)
class CourseFile:
    """labs: their numbers, or None for all. own_labs: folders with further ones.

    CourseFile(labs=("00", "02"), wanted=Adaptation(frozenset({"02-encode"}), {"02-decode": 5.0}))
    """

    labs: tuple[str, ...] | None = None
    wanted: Adaptation = field(default_factory=Adaptation)
    own_labs: tuple[Path, ...] = ()


def read_course_file(path: Path) -> CourseFile:
    """What the file says; nothing where there is none. Raises UserError, which names the place."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return CourseFile()
    except OSError as error:
        raise UserError(f"{path} cannot be read, {error.strerror}", "mend that and run this again") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text", "save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not TOML ({error})", "docs/adapting.md shows one") from error
    if unknown := sorted(set(found) - set(KEYS)):
        raise UserError(f'{path} has "{unknown[0]}", which means nothing here', f"it may have {', '.join(KEYS)}")
    labs = _texts(path, found, "labs", LAB, 'numbers of labs in quotes, as in ["00", "02"]')
    leave_out = _texts(path, found, "leave_out", ITEM, 'ids of exercises or questions, as in ["02-encode"]') or ()
    own_labs = _texts(path, found, "own_labs", WHOLE_PATH, 'whole paths of folders, as in ["/home/me/my-labs"]') or ()
    points = found.get("points", {})
    if not isinstance(points, dict):
        raise UserError(f"{path}: points is no table", 'write [points], and below it lines as "02-decode" = 5')
    for name, value in points.items():
        if not ITEM.fullmatch(name) or isinstance(value, bool) or not isinstance(value, int | float):
            raise UserError(f'{path}: points of "{name}" are {value!r}', 'write lines as "02-decode" = 5')
    asked = {name: float(value) for name, value in points.items()}
    if labs is not None and (astray := sorted(name for name in {*leave_out, *asked} if name[:2] not in labs)):
        raise UserError(f'{path} says something of "{astray[0]}"', f"its labs are {', '.join(labs)} alone")
    return CourseFile(labs, Adaptation(frozenset(leave_out), asked), tuple(map(Path, own_labs)))


def _texts(path: Path, found: dict[str, Any], key: str, form: re.Pattern[str], wanted: str) -> tuple[str, ...] | None:
    if key not in found:
        return None
    texts = found[key]
    if not isinstance(texts, list) or not all(isinstance(text, str) and form.fullmatch(text) for text in texts):
        raise UserError(f"{path}: {key} is {texts!r}", f"it takes {wanted}")
    return tuple(texts)
