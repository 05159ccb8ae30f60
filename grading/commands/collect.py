"""`collect DIR LAB`: take submissions in from a zip, a folder, repositories or the exchange, and name what is refused.

One refused file never keeps the others out. Nothing is graded here: `grade` finds what is new.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import re
import zoneinfo
from collections.abc import Collection, Iterator
from pathlib import Path

from grading.commands.arguments import add_course, add_lab
from grading.course import Course
from grading.errors import UserError
from grading.intake.archive import open_archive
from grading.intake.arrived import Arrivals
from grading.intake.choose import ReadingOptions
from grading.intake.exchange import collect_exchange
from grading.intake.folder import read_folder
from grading.intake.gradescope import GRADESCOPE
from grading.intake.platform import COPY, PLATFORMS
from grading.intake.repositories import REPOSITORIES, open_repositories
from grading.intake.roster import read_roster
from grading.intake.take_in import Intake, take_in
from grading.terminal import say, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    add_lab(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--zip", type=Path, metavar="FILE", help="an archive as the learning platform gives it out")
    source.add_argument("--folder", dest="from_folder", type=Path, metavar="FOLDER", help="a folder of submissions")
    source.add_argument(
        "--repositories", type=Path, metavar="FOLDER", help="a folder with a git repository for each student"
    )
    source.add_argument("--exchange", action="store_true", help="nbgrader's exchange directory")
    parser.add_argument(
        "--platform", choices=(*PLATFORMS, GRADESCOPE), help="how the files are named (default: guessed)"
    )
    parser.add_argument("--pattern", metavar="REGEX", help="how the files are named: a group (?P<student>...) in it")
    parser.add_argument("--roster", type=Path, metavar="FILE", help="a column student, and names or numbers elsewhere")
    parser.add_argument(
        "--branch", metavar="NAME", help="of repositories: this branch (default: the one that is checked out)"
    )
    parser.add_argument("--prefix", help="of repositories: what their names begin with, before the student's")
    parser.add_argument("--times", choices=("auto", "files", "none"), default="auto", help="which times to believe")
    parser.add_argument("--timezone", default="UTC", metavar="ZONE", help="of an archive's local times (default: UTC)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="let an older attempt, or another time, replace what is there",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would happen")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    _refuse_unfit(args)
    # The exchange is laid out as nbgrader does, whatever accounts are called.
    platform = "plain" if args.exchange else REPOSITORIES if args.repositories else args.platform
    archive = COPY.sub("", args.zip.stem) if args.zip else ""
    roster = read_roster(args.roster) if args.roster else None
    options = ReadingOptions(platform, _pattern(args.pattern), roster, args.times, archive)
    zone = _zone(args.timezone)
    lock = contextlib.nullcontext() if args.dry_run else course.locked()
    with lock, _arrivals(args, course, lab, zone) as (source, arrivals):
        if not (arrivals.entries or arrivals.refused or args.exchange):
            raise UserError(f"there is nothing in {source}", f"give what holds the submissions of {lab}")
        intake = take_in(course, lab, arrivals, options, source, force=args.force, dry_run=args.dry_run)
    others = {f"{each}.ipynb" for each in course.labs() if each != lab}
    _show(intake, others, args.timezone if args.zip else "", args.dry_run)
    if intake.changed and not args.dry_run:
        say(f"next: python -m grading grade {args.folder} {args.lab}")
    return 1 if intake.refused else 0


def _refuse_unfit(args: argparse.Namespace) -> None:
    if args.exchange and (args.platform or args.pattern):
        raise UserError("the exchange names submissions in its own way", "leave out --platform and --pattern")
    if args.repositories and (args.platform or args.pattern):
        raise UserError("a repository's folder is called after its student", "use --prefix or --roster instead")
    if not args.repositories and (args.branch is not None or args.prefix is not None):
        raise UserError("--branch and --prefix are about repositories", "give them with --repositories FOLDER")


@contextlib.contextmanager
def _arrivals(
    args: argparse.Namespace, course: Course, lab: str, zone: datetime.tzinfo
) -> Iterator[tuple[str, Arrivals]]:
    if args.zip:
        with open_archive(args.zip, zone) as arrivals:
            yield args.zip.name, arrivals
    elif args.from_folder:
        yield args.from_folder.name, read_folder(args.from_folder)
    elif args.repositories:
        with open_repositories(args.repositories, lab, args.branch, args.prefix) as arrivals:
            yield args.repositories.name, arrivals
    else:
        with collect_exchange(course, lab) as arrivals:
            yield "exchange", arrivals


def _show(intake: Intake, others: Collection[str], zone: str, dry_run: bool) -> None:
    """`others`: what the notebooks of other labs are called. They are counted: a class has hundreds of them."""
    if intake.rows:
        say(*table(("student", "file", "bytes", "time (UTC)", "what happened"), intake.rows))
    passed_over = [item for item in intake.passed_over if item.path.rpartition("/")[2] not in others]
    if n_others := len(intake.passed_over) - len(passed_over):
        say(f"passed over {n_others} notebooks of other labs")
    for item in passed_over:
        say(f"passed over {item.path!a}: {item.reason}")
    for item in intake.refused:
        say(f"refused {item.path!a}: {item.reason}")
    if intake.missing:
        say(f"nothing from {len(intake.missing)} of the roster: {', '.join(intake.missing)}")
    n_timed = sum(bool(row[3]) for row in intake.rows)
    if zone and n_timed:
        say(f"local times in the archive were taken as {zone} (--timezone)")
    if n_timed < len(intake.rows):
        say(f"{len(intake.rows) - n_timed} came without a time of submission: nbgrader counts them as in time")
    taken = "would be taken" if dry_run else "taken"
    unchanged = len(intake.rows) - intake.changed
    say(f"{intake.changed} {taken}, {unchanged} unchanged, {len(intake.refused)} refused ({intake.platform})")


def _pattern(text: str | None) -> re.Pattern | None:
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UserError(f"--pattern is not a regular expression ({error})", "see Python's re") from error
    if "student" not in pattern.groupindex:
        raise UserError("--pattern has no group for the student", "write (?P<student>...) where the student's name is")
    return pattern


def _zone(name: str) -> datetime.tzinfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UserError(f'there is no time zone "{name}"', "write one like Europe/Berlin") from error
