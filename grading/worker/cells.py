"""Run notebook cells in an IPython shell without a kernel, and keep what they print, up to a limit.

Figures and other rich output are dropped: a graded notebook shows text and verdicts.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from grading.worker.protocol.job import MAX_PRINTED, MAX_VALUE, CellEnded
from grading.worker.protocol.trees import MAX_ERROR


class Printed(io.TextIOBase):
    """Keeps the first MAX_PRINTED characters of what is written, and says how many were cut."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._kept = 0
        self._written = 0

    @property
    def encoding(self) -> str:
        return "utf-8"

    def fileno(self) -> int:
        # As in a kernel: what goes to the descriptor itself is not shown.
        return 1

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        room = MAX_PRINTED - self._kept
        self._written += len(text)
        if room > 0:
            self._parts.append(text[:room])
            self._kept += min(room, len(text))
        return len(text)

    def text(self) -> str:
        cut = self._written - self._kept
        return "".join(self._parts) + (f"\n[{cut:,} more characters were cut]" if cut else "")


class _QuietShell(InteractiveShell):
    """A shell for whose figures nobody waits: `%matplotlib inline` is understood and changes nothing."""

    def enable_gui(self, gui: str | None = None) -> None:
        return None

    def system(self, cmd: str) -> None:
        """Run a `!command` and print what it wrote, without the terminal that IPython would open for it."""
        done = subprocess.run(self.var_expand(cmd, depth=1), shell=True, stdin=subprocess.DEVNULL, capture_output=True)
        print((done.stdout + done.stderr).decode(errors="replace"), end="")
        self.user_ns["_exit_code"] = done.returncode


class Shell:
    """The IPython shell of this process: magics and `!commands` are understood, history is not kept.

    There is one at a time. A fork of a process that has one goes on with it.
    """

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "NoColor"
        self._shell = _QuietShell.instance(config=config)
        self._shell.history_manager.enabled = False
        # Tracebacks are ours to write; IPython's own would only be printed and thrown away.
        self._shell.showtraceback = lambda *args, **kwargs: None
        self._shell.showsyntaxerror = lambda *args, **kwargs: None
        # A process here ends without farewell, and its shell writes nothing.
        atexit.unregister(self._shell.atexit_operations)

    def settle(self) -> None:
        """Take the current folder for the home that it began in."""
        here = os.getcwd()
        self._shell.home_dir = self._shell.starting_dir = here
        self._shell.user_ns["_dh"][:] = [Path(here)]

    @property
    def namespace(self) -> dict[str, object]:
        return self._shell.user_ns

    def end(self) -> None:
        """Let go of it and of what it put in the process's place, so that another one begins from nothing."""
        self._shell.restore_sys_module_state()
        _QuietShell.clear_instance()

    def run(self, source: str, value_wanted: bool = False) -> CellEnded:
        """Run a cell: whether it went well, what it printed, the error as "Type: message", the last value's text."""
        printed = Printed()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            hook, sys.displayhook = sys.displayhook, sys.__displayhook__
            try:
                result = self._shell.run_cell(source, store_history=False)
            finally:
                sys.displayhook = hook
        error = result.error_before_exec or result.error_in_exec
        value = repr(result.result)[:MAX_VALUE] if value_wanted and result.result is not None else None
        text = None if error is None else _in_one_line(error)[:MAX_ERROR]
        return CellEnded(error is None, text, printed.text(), value)


def _in_one_line(error: BaseException) -> str:
    """The error, with the line of the cell where Python could not read it."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    return f"{type(error).__name__}: {error}"
