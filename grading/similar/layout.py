"""Write the answers of a class as files, a folder for each exercise, as JPlag and Dolos read them.

02-decode/submissions/ada/02-decode.py    one folder a student, as JPlag wants it
02-decode/base/02-decode.py               what was given: JPlag's base code, what Dolos ignores
02-decode/info.csv                        the same files by name, as Dolos wants them

java -jar jplag.jar -l python3 02-decode/submissions -bc 02-decode/base
dolos run -l python -i 02-decode/base/02-decode.py 02-decode/info.csv
"""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

from grading.errors import UserError
from grading.files import write_output
from grading.similar.programs import SUFFIXES, Answers, ClassAnswers

INFO_COLUMNS = ("filename", "full_name")


def write_layout(found: ClassAnswers, out: Path) -> int:
    """Write it into a folder that is not there yet; returns how many answers. Raises UserError; then there is none."""
    if out.exists():
        raise UserError(f"{out} is there already", "remove it, or choose another place with --out")
    try:
        return sum(_write(answers, out / answers.exercise) for answers in found.exercises)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def _write(answers: Answers, folder: Path) -> int:
    write_output(folder / "base" / _name(answers, answers.base.language), answers.base.text)
    rows = []
    for student, program in sorted(answers.by_student.items()):
        path = Path("submissions") / student / _name(answers, program.language)
        write_output(folder / path, program.text)
        rows.append((path.as_posix(), student))
    file = io.StringIO(newline="")
    csv.writer(file).writerows([INFO_COLUMNS, *rows])
    write_output(folder / "info.csv", file.getvalue())
    return len(rows)


def _name(answers: Answers, language: str) -> str:
    return f"{answers.exercise}{SUFFIXES[language]}"
