"""`python -m grading COMMAND`: build the notebooks, run a course, grade it, report."""

from __future__ import annotations

import argparse
import errno
import importlib
import sys
from dataclasses import dataclass

from grading.errors import UserError
from grading.terminal import flush, say


@dataclass(frozen=True)
class Command:
    """One line of `--help`, and where the command is declared: `module` is imported once it is asked for.

    adds: the function there that adds the command's arguments to its parser, and sets `run`.
    """

    name: str
    help: str
    module: str
    adds: str = "add_arguments"


COMMANDS = (
    Command("build", "make the student notebooks from solutions/", "grading.build.cli", "add_build_arguments"),
    Command("table", "the table of all exercises", "grading.build.cli", "add_table_arguments"),
    Command(
        "new", "begin a lab or an exercise: every file, each with the smallest thing that works", "grading.commands.new"
    ),
    Command("try", "try an answer on public cases and on many hidden draws", "grading.commands.try_answer"),
    Command("bundle", "make the archive for students", "grading.commands.bundle"),
    Command("site", "make the course's pages as static HTML", "grading.commands.site"),
    Command("course", "set up an nbgrader course from this repository", "grading.commands.course"),
    Command(
        "adapt",
        "make a course's sources anew, as its course.toml says",
        "grading.commands.course",
        "add_adapt_arguments",
    ),
    Command(
        "release",
        "make the students' version of labs (nbgrader generate_assignment)",
        "grading.commands.course",
        "add_release_arguments",
    ),
    Command("collect", "take in submissions from a folder, a zip archive or the exchange", "grading.commands.collect"),
    Command("grade", "grade the submissions of a lab", "grading.commands.grade"),
    Command("regrade", "grade one submission anew, and show what changed", "grading.commands.regrade"),
    Command("feedback", "make the feedback pages of a lab", "grading.commands.feedback"),
    Command("export", "write the grades to a file", "grading.commands.export"),
    Command("report", "write one page about the class", "grading.commands.report"),
    Command("leaderboard", "write the capstone's boards, under made-up names", "grading.commands.leaderboard"),
    Command("similar", "show which answers of a class are alike, for a person to look at", "grading.commands.similar"),
    Command("audit", "verify the log, and explain grades from it", "grading.commands.audit"),
    Command(
        "explain", "a second look at one student: inputs, expected, got, budgets, code", "grading.commands.explain"
    ),
    Command("doctor", "say which isolation works on this machine", "grading.commands.doctor"),
    Command("verify", "try to break the grader with known attacks", "grading.commands.verify"),
    Command("demo", "grade a sample class and show the report", "grading.commands.demo"),
)

DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def main(argv: list[str] | None = None) -> int:
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    finally:
        flush()


def _main(words: list[str]) -> int:
    if not words:
        say(*_parser(words).format_help().splitlines(), is_error=True)
        return 2
    args = _parser(words).parse_args(words)
    try:
        return args.run(args)
    except UserError as error:
        say(f"grading: {error}", is_error=True)
        return 2
    except OSError as error:
        if error.errno not in DISK_TROUBLE:
            raise
        where = f" ({error.filename})" if error.filename else ""
        say(f"grading: {error.strerror}{where}: fix that and run the same command again", is_error=True)
        return 2
    except KeyboardInterrupt:
        say("interrupted: nothing that was finished is lost; run the same command again to go on")
        return 130


def _parser(words: list[str]) -> argparse.ArgumentParser:
    """All commands by name, and the arguments of the one that is asked for: importing them all takes seconds."""
    parser = argparse.ArgumentParser(
        prog="python -m grading",
        description="The instructor's side of the labs.",
        epilog="In the order of a term: doctor, course, bundle; then, for each lab, release, collect, grade, report, "
        "feedback, export. README.md (For instructors) names the rest.",
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    asked = next((word for word in words if any(word == command.name for command in COMMANDS)), None)
    for command in COMMANDS:
        about = f"{command.help[0].upper()}{command.help[1:]}."
        added = subparsers.add_parser(command.name, help=command.help, description=about)
        if command.name == asked:
            getattr(importlib.import_module(command.module), command.adds)(added)
    return parser


if __name__ == "__main__":
    sys.exit(main())
