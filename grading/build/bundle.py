"""The archive that students get: notebooks, labkit, what is needed to set them up.

The solutions, the grader with its hidden cases, and the tests stay here, and so does what a cell or a person left in
notebooks/. The same tree gives the same bytes.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from grading.build.compile import build_all, student_files
from grading.build.files import differences, extras
from grading.build.source import BadSource
from grading.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("labkit", ".make")
FILES = ("README.md", "LICENSE", "Makefile", "pyproject.toml", "environment.yml", "AGENTS.md")
NAME = "efficient-training-labs"
LEFT_OUT = ("__pycache__", ".ipynb_checkpoints")


def make_bundle(out: Path) -> int:
    """Write the archive; returns the number of files in it.

    Raises UserError where it cannot be written, or where notebooks/ is not as the build makes it.
    """
    paths = [*_notebooks(), *(ROOT / name for name in FILES)]
    for folder in FOLDERS:
        paths += [path for path in (ROOT / folder).rglob("*") if path.is_file() and not _left_out(path)]
    missing = [str(path.relative_to(ROOT)) for path in paths if not path.exists()]
    if missing:
        raise UserError(f"{', '.join(missing)} is missing", "run this from a full checkout")
    part = out.with_name(f".{out.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(paths):
                # A fixed date, so that the archive changes only with its contents.
                entry = zipfile.ZipInfo(f"{NAME}/{path.relative_to(ROOT)}", (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes())
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"{out} cannot be written", str(error.strerror)) from error
    return len(paths)


def _notebooks() -> list[Path]:
    """The students' notebooks. One that was run, or solved, would hand out what students are to find."""
    try:
        wanted = student_files(ROOT, build_all(sorted((ROOT / "solutions").glob("*.py"))))
    except BadSource as error:
        raise UserError(
            f"the sources are refused, {'; '.join(map(str, error.problems))}", "mend them, and run this again"
        ) from error
    if not wanted:
        raise UserError("solutions/ is missing", "run this from a full checkout")
    if found := differences(wanted) + extras(ROOT / "notebooks", wanted):
        reasons = ", ".join(f"{each.path.relative_to(ROOT)} is {each.state}" for each in found)
        raise UserError(reasons, "python -m grading build makes what is stale or missing; move away what is extra")
    return list(wanted)


def _left_out(path: Path) -> bool:
    return any(part in LEFT_OUT for part in path.relative_to(ROOT).parts)
