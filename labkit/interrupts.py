"""End a thread of this process that does not end by itself: an exception arrives at its next line of Python.

Nothing ends a thread that swallows it, or that stays in compiled code.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable


def interrupt(thread: threading.Thread, kind: type[BaseException], has_ended: Callable[[float], bool]) -> bool:
    """Raise `kind` in the thread, up to three times; whether it has ended.

    has_ended: waits for so many seconds, and says whether what the thread belongs to is over.
    """
    for _ in range(3):
        if thread.ident is not None and not has_ended(0.0):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(kind))
        if has_ended(0.1):
            return True
    return False
