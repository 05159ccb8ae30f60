"""One line of the environment page as data. What is looked at is in `machine` and `packages`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "red"]


@dataclass(frozen=True)
class EnvFinding:
    """state: "ok"; "note" where something optional is missing; "red" where the labs will not work as it is.

        EnvFinding("Memory", "note", "4 GiB: enough if you close other programs")

    value holds nothing that changes between two looks at the same machine. fix is one command, or what to do.
    """

    name: str
    state: State
    value: str
    fix: str | None = None


Probe = Callable[[], EnvFinding]
