"""The hint that a wrong answer gets: a mistake that every failing case bears out.

One case is easily explained by accident. A hint is therefore believed only where it holds in every failing case that
it can tell anything about (`Hint.when`). The order of an oracle's hints says which of them is the more specific one.
Where none explains the answer, the oracle's `fact` says how far off it is. Nothing is judged here: that an answer is
wrong has been found out by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from labkit.compare import Mismatch
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Rivals, Tree
from labkit.tree import Opaque, leaves
from labkit.unwritten import unwritten

MOST_TO_DIAGNOSE = 2**20
"""The elements that a wrong result may have and still be looked at, where no right one tells what is reasonable."""


def explanation(oracle: Oracle, failing: Sequence[CaseRun]) -> str | None:
    """The first of the oracle's hints that explains the failing cases, in their order; None where none does.

    Of `Rivals` the one that explains them, if it is the only one.
    """
    if not failing or not _is_readable(failing[0]):
        return None
    # The smallest first: a hint is dropped at the first case that it does not explain, and many play a mistake.
    readable = sorted((run for run in failing if _is_readable(run)), key=lambda run: _n_elements(run.tree))
    for entry in oracle.diagnose:
        hints = entry.hints if isinstance(entry, Rivals) else (entry,)
        texts = {hint.text for hint in hints if _explains(hint, readable)}
        if len(texts) == 1:
            return texts.pop()
    return None


def first_hint(oracle: Oracle, runs: Sequence[CaseRun]) -> str | None:
    """The first hint that holds in any of the runs, for what is wrong with all of them together."""
    return next((text for run in runs if (text := explanation(oracle, [run]))), None)


def fact(oracle: Oracle, run: CaseRun) -> str | None:
    """What the oracle can say of a wrong value that no hint explains, such as by how much it is off."""
    return _text_by(oracle.fact, run)


def strip(oracle: Oracle, run: CaseRun) -> str | None:
    """What the answer did, in lines of text, where the oracle can show it."""
    return _text_by(oracle.strip, run)


def _text_by(describe: Callable[[CaseRun], str | None] | None, run: CaseRun) -> str | None:
    if describe is None or not _is_readable(run):
        return None
    try:
        return describe(run)
    except Exception:
        # As for a hint: what came back may be of any kind.
        return None


def _explains(hint: Hint, failing: Sequence[CaseRun]) -> bool:
    """Whether the hint holds in every failing case that can tell, of which there is one at least."""
    holds = False
    for run in failing:
        answer = _holds(hint, run)
        if answer is CANNOT_TELL:
            continue
        if not answer:
            return False
        holds = True
    return holds


def _holds(hint: Hint, run: CaseRun) -> object:
    try:
        # A hint probes a value that is wrong in unknown ways; what it cannot read, it does not explain.
        answer = hint.when(run)
        return answer if answer is CANNOT_TELL else bool(answer)
    except Exception:
        return False


def _is_readable(run: CaseRun) -> bool:
    """Whether the result is of a size to work with: broadcast against the right one, it could take all memory."""
    most = MOST_TO_DIAGNOSE if run.expect is None else 4 * _n_elements(run.expected) + 1000
    return _n_elements(run.got) <= most


def _n_elements(tree: Tree) -> int:
    return sum(leaf.numel() if hasattr(leaf, "numel") else 1 for _, leaf in leaves(tree))


STORES = {"store_bytes", "global_store_sectors"}
"""Measures that an answer has whose results kernels store to memory: Triton's, and those in CUDA C++."""


def unwritten_memory(found: Mismatch, run: CaseRun) -> str | None:
    """How much of a wrong result rests on memory that no kernel stored to, if the first wrong element does."""
    values = dict(leaves(run.got)).get(found.path)
    if found.kind != "value" or not STORES & {*run.measured} or not isinstance(values, torch.Tensor):
        return None
    missing = unwritten(values)
    if not missing[found.index or ()]:
        return None
    if values.numel() == 1:
        return "it rests on memory that no kernel stored to"
    return f"{int(missing.sum()):,} of {values.numel():,} values rest on memory that no kernel stored to"


def hint_on_form(found: Mismatch, got: Tree) -> str | None:
    """What the kind of a mismatch alone says, in any exercise."""
    if found.kind == "type" and found.got == "None":
        return "The function returned None: is a `return` missing?"
    if found.kind == "type" and any(isinstance(leaf, Opaque) for _, leaf in leaves(got)):
        return "Return plain PyTorch tensors and Python numbers."
    if found.kind == "dtype":
        return f"The result should be {found.expected}: convert it at the end, or choose the dtype where it is made."
    if found.got == "nan" and found.expected != "nan":
        return "NaN where a number belongs: look for 0/0, inf - inf, or an overflow on the way."
    if found.got in ("inf", "-inf") and "inf" not in found.expected:
        return "Infinity where a number belongs: something overflowed on the way."
    return None
