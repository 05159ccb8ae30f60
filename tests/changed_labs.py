"""The labs that `make test` tries in full: those that differ from the last release, or one in rotation.

The last release is the newest tag such as v0.1.0 on the way here. A lab's files are found by their path: its folders in
labkit and grading, its source, its notebook, its answers in tests. What all labs share names no lab: where only that
has changed, or where there is no release, one lab is tried in turn, picked by the commit and not by a clock.

Nothing is decided from what the files say.
"""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
OWN = [Path(folder) for folder in os.environ.get("LABS_OWN", "").split(os.pathsep) if folder]
LABS = tuple(sorted(path.name[:2] for root in (REPO, *OWN) for path in (root / "solutions").glob("[0-9][0-9]_*.py")))
"""Those of this repository, and of folders that are in use beside it (`grading.own_labs`)."""
MOST_IN_FULL = 2
"""More labs than this would take `make test` beyond its ten minutes; what is left out is said."""

_OF_A_LAB = re.compile(
    r"(?:^|[/_])lab(?P<room>\d\d)(?=[/_.])|^(?:solutions|notebooks|tests/wrong|tests/right)/(?P<file>\d\d)[_-]"
)


@dataclass(frozen=True)
class LabsInFull:
    """labs: two digits each, such as "05". why: in words."""

    labs: list[str]
    why: str

    def in_words(self) -> str:
        return f"{', '.join(self.labs) or 'none'} ({self.why})"


def lab_of(path: str) -> str:
    """The lab that a path below the repository's root belongs to: "05", or "" for what no lab or several labs own.

    >>> lab_of("labkit/exercises/lab05/offload.py"), lab_of("tests/wrong/05-offload/no_wait.py"), lab_of("labkit/spec")
    ('05', '05', '')
    """
    found = _OF_A_LAB.search(path)
    lab = (found["room"] or found["file"]) if found else ""
    return lab if lab in LABS else ""


def labs_in_full(repo: Path = REPO) -> LabsInFull:
    """Never raises: a folder without git, or without a release, is tried in rotation."""
    release = git_output(repo, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").strip()
    if not release:
        return _in_rotation(repo, "no release to compare with")
    last_first = git_output(repo, "ls-files", "--others", "--exclude-standard").split("\n")
    last_first += git_output(repo, "diff", "--name-only", "HEAD").split("\n")
    last_first += git_output(repo, "log", "--format=", "--name-only", f"{release}..HEAD").split("\n")
    # What was changed and changed back differs no longer.
    differs = {lab_of(path) for path in git_output(repo, "diff", "--name-only", release).split("\n")}
    differs |= {lab_of(path) for path in git_output(repo, "ls-files", "--others", "--exclude-standard").split("\n")}
    changed = [lab for lab in dict.fromkeys(map(lab_of, last_first)) if lab and lab in differs]
    if not changed:
        return _in_rotation(repo, f"no lab differs from {release}")
    why = f"changed since {release}"
    if more := changed[MOST_IN_FULL:]:
        why += f", like {', '.join(sorted(more))}, whose turn is in make test-all"
    return LabsInFull(sorted(changed[:MOST_IN_FULL]), why)


def _in_rotation(repo: Path, reason: str) -> LabsInFull:
    if commit := git_output(repo, "rev-parse", "HEAD").strip():
        turn = int(commit[:8], 16)
    else:
        changelog = repo / "CHANGELOG.md"
        turn = zlib.crc32(changelog.read_bytes() if changelog.exists() else b"")
    return LabsInFull([LABS[turn % len(LABS)]], f"in rotation: {reason}")


def git_output(repo: Path, *arguments: str) -> str:
    """What git prints, or "" where it fails: no git, no history, no tag."""
    try:
        done = subprocess.run(["git", "-C", str(repo), *arguments], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
