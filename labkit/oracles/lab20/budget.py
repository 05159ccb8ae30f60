"""Lab 20: a script is judged by the rules, its loss and its virtual hours, and told what to try next."""

from __future__ import annotations

from labkit.oracles.lab20.budget_entry import came_to, for_the_board, keeps_to_the_rules, reaches_the_target, worth
from labkit.oracles.lab20.budget_hints import DIAGNOSE
from labkit.spec import Oracle

BUDGET = Oracle(
    id="20-budget",
    judge=(keeps_to_the_rules, reaches_the_target),
    score=worth,
    earned=came_to,
    record=for_the_board,
    diagnose=DIAGNOSE,
    axis="seeds of other languages, and a size of the model that you have not seen",
    call=lambda run: f"the script, billed at 1.1 billion parameters and trained on {len(run.tree['seeds'])} seed(s)",
)
