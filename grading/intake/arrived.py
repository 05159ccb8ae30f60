"""What arrived, before anybody knows whose it is: files to be read, and what is refused with the reason.

Plain data; `folder` and `archive` make it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field


class Refusal(Exception):
    """One file or one student is not taken; the message says why and what to do. The rest goes on."""


@dataclass(frozen=True)
class ArrivedFile:
    """A file as it arrived. `path` has "/" between its parts; `when` is in UTC, None where it is not known.

    `read()` gives its bytes, at most as many as a submission may have, and raises Refusal.

        ArrivedFile("Ada Lovelace_4711_assignsubmission_file_/02_float_formats.ipynb", 18_233, when=None, read=…)
    """

    path: str
    size_bytes: int
    when: datetime.datetime | None
    read: Callable[[], bytes]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


@dataclass(frozen=True)
class RefusedFile:
    """A path that is not taken, and why."""

    path: str
    reason: str


@dataclass
class Arrivals:
    """All that one folder or archive holds."""

    entries: list[ArrivedFile] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
