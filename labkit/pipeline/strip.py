"""A schedule in text, a line for each rank: its passes in order, how long it waits before each, and where it is stuck.

    stage 0  F0 F1 ·4 B0 B1
    stage 1  ·1 F0 B0 F1 B1

Charts are drawn by `labkit.figures`; a strip stands where no picture can, as in a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labkit.pipeline.actions import Action
from labkit.pipeline.run import Event

MOST_RANKS = 5
WIDTH = 80
TINY = 1e-9


def in_a_strip(
    events: Sequence[Event],
    n_ranks: int,
    stuck: Mapping[int, Action] | None = None,
    names: str = "stage",
    token: Callable[[Action], str] = lambda action: f"{action.kind}{action.microbatch}",
    token_says: str = "",
) -> str:
    """The passes that ran; stuck: by rank the pass that never begins. No line is longer than 80 characters.

    token: how a pass is written; token_says: what that means, with an example, where it has to be said.
    """
    stuck = stuck or {}
    lines = []
    for rank in range(min(n_ranks, MOST_RANKS)):
        free, tokens = 0.0, []
        for event in sorted((one for one in events if one.rank == rank), key=lambda one: one.start):
            if event.start - free > TINY:
                tokens.append(f"·{event.start - free:.3g}")
            tokens.append(token(event.action))
            free = event.end
        if rank in stuck:
            tokens.append(f"?{token(stuck[rank])}")
        lines.append(_fitted(f"{names} {rank}  ", tokens))
    if n_ranks > MOST_RANKS:
        lines.append(f"and {n_ranks - MOST_RANKS} more")
    legend = [token_says] * bool(token_says) + ["·4: a wait of 4 units"] * any("·" in line for line in lines)
    legend += ["?: never begins"] * bool(stuck)
    return "\n".join([*lines, *([f"({'; '.join(legend)})"] if legend else [])])


def _fitted(lead: str, tokens: Sequence[str]) -> str:
    line = lead + " ".join(tokens)
    if len(line) <= WIDTH:
        return line
    return line[: WIDTH - 2].rsplit(" ", 1)[0] + " …"
