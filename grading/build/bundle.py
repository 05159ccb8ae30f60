"""The archive that students get: notebooks, labkit, what is needed to set them up.

The solutions, the grader with its hidden cases, and the tests stay here, and so does what a cell or a person left in
notebooks/. The same tree gives the same bytes.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from grading import own_labs
from grading.build.compile import build_all, student_files
from grading.build.files import differences, extras
from grading.build.notebook import to_json
from grading.build.source import BadSource
from grading.build.template_text import left_in
from grading.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("labkit", ".make")
FILES = {
    "README.md": "docs/students.md",
    **{name: name for name in ("LICENSE", "Makefile", "pyproject.toml", "environment.yml", "AGENTS.md")},
}
"""By the name in the archive, where each stands here."""
NAME = "efficient-training-labs"
LEFT_OUT = ("__pycache__", ".ipynb_checkpoints", "fourth.json")
"""The last is the capstone's fourth machine, which a course hands out in its last week."""


def make_bundle(out: Path) -> int:
    """Write the archive; returns the number of files in it.

    Raises UserError where it cannot be written, or where notebooks/ is not as the build makes it.
    """
    places = {name: ROOT / source for name, source in FILES.items()}
    missing = [str(path.relative_to(ROOT)) for path in places.values() if not path.exists()]
    if missing:
        raise UserError(f"{', '.join(missing)} is missing", "run this from a full checkout")
    for root, folder in [*((ROOT, folder) for folder in FOLDERS), *((own, "labkit") for own in own_labs.folders())]:
        for path in (root / folder).rglob("*"):
            if path.is_file() and not _left_out(name := path.relative_to(root)):
                places[str(name)] = path
    contents = {name: path.read_bytes() for name, path in places.items()}
    contents |= {f"notebooks/{name}": text.encode() for name, text in _notebooks().items()}
    part = out.with_name(f".{out.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(contents):
                # A fixed date, so that the archive changes only with its contents.
                entry = zipfile.ZipInfo(f"{NAME}/{name}", (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, contents[name])
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"{out} cannot be written", str(error.strerror)) from error
    return len(contents)


def _notebooks() -> dict[str, str]:
    """The students' notebooks, by name. One that was run, or solved, would hand out what students are to find."""
    if unwritten := [line for path in own_labs.sources() for line in left_in(path)]:
        raise UserError("a lab's text is the template's in places", f"write your own: {'; '.join(unwritten)}")
    try:
        wanted = student_files(ROOT, build_all(sorted((ROOT / "solutions").glob("*.py"))))
        own = build_all([path for folder in own_labs.folders() for path in sorted((folder / "solutions").glob("*.py"))])
    except BadSource as error:
        raise UserError(
            f"the sources are refused, {'; '.join(map(str, error.problems))}", "mend them, and run this again"
        ) from error
    if not wanted:
        raise UserError("solutions/ is missing", "run this from a full checkout")
    if found := differences(wanted) + extras(ROOT / "notebooks", wanted):
        reasons = ", ".join(f"{each.path.relative_to(ROOT)} is {each.state}" for each in found)
        raise UserError(reasons, "python -m grading build makes what is stale or missing; move away what is extra")
    texts = {path.name: text for path, text in wanted.items()}
    return texts | {f"{lab.name}.ipynb": to_json(lab.student) for lab in own}


def _left_out(path: Path) -> bool:
    return any(part in LEFT_OUT for part in path.parts)
