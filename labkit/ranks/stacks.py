"""Where ranks in other processes stood: their own lines, each tagged with its rank, and what they waited for.

Text only. A notebook's cells exist in the notebook's process alone, so the text of a line is looked up here.
"""

from __future__ import annotations

import linecache
import re
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

from labkit.ranks.process import Failed, log_file, stack_file
from labkit.ranks.torch_comm import note_file, read_note

Frame = tuple[str, int, str]
"""File, line, function."""

_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
_OURS = str(Path(__file__).resolve().parent)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_NO_FILES = ("<frozen ", "<string>")
"""Python's own, and the command that our server was started by; a cell may be "<ipython-input-1-...>"."""
_N_LOG_LINES = 5
WRITE_S = 5.0


def trace_of(rank: int, failed: Failed) -> str:
    """The traceback of a rank that raised, from the student's outermost line to where it happened."""
    last = f"{failed.type_name}: {failed.text}" if failed.text else failed.type_name
    return _tagged(rank, [*_lines(_theirs(failed.frames)), last])


def stacks_of(folder: str | Path, ranks: Sequence[int]) -> str:
    """The stacks of ranks that have just been sent the signal to write them."""
    deadline = time.monotonic() + WRITE_S
    texts = []
    for rank in ranks:
        frames = _read_stack(stack_file(folder, rank))
        # Until it is there, and the same twice: it may be read while it is written.
        while time.monotonic() < deadline:
            time.sleep(0.02)
            before, frames = frames, _read_stack(stack_file(folder, rank))
            if frames and frames == before:
                break
        lines = _lines(_theirs(frames)) or ["  (it had not begun)"]
        texts.append(_tagged(rank, [f"{waiting_for(folder, rank)}, at", *lines]))
    return "\n".join(texts)


def stack_of_crash(folder: str | Path, rank: int) -> str:
    """The lines at which a rank crashed that is gone by now; empty where it was killed or ended by itself."""
    frames = _read_stack(stack_file(folder, rank))
    return _tagged(rank, _lines(_theirs(frames))) if frames else ""


def waiting_for(folder: str | Path, rank: int) -> str:
    """ "waits for a message from rank 1", or that it does not wait for another rank."""
    note = read_note(note_file(folder, rank))
    return f"waits {note}" if note else "is still running"


def last_lines(folder: str | Path, rank: int) -> str:
    """What a rank's libraries wrote last, to be put behind a sentence; empty where they were silent."""
    path = log_file(folder, rank)
    text = path.read_text(errors="replace").strip() if path.exists() else ""
    return "; its last words:\n" + "\n".join(text.split("\n")[-_N_LOG_LINES:]) if text else ""


def _read_stack(path: Path) -> list[Frame]:
    """The frames of a stack written by faulthandler, the outermost first."""
    text = path.read_text(errors="replace") if path.exists() else ""
    return [(name, int(line), function) for name, line, function in reversed(_FRAME.findall(text))]


def _theirs(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Without our frames and the libraries'; all where nothing would be left."""
    own = [frame for frame in frames if not frame[0].startswith((_OURS, *_LIBRARIES, *_NO_FILES))]
    return own or frames


def _lines(frames: Sequence[Frame]) -> list[str]:
    lines = []
    for name, number, function in frames:
        lines.append(f'  File "{name}", line {number}, in {function}')
        text = linecache.getline(name, number).strip()
        if text:
            lines.append(f"    {text}")
    return lines


def _tagged(rank: int, lines: Sequence[str]) -> str:
    return "\n".join(f"[rank {rank}] {line}" for text in lines for line in text.split("\n"))
