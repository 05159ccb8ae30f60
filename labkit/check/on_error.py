"""The hint on an exception, an exceeded limit or a deadlock: the oracle's own where one fits, else a general one.

A deadlock is told rank by rank, and a hint has to hold for each rank that waits. What a wrong value means stands in
`diagnosis.py`.
"""

from __future__ import annotations

import re

from labkit.meters.compiled import LARGE_BLOCK
from labkit.spec import Oracle, Trouble

DEADLOCK = "deadlock: "
"""What the text of a deadlock begins with, and a key of `Oracle.errors` that explains one."""
_GENERIC_HINTS = {
    "wall": "Look for a loop that never ends, or for work that grows too fast with the size of the input.",
    "cpu": "The values may be right, but the work grows too fast with the size of the input: count the operations.",
    "memory": "Look for a copy of the whole input, or for a list that keeps growing.",
    "died": "The answer ended the whole process: an exit, a crash in native code, or too much memory.",
    "cell": "Run that cell by itself: the error is in its text, or in what it needs from the cells above it.",
    "type": "Pass what the exercise asks for by its name alone: no quotes, and no call.",
    "missing": "Keep the names of the functions as they were given: the check finds your answer by them.",
}
_DEADLOCK_HINT = (
    "Each rank that is named waits for another: let one receive while the other sends, or start with isend or irecv "
    "and wait afterwards."
)
_FINISHED = ", which has finished"
_FINISHED_HINT = (
    "A rank that has finished sends and receives nothing more. Every recv needs a send by the rank that it names, and "
    "every send a recv: count both, rank by rank."
)
_COLLECTIVE_HINT = (
    "Every rank has to call every collective and every barrier, in the same order, even a rank that has nothing to add "
    "or finishes early."
)
_MIXED_HINT = (
    "Some ranks wait in a collective, and others for a message. Either a message is missing that they need before they "
    "can come to the collective, or they have passed it without calling it: every rank has to call every collective."
)
_OTHER_CALLS = re.compile(r"rank \d+ calls \w+, rank \d+ calls ")
"""Where two ranks' next collectives are not the same one."""
_NOT_INSTALLED_HINT = "It is not installed where answers are graded. PyTorch, NumPy and Python's own library are there."
LARGE_BLOCK_HINT = (
    "Give a block a fixed length, such as 1,024 numbers. What is longer takes more programs, or a loop in the kernel."
)
_NO_GPU_HINT = (
    "There is no GPU where this runs. Take the device of the tensors that are given, and where the function has an "
    "argument `cuda`, streams and events from it and not from torch.cuda."
)
_WITHOUT_A_GPU = ("dummy base class", "not compiled with CUDA", "no NVIDIA driver")
"""What PyTorch says, in part, of `torch.cuda` where there is none."""


def hint_on_error(oracle: Oracle, trouble: Trouble) -> str | None:
    """What is told with an exception or a limit."""
    own = _own_hint(oracle, trouble) if trouble.kind in ("raised", "cpu") else None
    return own or _general_hint(trouble)


def _own_hint(oracle: Oracle, trouble: Trouble) -> str | None:
    """The oracle's hint. One on what the answer returned is not for an exception in the answer's own lines."""
    if trouble.where is None:
        for part, hint in oracle.unusable.items():
            if part in trouble.text:
                return hint
    return next((hint for part, hint in oracle.errors.items() if _is_in(part, trouble.text)), None)


def _is_in(part: str, text: str) -> bool:
    """Whether the key is for this text. What a deadlock's key says has to hold for every rank that is named."""
    if not text.startswith(DEADLOCK):
        return part in text
    if not part.startswith(DEADLOCK) or _FINISHED in text:
        return False
    return all(part.removeprefix(DEADLOCK) in wait for wait in _waits(text))


def _waits(text: str) -> list[str]:
    """What each rank of a deadlock waits for, as `labkit.ranks.needs.deadlock` tells it.

    "deadlock: rank 0 waits for rank 1 to receive, rank 1 waits in all_reduce for rank 0, and 2 more wait" gives
    ["rank 0 waits for rank 1 to receive", "rank 1 waits in all_reduce for rank 0"].
    """
    told = re.sub(r", and \d+ more waits?$", "", text.removeprefix(DEADLOCK))
    return re.split(r", (?=rank \d+ waits )", told)


def _general_hint(trouble: Trouble) -> str | None:
    text = trouble.text
    if LARGE_BLOCK in text:
        return LARGE_BLOCK_HINT
    if any(part in text for part in _WITHOUT_A_GPU):
        return _NO_GPU_HINT
    if text.startswith(DEADLOCK):
        together = [" waits in " in wait or " waits at a barrier " in wait for wait in _waits(text)]
        if any(together):
            return _COLLECTIVE_HINT if all(together) or _FINISHED in text else _MIXED_HINT
        return _FINISHED_HINT if _FINISHED in text else _DEADLOCK_HINT
    if _OTHER_CALLS.search(text):
        return _COLLECTIVE_HINT
    if text.startswith("ModuleNotFoundError: No module named"):
        return _NOT_INSTALLED_HINT
    return _GENERIC_HINTS.get(trouble.kind)
