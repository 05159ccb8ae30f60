"""Read the history of a repository that a stranger made: its objects and references, copied away from the rest of it.

Nothing of the stranger's is run or heeded: no configuration, hook, filter, alternate, graft or replaced object, and
nothing is fetched. Whose repository it is, and what is wanted of it, is not known here.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grading.files import Unreadable, open_plain_file

MAX_COPIED_BYTES = 512 * 2**20
MAX_COPIED_FILES = 50_000
MAX_LISTING_BYTES = 16 * 2**20
WALL_S = 120

_HASH = "[0-9a-f]{40}|[0-9a-f]{64}"
_LOOSE = re.compile(r"objects/[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})")
_PACK = re.compile(rf"objects/pack/pack-(?:{_HASH})\.pack")
_REFERENCE = re.compile(r"refs/(?:heads|remotes)/.+|packed-refs|HEAD|shallow")
_HEAD = re.compile(rf"ref: refs/heads/(?P<branch>[^\s~^:?*\[\\]+)\n?|(?:{_HASH})\n?")
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
_CONFIG_256 = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"


class GitTrouble(Exception):
    """What git cannot read, or what is not taken; the message says why."""


@dataclass(frozen=True)
class TreeFile:
    """A file of a commit's tree; not plain is a link.

    TreeFile("labs/02_float_formats.ipynb", "3b18e512dba79e4c8300dd08aeb37f8e728b8dad", 18_233, is_plain=True)
    """

    path: str
    digest: str
    size_bytes: int
    is_plain: bool


def find_git() -> str | None:
    """The program, if it is installed."""
    return shutil.which("git")


def copy_history(git: Path, ours: Path) -> None:
    """Make `ours` a bare repository with the objects and references of the folder `git` and nothing else of it.

    Raises GitTrouble where that is no repository's folder, or holds too much.
    """
    try:
        top = os.open(git, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        text = "it is no repository of its own: its .git is missing, a link, or leads elsewhere"
        raise GitTrouble(f"{text} (clone it again)") from error
    left_bytes, left_files = MAX_COPIED_BYTES, MAX_COPIED_FILES
    try:
        for path, folder in _plain_files(top):
            if not any(kind.fullmatch(path) for kind in (_LOOSE, _PACK, _REFERENCE)):
                continue
            left_files -= 1
            left_bytes -= _copy(path, folder, ours / path, left_bytes)
            if left_files < 0 or left_bytes < 0:
                most = f"{MAX_COPIED_FILES:,} files or {MAX_COPIED_BYTES // 2**20} MiB"
                raise GitTrouble(f"its history has more than {most}: copy the notebook out of it yourself")
    except RecursionError as error:
        raise GitTrouble("its .git has folders too deep to be looked through") from error
    finally:
        os.close(top)


def _plain_files(top: int) -> Iterator[tuple[str, int]]:
    """The plain files of what holds a history, each with a descriptor of its folder; no link is followed."""
    for name in ("HEAD", "packed-refs", "shallow"):
        if _is(stat.S_ISREG, name, top):
            yield name, top
    for room in ("objects", "refs"):
        if not _is(stat.S_ISDIR, room, top):
            continue
        for folder, _, names, descriptor in os.fwalk(room, dir_fd=top, follow_symlinks=False):
            for name in sorted(names):
                if _is(stat.S_ISREG, name, descriptor):
                    yield f"{folder}/{name}", descriptor


def _is(kind: Callable[[int], bool], name: str, folder: int) -> bool:
    try:
        return kind(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _copy(path: str, folder: int, target: Path, most_bytes: int) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source = open_plain_file(Path(path.rpartition("/")[2]), folder)
    except (Unreadable, OSError) as error:
        raise GitTrouble(f"its .git/{path} cannot be read: clone it again") from error
    n_bytes = 0
    with source, target.open("wb") as file:
        while n_bytes <= most_bytes and (chunk := source.read(2**20)):
            file.write(chunk)
            n_bytes += len(chunk)
    return n_bytes


def open_history(ours: Path) -> History:
    """The history that was copied into `ours`. Raises GitTrouble where its packs are damaged."""
    for room in ("objects/pack", "objects/info", "refs/heads"):
        (ours / room).mkdir(parents=True, exist_ok=True)
    packs = sorted((ours / "objects" / "pack").glob("*.pack"))
    is_256 = any(len(pack.stem) > 60 for pack in packs) or any((ours / "objects").glob("??/" + "?" * 62))
    (ours / "config").write_text(_CONFIG_256 if is_256 else _CONFIG)
    head = ours / "HEAD"
    text = head.read_text(errors="replace")[:1000] if head.is_file() else ""
    if not _HEAD.fullmatch(text):
        raise GitTrouble("it is no whole repository: its HEAD is missing or none (clone it again)")
    history = History(ours, _HEAD.fullmatch(text)["branch"])
    for pack in packs:
        # It looks at every object, as a fetch does; an index that came along could say anything.
        history.run("index-pack", "--threads=1", str(pack))
    return history


@dataclass(frozen=True)
class History:
    """A bare repository of ours; `head` is the branch that was checked out, None for none."""

    folder: Path
    head: str | None

    def commit(self, branch: str | None) -> tuple[str, str]:
        """The commit at the end of this branch, of the student's or of where it was cloned from, and what to call it.

        None: the one that was checked out. Raises GitTrouble where there is none.
        """
        if branch is None:
            named = f"the branch {self.head}" if self.head else "the commit that is checked out"
            tries = ["HEAD"]
        else:
            named = f"the branch {branch}"
            # What was fetched last; a branch of the clone's own may stand behind it.
            tries = [f"refs/remotes/origin/{branch}", f"refs/heads/{branch}"]
        for name in tries:
            found = self.run(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", may_fail=True
            )
            if re.fullmatch(_HASH, digest := found.decode().strip()):
                return digest, named
        raise GitTrouble(f"{named} has no commit in it, or does not exist (--branch names another)")

    def files(self, commit: str) -> list[TreeFile]:
        """All files and links of a commit's tree."""
        listing = self.run("ls-tree", "-r", "-z", "-l", "--full-tree", commit).decode(errors="surrogateescape")
        found = []
        for line in filter(None, listing.split("\0")):
            facts, _, path = line.partition("\t")
            mode, kind, digest, size = facts.split()
            if kind == "blob":
                found.append(TreeFile(path, digest, int(size), mode.startswith("100")))
        return found

    def data(self, file: TreeFile, most_bytes: int) -> bytes:
        """Its bytes as they were committed."""
        return self.run("cat-file", "blob", file.digest, most_bytes=most_bytes)

    def changed_at(self, commit: str, file: TreeFile) -> int:
        """When the last commit up to this one that changed the file was made, in seconds since 1970."""
        path = f":(top,literal){file.path}"
        text = self.run("log", "-1", "--format=%ct", "--no-show-signature", "--no-renames", commit, "--", path)
        if not re.fullmatch(rb"-?[0-9]{1,18}\n", text):
            raise GitTrouble(f"no commit says when {file.path} was changed")
        return int(text)

    def run(self, *words: str, most_bytes: int = MAX_LISTING_BYTES, may_fail: bool = False) -> bytes:
        """What git prints. Raises GitTrouble where it fails, prints more, or takes too long."""
        with subprocess.Popen(
            [find_git() or "git", "--no-pager", *words],
            cwd=self.folder,
            env=_environment(self.folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                data = process.stdout.read(most_bytes + 1)
                if len(data) > most_bytes:
                    raise GitTrouble(f"git {words[0]} gives more than {most_bytes:,} bytes: look at the repository")
                code = process.wait(WALL_S)
            except subprocess.TimeoutExpired as error:
                raise GitTrouble(f"git {words[0]} takes more than {WALL_S} s: look at the repository") from error
            finally:
                process.kill()
        if code and not may_fail:
            raise GitTrouble(f"git {words[0]} cannot read its history, or needs too much for it: clone it again")
        return data


def _environment(folder: Path) -> dict[str, str]:
    """Git's, with no configuration but the one that stands in `folder`, and nothing that leads out of it."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "TZ": "UTC",
        "HOME": str(folder),
        "GIT_DIR": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
    }
