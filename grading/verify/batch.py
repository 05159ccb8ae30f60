"""Grade a class full of attacks under one tier, and say of each how it ended, what it earned and what it damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grading.nbgrader_api import open_api
from grading.report.formats import FORMATS
from grading.results import read_ungraded
from grading.supervisor import SubmissionResult
from grading.verify.attacks import Attack
from grading.verify.classroom import COMPANION, REPO, Classroom, ClassroomSubmission, open_classroom
from grading.verify.probes import grades, leftovers, listeners, outputs, pages, trees

LIMIT_S = 1500.0
PAGE = "page"
"""The probe that has a feedback page made; for few attacks, because each takes a second."""

BATCH = "(the batch)"
MOST_PROCESSES, MOST_BYTES = 400, 5 * 2**30
"""What one submission may make of processes and memory at its worst, with the grader's own and the machine's noise."""


@dataclass(frozen=True)
class AttackOutcome:
    """How one attack ended under one tier. points is the share of its exercise; damage is empty when all is well.

    last_line: of its output, which shows what stopped it. slow: that it took longer than it may, in words,
    which is no breach: on a busy machine everything does.
    """

    attack: str
    outcome: str
    points: float
    damage: tuple[str, ...]
    wall_s: float | None = None
    last_line: str = ""
    slow: str = ""

    @property
    def is_breach(self) -> bool:
        return bool(self.damage)


@dataclass(frozen=True)
class Batch:
    """One tier's outcomes, the batch's own first, and what the whole of it took."""

    tier: str
    outcomes: tuple[AttackOutcome, ...]
    wall_s: float
    most_processes: int
    memory_bytes: int

    @property
    def breaches(self) -> list[AttackOutcome]:
        return [outcome for outcome in self.outcomes if outcome.is_breach]


def run_batch(attacks: Sequence[Attack], tier: str, root: Path, workers: int = 2) -> Batch:
    """Hand in, grade and look at the damage, all in the empty folder `root`."""
    damage: dict[str, list[str]] = defaultdict(list)
    with listeners.Listeners(root) as listening:
        room = open_classroom(root, attacks, listening.places)
        paths = sysconfig.get_paths()
        # One folder has both kinds of packages, as a rule.
        shared = [REPO, room.home, *(Path(path) for path in {paths[name] for name in ("stdlib", "purelib", "platlib")})]
        guarded = [room.course.root / name for name in ("release", "source", "submitted", "nbgrader_config.py")]
        guarded += [room.course.root / ".grading" / "course.key", room.home / ".ssh", room.home / ".bashrc"]
        own, stamps = trees.digests(guarded), trees.stamps(shared)
        reports = [_grade(room, lab, tier, workers) for lab in dict.fromkeys(item.lab for item in room.handins)]
        for text in trees.changes(own, trees.digests(guarded)):
            _charge(damage, attacks, "files", text)
        for text, content in trees.carrying(stamps, trees.stamps(shared), room.token):
            _charge(damage, attacks, "files", text, content)
    for over, text in listening.heard:
        _charge(damage, attacks, "packets", f"a packet arrived over {over}", text)
    for text in [*leftovers.left_over(room.token, (root,)), *leftovers.left_in(room.temporary)]:
        _charge(damage, attacks, "leftovers", text, text)
    for probe, text, content in _published(room):
        _charge(damage, attacks, probe, text, content)
    _charge_reports(damage, attacks, reports, workers)
    outcomes = _outcomes(room, attacks, damage)
    batch = AttackOutcome(BATCH, "", 0.0, tuple(damage.pop(BATCH, [])))
    return Batch(
        tier,
        (batch, *outcomes),
        sum(report["wall_s"] for report in reports),
        max(report["most_processes"] for report in reports),
        max(report["memory_bytes"] for report in reports),
    )


def _charge_reports(
    damage: dict[str, list[str]], attacks: Sequence[Attack], reports: Sequence[dict], workers: int
) -> None:
    """What the launcher saw of each command that graded."""
    for report in reports:
        for text in report["survivors"]:
            _charge(damage, attacks, "processes", f"still alive: {text}", text)
        if report["most_processes"] > workers * MOST_PROCESSES:
            _charge(damage, attacks, "crowd", f"there were {report['most_processes']} processes at a time")
        if report["memory_bytes"] > workers * MOST_BYTES:
            _charge(damage, attacks, "memory", f"{report['memory_bytes'] / 2**30:.1f} GiB of the machine were gone")
        if report["stopped_for"]:
            _charge(damage, attacks, "grader", f"grading had to be stopped: {report['stopped_for']}")
        elif report["exit_code"] not in (0, 1):
            _charge(damage, attacks, "grader", f"the grader ended with exit code {report['exit_code']}")


def _charge(damage: dict[str, list[str]], attacks: Sequence[Attack], probe: str, text: str, content: str = "") -> None:
    """To the attacks whose name stands in it, else to those that are after this, else to the batch."""
    named = [attack.name for attack in attacks if f"-{attack.name}" in content]
    after = [attack.name for attack in attacks if probe in attack.damage]
    for name in named[-1:] or after or [BATCH]:
        damage[name].append(text)


def _grade(room: Classroom, lab: str, tier: str, workers: int) -> dict:
    """`python -m grading grade`, as an instructor would type it, in an environment that holds a secret."""
    report = room.root / f"report-{lab}.json"
    command = [sys.executable, "-m", "grading", "grade", str(room.course.root), lab, "--workers", str(workers)]
    command += ["--isolation", tier]
    launcher = [sys.executable, "-m", "grading.verify.launcher", str(report), str(LIMIT_S), *command]
    with (room.root / f"grade-{lab}.log").open("wb") as log:
        subprocess.run(
            launcher, cwd=REPO, env=_environment(room), stdout=log, stderr=log, check=True, timeout=2 * LIMIT_S
        )
    return json.loads(report.read_text())


def _published(room: Classroom) -> Iterator[tuple[str, str, str]]:
    """What the instructor sees of the class: probe, text and what it is about, for what is wrong with it."""
    folder, page = str(room.course.root), room.root / "report.html"
    tables = {name: room.root / f"grades.{name}" for name in FORMATS}
    commands = [["export", folder, "--format", name, "--out", str(table)] for name, table in tables.items()]
    _run(room, "published", [*commands, ["report", folder, "--out", str(page)]])
    for table in tables.values():
        yield from (("table", text, "") for text in (pages.formulas_in(table) if table.is_file() else ["no table"]))
        yield from _escapes("table", table)
    yield from (("page", text, "") for text in (pages.active_in(page, room.token) if page.is_file() else ["no report"]))
    yield from _escapes("page", page)
    for log in (*sorted(room.root.glob("*.log")), room.course.root / ".grading" / "nbgrader.log"):
        yield from _escapes("terminal", log)


def _escapes(probe: str, path: Path) -> Iterator[tuple[str, str, str]]:
    if path.is_file() and pages.escapes_in(path.read_text(errors="replace")):
        yield probe, f"{path.name} would steer a terminal", ""


def _run(room: Classroom, name: str, commands: Sequence[Sequence[str]]) -> None:
    """Some of our commands, as an instructor would type them; what they print is kept.

    One process does them all: to load what they need takes each longer than what it does.
    """
    program = f"from grading.__main__ import main\nfor words in {commands!r}: main(words)"
    with (room.root / f"{name}.log").open("wb") as log:
        whole = [sys.executable, "-c", program]
        subprocess.run(whole, cwd=REPO, env=_environment(room), stdout=log, stderr=log, check=False, timeout=LIMIT_S)


def _environment(room: Classroom) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return {**kept, **room.environment}


def _outcomes(room: Classroom, attacks: Sequence[Attack], damage: dict[str, list[str]]) -> list[AttackOutcome]:
    course = room.course
    found: dict[str, list[AttackOutcome]] = defaultdict(list)
    _make_pages(room)
    for lab in dict.fromkeys(item.lab for item in room.handins):
        results, scores = outputs.results_of(course, lab), grades.scores(course, lab)
        ungraded = read_ungraded(course, lab)
        full = {cell.id: cell.worth for cell in course.template(lab).exercises}
        for handin in (item for item in room.handins if item.lab == lab):
            got = scores.get(handin.student, {})
            if handin.attack is None:
                earned = {
                    cell: points if cell.removesuffix("-check") in handin.solved else 0.0
                    for cell, points in full.items()
                }
                damage[BATCH] += [
                    f"{handin.student} got {got.get(cell, 0):g} of {points:g} points for {cell}"
                    for cell, points in earned.items()
                    if got.get(cell, 0.0) != points
                ]
                continue
            result = results.get(handin.student)
            reason = ungraded.get(handin.student)
            found[handin.attack.name].append(_outcome(room, handin, result, got, full, reason))
        strange = set(scores) - {item.student for item in room.handins if item.lab == lab}
        damage[BATCH] += [f"the gradebook has grades of {name}, who handed nothing in" for name in sorted(strange)]
    return [_together(attack, found[attack.name], damage.get(attack.name, [])) for attack in attacks]


def _outcome(
    room: Classroom,
    handin: ClassroomSubmission,
    result: SubmissionResult | None,
    got: dict[str, float],
    full: dict[str, float],
    reason: dict[str, str] | None,
) -> AttackOutcome:
    """What one submission came to."""
    attack, check = handin.attack, f"{handin.attack.exercise}-check"
    points = got.get(check, 0.0) / full[check]
    kept = outputs.kept_of(room.course, handin.lab, handin.student, result)
    wrong = [*outputs.secrets_in(kept, room.canaries), *outputs.too_much(kept)]
    wrong += _wrong_page(room, handin) if PAGE in attack.damage else []
    slow, wall_s, last_line = "", None, (reason or {}).get("reason", "")
    if result is not None and reason is None:
        outcome = result.exercises[attack.exercise].outcome
        wall_s = result.usage.get("wall_s")
        wrong += [f"reached: {text}" for text in outputs.breaches_in(result)]
        last_line = _last_line(result, attack.exercise)
        if abs(points - result.exercises[attack.exercise].score) > 1e-9:
            wrong.append(f"the gradebook says {points:g}, the grader {result.exercises[attack.exercise].score:g}")
        companion = COMPANION.get(attack.lab)
        if companion and got.get(f"{companion}-check") != full[f"{companion}-check"]:
            wrong.append(f"{companion}, which is right, got no full marks")
    else:
        outcome = (reason or {}).get("outcome", "no grade and no reason")
    allowed = (*attack.outcomes, *(("passed",) if attack.earns == 1 else ()))
    if outcome not in allowed:
        wrong.append(f'it ended as "{outcome}", not as {" or ".join(allowed)}')
    if not attack.least <= points <= attack.earns:
        wrong.append(f"it earned {points:g} of its points, not {attack.least:g} to {attack.earns:g}")
    if wall_s is not None and wall_s > attack.within_s:
        slow = f"it took {wall_s:.0f} s, more than {attack.within_s:g}"
    return AttackOutcome(attack.name, outcome, points, tuple(wrong), wall_s, last_line, slow)


def _last_line(result: SubmissionResult, exercise: str) -> str:
    errors = [cell.error for name, cell in result.cells.items() if cell.error and "added" in name]
    rows = [text for label, text in result.exercises[exercise].deciding.rows if label in ("problem", "error")]
    return (errors or rows or [result.exercises[exercise].deciding.headline])[0].splitlines()[0][:120]


def _wrong_page(room: Classroom, handin: ClassroomSubmission) -> list[str]:
    page = room.course.feedback(handin.lab, handin.student)
    if not page.is_file():
        return []
    hidden = [f"{page.name}: shows what the hidden cases were"] if f"{handin.token}-hidden" in page.read_text() else []
    return [*pages.active_in(page, handin.token), *hidden]


def _make_pages(room: Classroom) -> None:
    api = open_api(room.course)
    wanted = [item for item in room.handins if item.attack and PAGE in item.attack.damage]
    for handin in wanted:
        if room.course.autograded(handin.lab, handin.student).is_file():
            api.generate_feedback(handin.lab, handin.student, force=True)


def _together(attack: Attack, parts: Sequence[AttackOutcome], charged: Sequence[str]) -> AttackOutcome:
    """The two halves of a pair as one, and with them what the batch's probes found."""
    worst = max(parts, key=lambda part: (part.is_breach, part.points))
    damage = tuple(dict.fromkeys([*(text for part in parts for text in part.damage), *charged]))
    slow = next((part.slow for part in parts if part.slow), "")
    return AttackOutcome(attack.name, worst.outcome, worst.points, damage, worst.wall_s, worst.last_line, slow)


__all__ = ["BATCH", "AttackOutcome", "Batch", "run_batch"]
