"""Lab 20: what a try of a script came to, whether it counts, and what its hours are worth.

The losses are worked out here, from the weights that came back, on sentences that were never where the script ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.capstone.entry import Entry
from labkit.capstone.ghosts import ghosts
from labkit.capstone.play import entry_of
from labkit.capstone.processor import processor
from labkit.capstone.score import MARGIN, SPREAD, TARGET_LOSS, share_of
from labkit.exercises.lab20.budget import Try
from labkit.oracles.hints import once
from labkit.spec import CaseRun


@once
def entry(run: CaseRun[Try]) -> Entry | None:
    """What the try came to, by the seeds that were sent."""
    return entry_of({**run.got, "seeds": run.tree["seeds"]})


def keeps_to_the_rules(run: CaseRun[Try]) -> str | None:
    """What ended the try, in the engine's words."""
    return run.got["problem"] or None


def reaches_the_target(run: CaseRun[Try]) -> str | None:
    """Every seed's loss, on sentences that training never saw."""
    losses = list(entry(run).losses.values())
    for number, loss in enumerate(losses, 1):
        if not loss <= TARGET_LOSS:
            where = f"language {number} of {len(losses)}: " if len(losses) > 1 else ""
            return f"{where}the loss is {loss:.3f} nats per token after training, the target {TARGET_LOSS}"
    return None if entry(run).counts else "the weights that came back are not those of every language"


def worth(runs: Sequence[CaseRun[Try]]) -> float:
    """By the virtual hours, which hang on no seed, between the ghosts of the script's machine."""
    found = entry(runs[0])
    levels = ghosts()[found.machine]
    return share_of(found, levels["bronze"], levels["silver"])


def came_to(runs: Sequence[CaseRun[Try]]) -> tuple[tuple[str, str], ...]:
    """The hours, and the worst loss beside the target; a warning where another language may miss it."""
    found = entry(runs[0])
    worst = max(found.losses.values())
    loss = f"{worst:.3f} nats per token, the target {TARGET_LOSS}; languages differ by about {SPREAD}: leave that much"
    if worst > TARGET_LOSS - MARGIN:
        loss += ". It may miss the target on the three others that are graded"
    step = f"{found.declared_steps} steps of {found.step_ms / 1e3:.2f} s"
    return (("hours", f"{found.virtual_hours:.4g} virtual hours: {step}"), ("loss", loss))


def for_the_board(runs: Sequence[CaseRun[Try]]) -> dict[str, Any]:
    """What the leaderboard reads: the entry, and the processor that its losses were worked out on."""
    return {"entry": entry(runs[0]).to_json(), "judged_on": processor()}
