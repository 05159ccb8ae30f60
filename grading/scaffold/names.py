"""What a new lab and a new exercise are called everywhere, from the one name that its author types.

It does not look whether the name is free: the files tell that.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from grading.errors import UserError

LAB = re.compile(r"(?P<number>\d\d)_(?P<slug>[a-z][a-z0-9]*(_[a-z0-9]+)*)")
EXERCISE = re.compile(r"(?P<number>\d\d)-(?P<slug>[a-z][a-z0-9]*(-[a-z0-9]+)*)")
TAKEN_BY_THE_TEMPLATE = ("torch", "labkit", "check", "progress")


@dataclass(frozen=True)
class LabNames:
    """A lab's names: `LabNames("21", "my_lab")`."""

    number: str
    slug: str

    @property
    def stem(self) -> str:
        return f"{self.number}_{self.slug}"

    @property
    def title(self) -> str:
        """ "My lab" """
        return self.slug.replace("_", " ").capitalize()

    def fields(self) -> dict[str, str]:
        """What stands for `<<name>>` in a template."""
        return {"number": self.number, "title": self.title, "lower_title": self.slug.replace("_", " ")}


@dataclass(frozen=True)
class ExerciseNames:
    """An exercise's names: `ExerciseNames("21", "my-thing")`."""

    number: str
    slug: str

    @property
    def id(self) -> str:
        return f"{self.number}-{self.slug}"

    @property
    def module(self) -> str:
        """ "my_thing": of its files, and of the student's function"""
        return self.slug.replace("-", "_")

    def fields(self) -> dict[str, str]:
        """What stands for `<<name>>` in a template."""
        words = self.slug.split("-")
        return {
            "number": self.number,
            "id": self.id,
            "module": self.module,
            "function": self.module,
            "constant": self.module.upper(),
            "class": "".join(word.capitalize() for word in words) + "Case",
            "heading": " ".join(words).capitalize(),
        }


def lab_names(name: str) -> LabNames:
    """Raises UserError for what is no name of a lab."""
    match = LAB.fullmatch(name)
    if not match:
        raise UserError(f'"{name}" is no name for a lab', "two digits and words in lower case, as in 21_my_lab")
    return LabNames(match["number"], match["slug"])


def exercise_names(name: str) -> ExerciseNames:
    """Raises UserError for what is no name of an exercise, or cannot be the name of a function."""
    match = EXERCISE.fullmatch(name)
    if not match:
        raise UserError(f'"{name}" is no name for an exercise', "the lab's number and lower-case words, as in 21-thing")
    names = ExerciseNames(match["number"], match["slug"])
    if keyword.iskeyword(names.module) or names.module in TAKEN_BY_THE_TEMPLATE:
        raise UserError(f'"{names.module}" cannot be the name of a function there', "choose another word")
    return names
