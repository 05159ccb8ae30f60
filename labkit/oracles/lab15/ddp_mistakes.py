"""Lab 15: what the usual mistakes of data parallel training look like; the hints of `ddp` ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from labkit.compare import compare
from labkit.exercises.lab15.ddp import Job, Net
from labkit.oracles.lab15.ddp_costs import bucket_bytes
from labkit.oracles.lab15.one_process import CLOSE, as_in_one_process, replicas_with, whole_batch
from labkit.spec import CANNOT_TELL, CaseRun


def ended_as_with(*mistakes: str) -> Callable[[CaseRun[Job]], Any]:
    """A diagnosis: every rank ended where one of these mistakes alone would have brought it. CANNOT_TELL where that is
    where it should be."""

    def when(run: CaseRun[Job]) -> Any:
        right = [parameter.detach() for parameter in whole_batch(run).parameters()]
        tells = False
        for mistake in mistakes:
            wrong = replicas_with(run, mistake)
            ranks = zip(wrong, run.got["ranks"], strict=True)
            if any(compare(right, replica, CLOSE) for replica in wrong):
                tells = True
                if all(compare(replica, one["parameters"], CLOSE) is None for replica, one in ranks):
                    return True
        return False if tells else CANNOT_TELL

    return when


def own_counts(run: CaseRun[Job]) -> bool:
    """Every rank kept the whole number that it started with, and all the rest is right."""
    kept = all(torch.equal(one["n_seen"], part["n_seen"]) for one, part in zip(run.got["ranks"], run.tree["ranks"]))
    shared = {"ranks": [{**one, "n_seen": run.tree["ranks"][0]["n_seen"]} for one in run.got["ranks"]]}
    return kept and run.case.n_ranks > 1 and as_in_one_process(replace(run, got=shared)) is None


def nothing_moved(run: CaseRun[Job]) -> bool:
    """Whether all ranks have the weights from which rank 0 began."""
    start = run.tree["ranks"][0]["parameters"]
    return all(
        torch.equal(old, new) for one in run.got["ranks"] for old, new in zip(start, one["parameters"], strict=True)
    )


def narrow(run: CaseRun[Job]) -> bool:
    """All buckets left, each with half of its bytes."""
    sent = calls(run.got)["bytes"]
    return [2 * n_bytes for n_bytes in sent] == run.case.n_steps * bucket_bytes(run.case)


def stand_still(run: CaseRun[Job]) -> bool:
    """Whether weights that should have moved are on all ranks those from which rank 0 began."""
    start, right = run.tree["ranks"][0]["parameters"], whole_batch(run).parameters()
    return any(
        not torch.equal(old, new) and all(torch.equal(old, one["parameters"][i]) for one in run.got["ranks"])
        for i, (old, new) in enumerate(zip(start, right, strict=True))
    )


def skipped_stands_still(run: CaseRun[Job]) -> bool:
    """Whether the block that odd ranks skip kept its first weight on rank 1, and not on rank 0."""
    names = [name for name, _ in Net(run.case, 0).named_parameters()]
    block = names.index(f"blocks.{run.case.odd_ranks_skip}.weight")
    first = run.tree["ranks"][0]["parameters"][block]
    moved, still = (one["parameters"][block] for one in run.got["ranks"][:2])
    return torch.equal(first, still) and not torch.equal(first, moved)


def calls(got: dict) -> dict[str, list]:
    return got["ranks"][0]["calls"]


def one_at_a_time(run: CaseRun[Job]) -> Any:
    """Where odd ranks complete their buckets in another order, they start fewer all-reduces inside of backward."""
    if not run.case.odd_ranks_swap and not run.case.n_crossed:
        return CANNOT_TELL
    even, odd = (sum(one["calls"]["in_backward"]) for one in run.got["ranks"][:2])
    return 0 < odd < even and as_in_one_process(run) is None


def late_from_the_second_step_on(case: Job, in_backward: list[bool]) -> bool:
    """Whether all-reduces of the first step alone began inside of a backward pass."""
    n_calls = len(in_backward) // case.n_steps
    return case.n_steps > 1 and any(in_backward[:n_calls]) and not any(in_backward[n_calls:])
