"""Where a tensor was made: the line of the notebook or script on the call stack, and the library's line below it.

Operations of the backward pass run in C++, on a GPU in a thread of autograd's own, so their line is the one that
called `backward`, which the block's own thread waits in.
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

import torch

from labkit.cut import cut

_OURS = f"{os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))}{os.sep}"
_TORCH = f"{os.path.dirname(os.path.abspath(torch.__file__))}{os.sep}"
NOBODYS = (_TORCH, f"{os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}{os.sep}", "<frozen abc>")
"""How the files begin whose lines note things for themselves while somebody computes: PyTorch's, the meters', and the
one that keeps what is of which abstract class."""
_LIBRARIES = tuple(
    {f"{os.path.realpath(sysconfig.get_path(name))}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_NOT_THE_USERS = (_OURS, "<frozen", _TORCH, *_LIBRARIES)


@dataclass(frozen=True)
class Site:
    """file and line of the user's own code; via: the innermost line of a library that is not PyTorch, if it was one.

    Site("/home/ada/lab.py", 7)
    """

    file: str
    line: int
    via: str = ""

    @property
    def where(self) -> str:
        """The place in words: a cell by its number, a file by its name."""
        return f"{_name_of(self.file)}, line {self.line}"

    @property
    def brief(self) -> str:
        """The line's number and what stands there, for a reader who has only one place in mind."""
        return f"line {self.line}: {cut(self.text, 60)}" if self.text else f"line {self.line}"

    @property
    def text(self) -> str:
        """The line itself, empty where its source is gone."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        text = f": {cut(self.text, 80)}" if self.text else ""
        return f"{self.where}{text}" + (f" (in {self.via})" if self.via else "")


def calling_line(thread: int) -> tuple[str, int] | None:
    """File and line of the user's own code on the call stack; the cheaper half of `calling_site`."""
    for frame in _frames(thread):
        if _is_users(file := frame.f_code.co_filename):
            return file, frame.f_lineno
    return None


@functools.lru_cache(maxsize=1024)
def _is_users(file: str) -> bool:
    """Kept, because a meter asks for every tensor that is made, and for every frame below it."""
    return not file.startswith(_NOT_THE_USERS)


def calling_site(thread: int) -> Site | None:
    """The site of the operation that is being dispatched, or None where all frames are a library's.

    thread: the block's own, by its identifier; its frames stand for those that a thread of autograd's does not have.
    """
    via = ""
    for frame in _frames(thread):
        file = frame.f_code.co_filename
        if not file.startswith(_OURS) and not file.startswith("<frozen"):
            if not file.startswith((_TORCH, *_LIBRARIES)):
                return Site(file, frame.f_lineno, via)
            if not via and not file.startswith(_TORCH):
                via = f"{_short(file)}:{frame.f_lineno}"
    return None


def _frames(thread: int) -> Iterator[FrameType]:
    """The frames of the running thread, from the innermost outwards, and after them those of another one, `thread`."""
    running, frame = threading.get_ident(), sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back
        if frame is None and running != thread:
            running, frame = thread, sys._current_frames().get(thread)


def _short(file: str) -> str:
    """A library's file from its package on."""
    return next((file.removeprefix(root) for root in _LIBRARIES if file.startswith(root)), file).removeprefix(
        f"site-packages{os.sep}"
    )


def _name_of(file: str) -> str:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    described = shell.compile.format_code_name(file) if shell is not None else None
    return " ".join(described).lower().replace("in[", "In[") if described else os.path.basename(file)
