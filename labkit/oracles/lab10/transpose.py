"""Lab 10: a transpose in tiles whose accesses to shared memory take one pass each."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.tile import SIDE, Matrix
from labkit.oracles.lab10.tile import ERRORS, SECTORS, VALUES, launched, transposed
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle


def words_in_one_bank(low: float, high: float) -> Callable[[CaseRun[Matrix]], object]:
    """Whether a column of the tile takes so many passes: from low on, and below high."""

    def explains(run: CaseRun[Matrix]) -> object:
        if not torch.equal(run.got["y"], transposed(run)):
            return False
        if run.case.rows % SIDE or run.case.cols % SIDE:
            # Warps at the edge have fewer lanes.
            return CANNOT_TELL
        # Half of the accesses are to rows, and take one pass.
        return low <= 1 + run.measured["bank_conflicts"] / (run.measured["shared_requests"] / 2) < high

    return explains


NO_CONFLICTS = Budget(
    "bank_conflicts",
    0,
    "Lanes of a warp ask one bank of shared memory for different words, and are served one after the other. The bank "
    "of a 4-byte word is its index modulo 32: see which banks the lanes of a warp ask when a column of the tile is "
    "accessed.",
)

TRANSPOSE = Oracle(
    id="10-transpose",
    expect=lambda run: {"y": transposed(run)},
    judge=(inputs_untouched,),
    budgets=(*SECTORS, NO_CONFLICTS),
    diagnose=(
        *VALUES,
        Hint(
            words_in_one_bank(SIDE, math.inf),
            "A column of the tile lies in a single bank: its words are 32 apart, or a multiple of it, so the 32 lanes "
            "are served one after the other. Make the tile's rows one word longer: tile[32][33].",
        ),
        Hint(
            words_in_one_bank(2, SIDE / 2 + 1),
            "Fewer conflicts, but not none. With padding, the words of a column are a row's length apart, and this "
            "length has a common divisor with 32: an odd length has none. With swizzling, the 32 words of a column "
            "have to come to 32 banks, so all five bits of the row take part: `j ^ i`.",
        ),
    ),
    errors={
        "of shared memory, but the block has": "A place lies past the end of the tile. Each thread loops over its rows "
        "threadIdx.y, threadIdx.y + 8, and so on, below 32; and a place that is computed, such as threadIdx.x + i, has "
        "to stay within its row: take it modulo 32.",
        **ERRORS,
    },
    axis="matrices whose sides are no multiples of 32",
    call=launched("transpose"),
)
