"""`python -m grading build` and `python -m grading table`.

Exit codes: 0 all is well; 1 something generated is stale, missing or extra; 2 a source is refused, or a file
cannot be read or written.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from grading import own_labs
from grading.build.compile import Built, build_all, student_files
from grading.build.course_map import PAGE, with_map
from grading.build.files import Difference, differences, extras, write
from grading.build.notebook import to_json
from grading.build.source import FILE_NAME, BadSource, shown
from grading.build.table import PLACE, NoPlaceForTable, table, with_table
from grading.terminal import lines_in, say
from labkit.exercises import everything
from labkit.spec import Exercise

FINE, STALE, BAD = 0, 1, 2
ROOT = Path(__file__).resolve().parents[2]
REBUILD = "python -m grading build"
RETABLE = "python -m grading table --write"


def add_build_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of `build`; like its neighbour it sets `run`, a function from the parsed arguments to the exit code."""
    parser.description = "Makes notebooks/ from solutions/, the exercise table in README.md and the map in docs/map.md."
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="sources (default: all of them)")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything is not fresh")
    output.add_argument("--solutions", type=Path, metavar="DIR", help="also write the solved notebooks to DIR")
    add_root(parser)
    parser.set_defaults(run=run_build)


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of `table`."""
    parser.description = "Prints the table of all exercises, generated from their declarations."
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--write", action="store_true", help="put it into README.md")
    output.add_argument("--check", action="store_true", help="exit 1 if README.md has another one")
    add_root(parser)
    parser.set_defaults(run=run_table)


def add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the course (default: this checkout)")


def run_build(args: argparse.Namespace, exercises: Mapping[str, Exercise] | None = None) -> int:
    """The command `build`; `exercises` are the course's own unless given."""
    try:
        if exercises is None and args.root != ROOT and not (args.root / "labkit" / "labs.py").is_file():
            own_labs.use([args.root])
        paths = args.paths or sorted((args.root / "solutions").glob("*.py"))
        built = build_all(paths, exercises)
        student = student_files(args.root, built) | ({} if args.paths else map_page(args.root))
        if args.check:
            return check_build(args, student, exercises)
        return write_build(args, built, student, exercises)
    except BadSource as error:
        say(*lines_in(error), is_error=True)
        count = len(error.problems)
        say(f"refused: {count} problem{'s' * (count != 1)}; nothing was written", is_error=True)
        return BAD
    except NoPlaceForTable as error:
        say(f"{shown(args.root / PAGE)}: no place for the map: {error}", is_error=True)
        return BAD
    except OSError as error:
        return failed(error)


def check_build(args: argparse.Namespace, student: dict[Path, str], exercises: Mapping[str, Exercise] | None) -> int:
    """Compares and reports; for all sources also looks for extra notebooks and at the table."""
    found = differences(student)
    code = FINE
    if not args.paths:
        found += extras(args.root / "notebooks", student)
        code = check_table(args.root, exercises)
    for difference in found:
        say(f"{shown(difference.path)}: {difference.state}; {remedy(difference)}", is_error=True)
    return STALE if found else code


def map_page(root: Path) -> dict[Path, str]:
    """docs/map.md as it should be; empty where there is no such page."""
    path = root / PAGE
    return {path: with_map(path.read_text(encoding="utf-8"))} if path.is_file() else {}


def remedy(difference: Difference) -> str:
    """What puts it right."""
    if difference.state == "extra":
        return f"no source makes it: git rm {shown(difference.path)}"
    return f"to make it: {REBUILD}"


def write_build(
    args: argparse.Namespace,
    built: list[Built],
    student: dict[Path, str],
    exercises: Mapping[str, Exercise] | None,
) -> int:
    """Writes what changed; for all sources also the table, if README.md has a place for it."""
    wanted = dict(student)
    if args.solutions is not None:
        wanted |= {args.solutions / f"{each.name}.ipynb": to_json(each.solution) for each in built}
    if not args.paths:
        wanted |= readme(args.root, exercises)
        for difference in extras(args.root / "notebooks", student):
            say(f"{shown(difference.path)}: {difference.state}; {remedy(difference)}", is_error=True)
    written = write(wanted)
    for path in written:
        say(f"wrote {shown(path)}")
    if not written:
        say(f"nothing changed ({len(built)} notebook{'s' * (len(built) != 1)} up to date)")
    return FINE


def run_table(args: argparse.Namespace, exercises: Mapping[str, Exercise] | None = None) -> int:
    """The command `table`; `exercises` are the course's own unless given."""
    try:
        if args.check:
            return check_table(args.root, exercises)
        if not args.write:
            say(*current_table(args.root, exercises).splitlines())
            return FINE
        path = args.root / "README.md"
        text = with_table(path.read_text(encoding="utf-8"), current_table(args.root, exercises))
        written = write({path: text})
        say(f"wrote {shown(path)}" if written else "nothing changed")
        return FINE
    except NoPlaceForTable as error:
        say(f"{shown(args.root / 'README.md')}: no place for the exercise table: {error}", is_error=True)
        return BAD
    except OSError as error:
        return failed(error)


def check_table(root: Path, exercises: Mapping[str, Exercise] | None) -> int:
    """Whether README.md has the table that the declarations make."""
    path = root / "README.md"
    wanted = readme(root, exercises)
    if not path.is_file() and root != ROOT:
        return FINE
    if not wanted:
        say(f"{shown(path)}: no place for the exercise table: {NoPlaceForTable(PLACE)}", is_error=True)
        return STALE
    if differences(wanted):
        say(f"{shown(path)}: the exercise table is stale; to make it: {RETABLE}", is_error=True)
        return STALE
    return FINE


def readme(root: Path, exercises: Mapping[str, Exercise] | None) -> dict[Path, str]:
    """README.md as it should be; empty where there is no place for the table."""
    path = root / "README.md"
    try:
        return {path: with_table(path.read_text(encoding="utf-8"), current_table(root, exercises))}
    except (FileNotFoundError, NoPlaceForTable):
        return {}


def current_table(root: Path, exercises: Mapping[str, Exercise] | None) -> str:
    """The table of every declared exercise, linked to the notebooks that the sources make."""
    matches = (FILE_NAME.fullmatch(path.name) for path in sorted((root / "solutions").glob("*.py")))
    notebooks = {match["lab"]: match[0].removesuffix(".py") for match in matches if match}
    declared = everything() if exercises is None else exercises
    return table(list(declared.values()), notebooks)


def failed(error: OSError) -> int:
    """Says what could not be read or written."""
    say(f"{error.filename or 'file'}: {error.strerror or error}", is_error=True)
    return BAD
