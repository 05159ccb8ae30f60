"""What a student reads of a case and of a place in the result: their own names, not those of our trees.

Nothing is judged here, and no line is broken: `labkit.check.text` does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import torch

from labkit.compare import Mismatch
from labkit.spec import Case, Exercise, Observation, Oracle


def describe(case: Case) -> str:
    """A case in one line: "n_rows=3, n_cols=1023"."""
    return ", ".join(f"{item.name}={getattr(case, item.name)!r}" for item in fields(case))


def case_in_words(oracle: Oracle, run: Observation) -> str:
    """How the answer was called, where the oracle knows; else the fields of the case. Empty for a case without any."""
    if oracle.call is None:
        return describe(run.case)
    try:
        return oracle.call(run)
    except Exception:
        # The call is made from the inputs as they were sent; a run that was cut short may lack them.
        return describe(run.case)


def full_size_in_words(exercise: Exercise, oracle: Oracle) -> str:
    """How the answer was called at `Exercise.full_size`. The inputs are drawn without their data, which would be too
    large."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    case = exercise.full_size
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            tree = exercise.inputs(case, torch.Generator().manual_seed(0))
            return case_in_words(oracle, Observation(case, tree))
    except Exception:
        return describe(case)


def what_is_wrong(oracle: Oracle, found: Mismatch) -> str:
    """The first difference by its kind and place: "rank 3: wrong value at [0]", "wrong loss", "wrong type of w in out".

    A place has the words of `Oracle.places`, or is spelled out.
    """
    rank, path = _rank_and_path(found.path)
    kind = {"keys": "names"}.get(found.kind, found.kind)
    words = _place(oracle, path) or _spelled_out(path)
    if found.kind != "value":
        text = f"wrong {kind} of {words}" if words else f"wrong {kind}"
    else:
        text = f"wrong {words}" if words else "wrong value"
    at = f" at [{', '.join(map(str, found.index))}]" if found.index else ""
    return f"rank {rank}: {text}{at}" if rank else text + at


def _place(oracle: Oracle, path: str) -> str | None:
    """What the oracle calls this place, by its path or by a pattern of paths."""
    if path in oracle.places:
        return oracle.places[path]
    for pattern, words in oracle.places.items():
        if found := _matches(pattern.split("."), path.split(".")):
            return words.format(*found)
    return None


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> list[object]:
    """What stands for each * of a pattern, a number counted from 1; nothing where the path is another."""
    if len(pattern) != len(parts) or any(one not in ("*", part) for one, part in zip(pattern, parts, strict=True)):
        return []
    found = [part for one, part in zip(pattern, parts, strict=True) if one == "*"]
    return [int(part) + 1 if part.isdigit() else part for part in found]


def _rank_and_path(path: str) -> tuple[str, str]:
    """ "ranks.3.out.0" is rank 3's "out.0"; any other path belongs to no rank."""
    parts = path.split(".", 2)
    if parts[0] == "ranks" and len(parts) > 1 and parts[1].isdigit():
        return parts[1], parts[2] if len(parts) > 2 else ""
    return "", path


def _spelled_out(path: str) -> str:
    """A dotted path from the inside out: "grads.0" is "entry 0 of grads". What is called `out` is the value itself."""
    parts = [f"entry {part}" if part.isdigit() else part for part in path.split(".") if part]
    if parts[:1] == ["out"]:
        parts = ["the result", *parts[1:]] if parts[1:] else []
    return " of ".join(reversed(parts))
