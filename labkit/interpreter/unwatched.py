"""Launches that no meter is told of: those by which an autotuner tries its configurations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

LISTENERS, PROFILES, WRITTEN = "_labkit_listeners", "_labkit_profiles", "_labkit_written"
"""What meters hang into Triton's interpreter, as lists: who is told of a launch, what it is added to."""


@contextmanager
def unwatched() -> Iterator[None]:
    """In the block, meters are not told of launches; they are run, and guarded, as ever."""
    module = sys.modules["triton.runtime.interpreter"]
    before = {name: getattr(module, name) for name in (LISTENERS, PROFILES, WRITTEN) if hasattr(module, name)}
    try:
        for name in before:
            setattr(module, name, [])
        yield
    finally:
        for name, watchers in before.items():
            setattr(module, name, watchers)
