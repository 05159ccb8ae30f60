"""Lab 02: where a loop that always adds the two smallest numbers of a sorted list spends its time.

Plumbing of the notebook only: nothing here is asked, checked or graded.
"""

from __future__ import annotations

import bisect
import time

import torch


def merging_times_s(n: int) -> dict[str, float]:
    """Seconds that each part of the loop takes on n random values, sorted beforehand."""
    values = sorted(torch.rand(n, generator=torch.Generator().manual_seed(0)).tolist())
    times_s = {"adding": 0.0, "searching": 0.0, "moving entries": 0.0}
    clock = time.perf_counter
    while len(values) > 1:
        start_s = clock()
        first, second = values.pop(0), values.pop(0)
        out_s = clock()
        total = first + second
        added_s = clock()
        place = bisect.bisect(values, total)
        found_s = clock()
        values.insert(place, total)
        times_s["moving entries"] += (out_s - start_s) + (clock() - found_s)
        times_s["adding"] += added_s - out_s
        times_s["searching"] += found_s - added_s
    return times_s
