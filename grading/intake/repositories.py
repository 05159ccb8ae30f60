"""Repositories of students, a folder each, as `gh classroom clone student-repos` lays them out.

A repository is a stranger's: its configuration names programs that git runs, its hooks are programs, and links and
alternates in it lead elsewhere. So git never works in it. What holds a history (objects, references) is copied, plain
files alone, into an empty repository of ours, packs by the way that a fetch takes them in; git reads there, in a child
process with limits and without any configuration. The notebook comes from the branch's tree, not from the checked-out
files, and its time is that of the last commit on the branch that changed it, which the student's machine wrote.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grading.aside import do_aside
from grading.errors import UserError
from grading.files import Unreadable, read_plain_file
from grading.intake.arrived import Arrivals, ArrivedFile, Refusal, RefusedFile
from grading.intake.git_reading import GitTrouble, History, TreeFile, copy_history, find_git, open_history
from grading.intake.names import has_unseen, is_clutter, refuse_twins, wrong_with_path
from grading.intake.platform import is_lab_name
from grading.rebuild.submission import MAX_BYTES

REPOSITORIES = "repositories"
CLONED = "-submissions"
"""`gh classroom clone` calls the folder of all repositories ASSIGNMENT-submissions, and each ASSIGNMENT-ACCOUNT."""

MOST_NOTEBOOKS = 100
"""Of one repository with the lab's name."""


@dataclass(frozen=True)
class Found:
    """A notebook in a repository's branch: its path there, where its bytes lie now, and the seconds of its commit.

    Found("labs/02_float_formats.ipynb", "0.ipynb", 18_233, 1_767_225_600)
    """

    path: str
    kept: str
    size_bytes: int
    seconds: int


@contextlib.contextmanager
def open_repositories(folder: Path, lab: str, branch: str | None, prefix: str | None) -> Iterator[Arrivals]:
    """The lab's notebooks in the repositories of `folder`, as STUDENT/PATH, readable inside the block.

    branch: by default the one that is checked out. prefix: what the folders' names begin with before the student's; by
    default what `gh classroom clone` puts there. Raises UserError where this is no folder or git is not installed.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder", "give the folder that has a repository for each student")
    if find_git() is None:
        raise UserError("the program git is not installed", "install it, or collect a folder without repositories")
    names = sorted(os.listdir(folder))
    start = _prefix(folder, names) if prefix is None else prefix
    arrivals = Arrivals()
    with tempfile.TemporaryDirectory(prefix="collect-") as staging:
        for number, name in enumerate(names):
            path = folder / name
            if is_clutter(name) or (not name.endswith(".ipynb") and not path.is_symlink() and path.is_file()):
                continue
            try:
                arrivals.entries += _entries(path, name, start, lab, branch, Path(staging) / str(number))
            except (Refusal, Unreadable) as error:
                arrivals.refused.append(RefusedFile(name, str(error)))
        yield refuse_twins(arrivals)


def _prefix(folder: Path, names: list[str]) -> str:
    """What `gh classroom clone` puts before each account, where that is how the folders are called."""
    name = folder.resolve().name
    start = f"{name.removesuffix(CLONED)}-" if name.endswith(CLONED) else ""
    return start if any(other.startswith(start) for other in names) else ""


def _entries(path: Path, name: str, prefix: str, lab: str, branch: str | None, staging: Path) -> list[ArrivedFile]:
    """The lab's notebooks in one repository. Raises Refusal or Unreadable where there is none that can be had."""
    if has_unseen(name):
        raise Refusal("its name has invisible characters: rename it")
    if path.is_symlink() or not path.is_dir():
        raise Refusal("it is a link or no folder: a repository is expected for each student")
    if not name.startswith(prefix) or name == prefix:
        raise Refusal(f'its name does not begin with "{prefix}" and a student (--prefix says another)')
    staging.mkdir()
    found = do_aside(name, read_repository, path / ".git", staging, lab, branch)
    student = name.removeprefix(prefix)
    return [
        ArrivedFile(
            f"{student}/{item.path}",
            item.size_bytes,
            _time(item),
            functools.partial(_read, staging / item.kept, staging),
        )
        for item in found
    ]


def read_repository(git: Path, staging: Path, lab: str, branch: str | None) -> list[Found]:
    """Put the lab's notebooks on the branch into `staging`. To be done aside. Raises Refusal where there are none."""
    try:
        with tempfile.TemporaryDirectory(dir=staging) as ours:
            copy_history(git, Path(ours))
            history = open_history(Path(ours))
            commit, named = history.commit(branch)
            files = [file for file in history.files(commit) if is_lab_name(file.path.rpartition("/")[2], lab)]
            files = [file for file in files if not is_clutter(file.path)]
            if not files:
                raise Refusal(f"{named} has no {lab}.ipynb")
            if len(files) > MOST_NOTEBOOKS:
                raise Refusal(f"{named} has {len(files):,} notebooks called {lab}.ipynb")
            return [_keep(history, commit, file, staging / f"{n}.ipynb") for n, file in enumerate(files)]
    except GitTrouble as error:
        raise Refusal(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise Refusal(f"its history cannot be read ({type(error).__name__}): look at it") from error


def _keep(history: History, commit: str, file: TreeFile, target: Path) -> Found:
    """Write one notebook where it can be read later. Raises Refusal or GitTrouble."""
    if wrong := wrong_with_path(file.path):
        raise Refusal(f"in it is {file.path!a}: {wrong}")
    if not file.is_plain:
        raise Refusal(f"in it {file.path} is a link")
    if file.size_bytes > MAX_BYTES:
        raise Refusal(f"in it {file.path} has more than {MAX_BYTES:,} bytes: ask the student to clear its outputs")
    target.write_bytes(history.data(file, MAX_BYTES))
    return Found(file.path, target.name, file.size_bytes, history.changed_at(commit, file))


def _time(item: Found) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromtimestamp(item.seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _read(path: Path, top: Path) -> bytes:
    try:
        return read_plain_file(path, MAX_BYTES, top=top)
    except (Unreadable, OSError) as error:
        raise Refusal(str(error)) from error
