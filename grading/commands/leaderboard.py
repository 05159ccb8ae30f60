"""`leaderboard DIR`: the capstone's boards, one page and one CSV file for each machine, under made-up names.

With --verify every score is worked out again from the submitted script, and what does not come out loses its place.
With --who it says what students are called there, and writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Collection, Sequence
from pathlib import Path

from grading.board.entries import EXERCISE, Candidate, find_candidates
from grading.board.gpu_times import read_gpu_times
from grading.board.lock import lock_in_words
from grading.board.page import as_page
from grading.board.places import Board, board_named, boards_of, same_scripts
from grading.board.scripts import write_scripts
from grading.board.table import as_csv
from grading.board.verify import Verified, summary, verify
from grading.commands.arguments import add_course, add_isolation, add_workers
from grading.course import Course
from grading.errors import UserError
from grading.files import write_output
from grading.gradebook.extensions import parse_moment
from grading.isolation import select_tier
from grading.pseudonym import pseudonym_of
from grading.report.points import read_points
from grading.supervisor.packages import versions
from grading.terminal import say, table

NOT_VERIFIED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_course(parser)
    parser.add_argument("--machine", metavar="NAME", help="only this machine's board: basement, v100, quad, slice")
    parser.add_argument("--until", metavar="TIME", help='the freeze: "2026-03-09", or "2026-03-09 18:00 Europe/Berlin"')
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="the folder to write to (default: the course's)")
    parser.add_argument("--scripts", action="store_true", help="publish the scripts too, once the freeze is over")
    parser.add_argument("--verify", action="store_true", help="work every score out again from the script, isolated")
    add_isolation(parser, "for --verify; default: auto")
    add_workers(parser, "for --verify: scripts at a time")
    parser.add_argument("--who", nargs="*", metavar="STUDENT", help="say what these students are called, or all")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    if args.who is not None:
        say(*_names(course, args.who))
        return 0
    if args.workers < 1:
        raise UserError("no script can be played without a worker", "give --workers 1 or more")
    until = _freeze(args.until)
    if args.scripts and (until is None or until > datetime.datetime.now(datetime.UTC)):
        raise UserError("scripts are published when nothing can be entered any more", "name the freeze with --until")
    candidates = find_candidates(course, until)
    boards = _boards(course, candidates.found, args.machine)
    verified: list[Verified] = []
    if args.verify:
        placed = [place.candidate for board in boards for place in board.places]
        verified = verify(course, placed, select_tier(args.isolation), args.workers)
        # Whose score does not come out has no place on this machine: a next best entry was not played again.
        doubted = {_whose(row.candidate) for row in verified if row.problems}
        boards = _boards(course, [each for each in candidates.found if _whose(each) not in doubted], args.machine)
    sentences = summary(verified, versions(), lock_in_words(versions())) if args.verify else []
    out = args.out or course.root
    placed = [place.candidate for board in boards for place in board.places]
    published, withheld = write_scripts(course, placed if args.scripts else (), out)
    written = _write(course, boards, until, out, published, tuple(sentences))
    remarks = [*candidates.remarks, *same_scripts(boards), *withheld, *written]
    say(*_standings(boards), *_problems(course, verified), *sentences, *remarks)
    return NOT_VERIFIED if any(row.problems for row in verified) else 0


def _names(course: Course, students: Sequence[str]) -> list[str]:
    """Whom each name stands for: for the instructor's eyes, or for the one student who asks."""
    asked = students or course.students(course.lab(EXERCISE[:2]))
    if not asked:
        raise UserError("nobody has handed in the capstone yet", "name students: --who ada")
    return table(
        ("student", "name on the leaderboard"), [(student, pseudonym_of(course, student)) for student in asked]
    )


def _freeze(text: str | None) -> datetime.datetime | None:
    if text is None:
        return None
    try:
        return parse_moment(text.strip()).replace(tzinfo=datetime.UTC)
    except ValueError as error:
        raise UserError("--until", f"{error} (a date alone means its last second, UTC)") from error


def _boards(course: Course, found: Sequence[Candidate], machine: str | None) -> list[Board]:
    names = {student: pseudonym_of(course, student) for student in {each.student for each in found}}
    boards = boards_of(found, names)
    return [board_named(boards, machine)] if machine is not None else boards


def _whose(candidate: Candidate) -> tuple[str, str]:
    return candidate.student, candidate.entry.machine


def _write(
    course: Course,
    boards: list[Board],
    until: datetime.datetime | None,
    folder: Path,
    published: Collection[str],
    verified: tuple[str, ...],
) -> list[str]:
    """Write both files of each board; what there is to say about them."""
    digests = {place.entry.digest for board in boards for place in board.places}
    gpu = read_gpu_times(course, digests)
    lines = list(gpu.problems)
    for board in boards:
        path = folder / f"leaderboard-{board.machine}.html"
        title = read_points(course).course_id
        write_output(path, as_page(board, title, until, gpu.times, verified, published))
        write_output(path.with_suffix(".csv"), as_csv(board, gpu.times))
        lines.append(f"wrote {path} and {path.with_suffix('.csv').name}")
    return lines


def _standings(boards: list[Board]) -> list[str]:
    """The places with the students' own names: for the terminal of the instructor alone."""
    rows = [
        (board.machine, place.in_words, place.candidate.student, place.name, place.entry.virtual_hours)
        for board in boards
        for place in board.places
    ]
    empty = [f"{board.machine}: no entry yet" for board in boards if not board.places]
    return [*(table(("machine", "place", "student", "name", "virtual hours"), rows) if rows else ()), *empty]


def _problems(course: Course, verified: list[Verified]) -> list[str]:
    return [
        f"{row.candidate.student} ({pseudonym_of(course, row.candidate.student)}), {row.candidate.entry.machine}, "
        f"entry {row.candidate.entry.digest}: {problem}"
        for row in verified
        for problem in row.problems
    ]
