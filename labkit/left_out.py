"""A cell that meets a blank answer is left out: one line stands in place of its traceback, and the notebook runs on.

So is a cell that misses a name which a cell that was left out would have made. A check is never left out, every other
error is shown as ever, and outside of a Jupyter kernel nothing changes. What only a part of a cell needs is for the
cell to ask (`labkit.blanks`).
"""

from __future__ import annotations

import linecache
import re
import symtable
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any

from labkit.blanks import blank_met_by, left_out
from labkit.ranks.errors import RankFailed
from labkit.shell import current_shell

_IS_CHECK = re.compile(r"^\s*check\(", re.MULTILINE)


def leave_out_blanks() -> None:
    """From now on, in this kernel, cells that need an answer which is still blank are left out."""
    shell = current_shell()
    if getattr(shell, "kernel", None) is None:
        return
    needs: dict[str, str] = {}
    """By the name that a cell which was left out would have made: the blank answer that this cell needs."""

    def show(
        shell: Any, kind: type, error: BaseException, traceback: TracebackType, tb_offset: int | None = None
    ) -> None:
        frames = [frame for frame, _ in walk_tb(traceback)]
        source = _source_of_cell(shell, frames)
        blank, text = blank_met_by(error), ""
        if blank:
            text = left_out(blank)
        elif type(error) is NameError and frames[-1].f_globals is shell.user_ns and error.name in needs:
            blank = needs[error.name]
            text = f"Left out here: the cell that makes {error.name} needs {blank}, which was still blank."
        if not text or _IS_CHECK.search(source):
            shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
            return
        print(text)
        needs.update(dict.fromkeys(_names_made_by(source), blank))
        shell.events.register("post_run_cell", succeed)

    def succeed(result: Any) -> None:
        """The cell that was left out has not failed, so that the cells below it run."""
        shell.events.unregister("post_run_cell", succeed)
        result.error_in_exec = None

    shell.set_custom_exc((NotImplementedError, NameError, RankFailed), show)


def _source_of_cell(shell: Any, frames: list[FrameType]) -> str:
    """The text of the cell that is running: its frame is the first one in the notebook's own names."""
    cell = next((frame for frame in frames if frame.f_globals is shell.user_ns), None)
    return "".join(linecache.getlines(cell.f_code.co_filename)) if cell else ""


def _names_made_by(source: str) -> list[str]:
    symbols = symtable.symtable(source, "<cell>", "exec").get_symbols()
    return [symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()]
