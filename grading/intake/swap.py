"""Put a folder in the place of another, so that at every moment there is a whole one.

Both lie in the same folder. What is in them is not looked at.
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

AT_FDCWD = -100
RENAME_EXCHANGE = 2
NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""The kernel or the file system cannot exchange two names."""


def swap_folder(draft: Path, target: Path) -> None:
    """Afterwards the draft is at `target`, and what was there, if anything, is at `draft`. Raises OSError."""
    if not os.path.lexists(target):
        draft.rename(target)
        return
    if _exchange(draft, target):
        return
    aside = draft.with_name(f"{draft.name}-aside")
    target.rename(aside)
    try:
        draft.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    aside.rename(draft)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where this system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), str(one))
