"""The control: the same submissions graded by stock nbgrader, each in a sandbox that is thrown away.

The sandbox has its own processes, mounts, network and user; everything that can be written to is a copy in its
memory. Nothing of our grading runs in it: nbgrader executes the notebook, and labkit's own `check` is its test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grading.errors import UserError
from grading.verify import inside_stock
from grading.verify.attacks import MARK, Attack
from grading.verify.classroom import HONEST, REPO, Classroom, open_classroom

LIMIT_S = 120.0
NOBODY = 65534
TEMPLATE = "/tmp/template"
HIDDEN = ("/tmp", "/var/tmp", "/run", "/root", "/home")
CONFIG = """c = get_config()  # noqa: F821
c.CourseDirectory.root = {root!r}
c.ExecutePreprocessor.timeout = 30
"""


def tried_on_stock(attacks: Sequence[Attack]) -> list[Attack]:
    """Those of the table's rows that a sandbox can hold and that say something about nbgrader."""
    return [attack for attack in attacks if attack.row is not None and attack.on_stock]


def run_stock(attacks: Sequence[Attack], at_a_time: int = 2) -> dict[str, str]:
    """What stock nbgrader made of each attack, in words, by the attack's name. Raises UserError without bubblewrap."""
    if shutil.which("bwrap") is None:
        raise UserError("stock nbgrader is tried in a sandbox only", "install bubblewrap, or leave --stock out")
    tried = tried_on_stock(attacks)
    if not tried:
        return {}
    with tempfile.TemporaryDirectory(prefix="grading-stock-") as folder:
        root = Path(folder)
        listening = {name: "9" for name in ("TCP", "UDP", "SOCKET", "ABSTRACT")}
        room = open_classroom(root, tried, listening)
        room.course.config.write_text(CONFIG.format(root=str(room.course.root)))
        subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)
        with ThreadPoolExecutor(at_a_time) as pool:
            outcomes = pool.map(lambda attack: _tried(room, attack), tried)
            return dict(zip((attack.name for attack in tried), outcomes, strict=True))


def _tried(room: Classroom, attack: Attack) -> str:
    lab = room.course.lab(attack.lab)
    student = attack.students[0]
    inside = [sys.executable, "-I", inside_stock.__file__, TEMPLATE, str(room.root), lab, student, HONEST[1]]
    # Two sandboxes run at a time: each ends with its own time, whatever hangs in it.
    try:
        done = subprocess.run(
            [*_sandbox(room), *inside], capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return f"hung for {LIMIT_S:g} s"
    except (ValueError, IndexError):
        return "the batch died"
    return in_words(found, attack.exercise, room.canaries)


def _sandbox(room: Classroom) -> list[str]:
    """The command in front of what runs in a fresh sandbox, as a user without rights."""
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    as_nobody: list[str] = []
    if os.geteuid() == 0:
        # The mounts need root, nothing after them does.
        names = ("pid", "net", "ipc", "uts", "cgroup")
        bwrap = ["bwrap", *(f"--unshare-{name}" for name in names), *bwrap[2:]]
        bwrap += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
        as_nobody += ["--inh-caps=-all", "--bounding-set=-all"]
    hidden = [each for path in HIDDEN for each in ("--perms", "1777", "--tmpfs", path)]
    # The repository and its environment may lie under one of the folders that are hidden.
    needed = [str(path) for path in (REPO, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())]
    above = [str(parent) for path in needed for parent in reversed(Path(path).parents) if _is_hidden(parent)]
    shown = [each for path in dict.fromkeys(above) for each in ("--perms", "0755", "--dir", path)]
    shown += [each for path in dict.fromkeys(needed) for each in ("--ro-bind", path, path)]
    variables = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
        "HOME": f"{room.root}/home",
        "SECRET": room.environment["SECRET"],
    }
    return [
        *bwrap,
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *hidden,
        *shown,
        *("--ro-bind", str(room.root), TEMPLATE, "--chdir", "/tmp"),
        *(each for name, value in variables.items() for each in ("--setenv", name, value)),
        *as_nobody,
    ]


def _is_hidden(path: Path) -> bool:
    return any(Path(top) in path.parents for top in HIDDEN)


def in_words(found: Mapping, exercise: str, canaries: Mapping[str, str]) -> str:
    """What came of an attack: its points, what it learned, and what became of the honest student after it."""
    scores, honest, text = found["attacker"], found["honest"], found["text"]
    check = f"{exercise}-check"
    if scores is None:
        parts = ["no grade"]
    else:
        got, most = scores.get(check, (0.0, 1.0))
        # Stock nbgrader gives no extra credit, so there is nothing to earn with an optional exercise.
        parts = [("full marks" if got == most else f"{got:g} of {most:g}") if most else "no points to earn"]
    leaked = [what for what, canary in canaries.items() if canary in text]
    parts += [f"read {what}" for what in leaked[:2]]
    if not leaked and MARK in text:
        parts.append("reached what it was after")
    if honest is None:
        parts.append("the honest student has no grade")
    elif any(got != most for got, most in honest.values()):
        parts.append("the honest student's grade is wrong")
    return ", ".join(parts)
