"""The most memory of its own that a process is seen to hold, looked at again and again while it runs.

The kernel's record of a peak counts pages of files as well. So a process can read a library into its memory before the
record begins, let go of it afterwards, and take as much for itself: the record shows no growth. What it holds of its
own is counted apart, but without a record of its peak. What is held for less than a look's pause may go unseen.
"""

from __future__ import annotations

import threading

from grading.worker.procfs import memory_of

LOOK_S = 0.01


class OwnPeak:
    """Looks from now on until `stop`, or until the process is gone."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak_bytes = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="own peak", daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """The most that was seen, in bytes; stopping again changes nothing."""
        self._stopped.set()
        self._thread.join()
        return self._peak_bytes

    def _look(self) -> None:
        while own_bytes := memory_of(self._pid).resident_bytes:
            self._peak_bytes = max(self._peak_bytes, own_bytes)
            if self._stopped.wait(LOOK_S):
                return
