"""Write a report's file whole or not at all, and say in a line why it could not be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from grading.errors import UserError


def write_file(path: Path, text: str) -> None:
    """Replace a file by this text in UTF-8. Raises UserError; then what was there before is still there."""
    # A folder's name may hold bytes that are no text; they are spelled out.
    data = text.encode("utf-8", "backslashreplace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Readable by its owner alone, as mkstemp makes it: these are grades.
        descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror})", "choose another place with --out") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException as error:
        os.unlink(part)
        if isinstance(error, OSError):
            problem = f"{path} cannot be written ({error.strerror})"
            raise UserError(problem, "choose another place with --out") from error
        raise
