"""Archives made by hand: members with any name, mode or method of compression."""

from __future__ import annotations

import contextlib
import zipfile
from pathlib import Path

from tests.grading.deliveries import book

GOOD = book("# good")


def make_zip(path: Path, members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            with contextlib.suppress(UserWarning):
                file.writestr(name, data)
    return path


def with_mode(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def with_method(name: str, method: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = method
    return info
