"""Virtual hours, and what they are worth between the published ghosts.

Nothing is run here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from labkit.capstone.entry import Entry

TARGET_LOSS = 1.6
"""In nats per token, on sentences that training never saw: what every seed has to reach. No model is below 0.86."""
SPREAD = 0.15
"""About as far apart are the losses of one script on two languages: by 0.05 to 0.17 nats, as it was measured."""
MARGIN = 0.1
"""With less than this to the target on one language, a script is warned that another may miss it."""
BRONZE_SHARE = 0.5
LEAST_SHARE = 0.2
SLACK = 1.005
"""A score like silver's is silver: the last digits hang on PyTorch's version."""
DIGITS = 6


def virtual_hours(setup_s: float, step_s: float, n_steps: int) -> float:
    """Hours on the machine: what is prepared once, and the declared steps. To six digits, as it is published."""
    return float(f"{(setup_s + step_s * n_steps) / 3600:.{DIGITS}g}")


def share_of(entry: Entry, bronze: Entry, silver: Entry) -> float:
    """0 where the entry does not count, a half at bronze, 1 at silver, by the logarithm of the hours in between."""
    if not entry.counts:
        return 0.0
    if entry.virtual_hours <= silver.virtual_hours * SLACK:
        return 1.0
    way = math.log(bronze.virtual_hours / entry.virtual_hours) / math.log(bronze.virtual_hours / silver.virtual_hours)
    return min(max(BRONZE_SHARE + (1 - BRONZE_SHARE) * way, LEAST_SHARE), 1.0)


def ranked(entries: Sequence[Entry]) -> list[Entry]:
    """Those that count, the fastest first; of equals, the one that takes less memory."""
    counted = [entry for entry in entries if entry.counts]
    return sorted(counted, key=lambda entry: (entry.virtual_hours, entry.total_peak_bytes, entry.digest))
