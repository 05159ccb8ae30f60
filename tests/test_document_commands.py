"""What the documents tell people to type is there: commands, options, targets of make. Speeds are those measured."""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import re
from pathlib import Path

import pytest

from grading.__main__ import COMMANDS
from tests.test_documents import DOCUMENTS, ROOT

COMMAND = re.compile(r"python -m grading (?P<name>[a-z]+)(?P<rest>[^`\n#]*)")
TARGET = re.compile(r"(?:^|`)make (?P<targets>[a-z][a-z -]*)", re.MULTILINE)
BY_NAME = {command.name: command for command in COMMANDS}


@functools.cache
def options(name: str) -> set[str]:
    parser = argparse.ArgumentParser()
    getattr(importlib.import_module(BY_NAME[name].module), BY_NAME[name].adds)(parser)
    return {option for action in parser._actions for option in action.option_strings}


def told(document: Path) -> list[re.Match[str]]:
    return list(COMMAND.finditer(document.read_text(encoding="utf-8")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_and_option_is_there(document: Path) -> None:
    wrong = []
    for found in told(document):
        if found["name"] not in BY_NAME:
            wrong.append(f"there is no command {found['name']}")
            continue
        unknown = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", found["rest"])) - options(found["name"])
        wrong += [f"{found['name']} has no {option}" for option in sorted(unknown)]
    assert wrong == []


def test_the_readme_names_every_command_of_an_instructor() -> None:
    """Those of the course's own upkeep stand in CONTRIBUTING.md, and `demo` is a target of make."""
    others = {"build", "table", "demo", "site"}
    missing = set(BY_NAME) - {found["name"] for found in told(ROOT / "README.md")}
    assert missing == others, "name it in README.md (For instructors), or in `others` if instructors never type it"


def test_every_target_of_make_is_there() -> None:
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in DOCUMENTS:
        for found in TARGET.finditer(document.read_text(encoding="utf-8")):
            (target, *_) = found["targets"].split()
            assert target in there, f"{document.name}: make {target}"


def test_the_readme_quotes_how_fast_grading_was_measured() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    lab = json.loads((ROOT / "benchmarks" / "results" / "grading.json").read_text(encoding="utf-8"))["result"]["02"]
    kernel, bwrap = lab["kernel"], lab["bwrap"]
    assert (
        f"{lab['submissions']} submissions of lab 02 were graded at {kernel['per_minute']:.0f} a minute with "
        f"`--isolation kernel` and {bwrap['per_minute']:.0f} a minute with `bwrap`, the start of "
        f"{kernel['start_and_end_s']:.0f} seconds included"
    ) in readme
