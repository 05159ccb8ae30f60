"""Lab 19: gradients that were added up, or averaged, over ranks once too often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.compare import compare
from labkit.oracles.hints import Condition
from labkit.oracles.lab19.whole_attention import CLOSE
from labkit.spec import CANNOT_TELL, CaseRun


def gradients_scaled(names: Sequence[str], powers: Sequence[int] = (1, -1)) -> Condition:
    """A hint's condition: the gradients of these names are n^p times the right ones on all ranks, for one p of powers.
    CANNOT_TELL where there is only a forward pass."""

    def when(run: CaseRun) -> Any:
        if run.case.forward_only:
            return CANNOT_TELL
        return any(_are_times(run, names, float(run.case.n_ranks) ** power) for power in powers)

    return when


def _are_times(run: CaseRun, names: Sequence[str], factor: float) -> bool:
    pairs = zip(run.expected["ranks"], run.got["ranks"], strict=True)
    return all(compare(factor * right[name], got[name], CLOSE) is None for right, got in pairs for name in names)
