"""Runs in the sandbox: copy the course, let stock nbgrader grade the attacker and then an honest student, and report.

Imports nothing of this repository. The last line of its output is JSON: {"attacker": {cell: [score, most]} or null,
"honest": the same, "text": all outputs in the attacker's graded notebook}.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

LIMIT_S = 50.0
MAX_TEXT = 2_000_000


def main(template: str, root: str, lab: str, attacker: str, honest: str) -> None:
    # Links are copied as links; what cannot be copied is left out, as it would be by a learning platform.
    subprocess.run(["cp", "-a", "--no-preserve=ownership", f"{template}/.", f"{root}/"], check=False)
    course = Path(root, "course")
    for student in (attacker, honest):
        command = [sys.executable, "-m", "nbgrader", "autograde", lab, "--student", student, "--force", "--create"]
        try:
            subprocess.run(command, cwd=course, timeout=LIMIT_S, capture_output=True, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            continue
    text = _outputs(course / "autograded" / attacker / lab)
    report = {"attacker": _scores(course, lab, attacker), "honest": _scores(course, lab, honest), "text": text}
    sys.stdout.write("\n" + json.dumps(report) + "\n")


def _outputs(folder: Path) -> str:
    parts = []
    for path in sorted(folder.rglob("*")):
        try:
            if path.suffix == ".ipynb":
                cells = json.loads(path.read_text())["cells"]
                parts += [json.dumps(cell["outputs"])[:MAX_TEXT] for cell in cells if cell.get("outputs")]
            elif path.is_file():
                parts.append(path.read_text(errors="replace")[:MAX_TEXT])
        except (OSError, ValueError, KeyError):
            continue
    return "\n".join(parts)[: 2 * MAX_TEXT]


def _scores(course: Path, lab: str, student: str) -> dict[str, list[float]] | None:
    """The points in the gradebook and their maxima; None where there is no graded notebook."""
    if not (course / "autograded" / student / lab / f"{lab}.ipynb").is_file():
        return None
    question = """
        select base_cell.name, coalesce(grade.manual_score, grade.auto_score, 0), grade_cells.max_score
        from grade join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        join base_cell on grade.cell_id = base_cell.id join grade_cells on grade_cells.id = base_cell.id
        where submitted_assignment.student_id = ? and base_cell.name like '%-check'
    """
    try:
        with sqlite3.connect(course / "gradebook.db") as database:
            return {name: [score, most] for name, score, most in database.execute(question, (student,))}
    except sqlite3.Error:
        return None


if __name__ == "__main__":
    main(*sys.argv[1:])
