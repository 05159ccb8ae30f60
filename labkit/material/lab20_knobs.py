"""Lab 20: one training script with knobs, billed at a billion parameters: what each knob does to memory and to time.

The script is the game's (`labkit.capstone`): what comes out here is what the same text would be billed in a try.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from labkit.capstone import Bill, bill, read

KNOBS = {
    "bf16": "weights and gradients in 16 bits instead of 32",
    "fused": "attention that keeps no scores",
    "checkpoint": "each block is computed again in the backward pass",
    "chunked": "logits of an eighth of the tokens at a time",
    "8-bit": "AdamW's moments in 8 bits instead of 32",
    "in backward": "each weight is updated as soon as its gradient is there",
    "micro": "one sequence at a time, and gradients added up",
}
"""What each knob does. None of them changes how many tokens a step takes."""
SEQUENCES = 8


class UnknownKnob(KeyError):
    """There is no knob of this name."""


def script_with(knobs: Iterable[str] = (), machine: str = "basement", steps: int = 100) -> str:
    """The script with these knobs turned, as text. Raises UnknownKnob, and ValueError for two that exclude each other:
    an update in the backward pass comes before the gradients are added up."""
    turned = set(knobs)
    if unknown := turned - set(KNOBS):
        raise UnknownKnob(f"no knob is called {', '.join(sorted(unknown))}; there are {', '.join(KNOBS)}")
    if {"in backward", "micro"} <= turned:
        raise ValueError('"in backward" and "micro" exclude each other: the update would come before the sum')
    n_micro = SEQUENCES if "micro" in turned else 1
    optimizer = "AdamW8bit" if "8-bit" in turned else "AdamW"
    attach = ["    kit.step_in_backward(model.parameters(), optimizer.update)"] * ("in backward" in turned)
    head = "kit.chunked_loss(h, model.head, y, 8)" if "chunked" in turned else "kit.loss(F.linear(h, model.head), y)"
    update = [] if "in backward" in turned else ["    optimizer.step()", "    optimizer.zero_grad()"]
    return "\n".join(
        [
            f'MACHINE = "{machine}"',
            f"STEPS = {steps}",
            f'CHANGED = "{", ".join(name for name in KNOBS if name in turned) or "nothing"}"',
            "",
            "def setup(run):",
            f"    model = run.model(torch.{'bfloat16' if 'bf16' in turned else 'float32'},",
            f'                      attention="{"fused" if "fused" in turned else "eager"}")',
            f"    optimizer = kit.{optimizer}(model.parameters(), lr=3e-3)",
            *attach,
            "    return model, optimizer",
            "",
            "def step(run, state, number):",
            "    model, optimizer = state",
            f"    for part in range({n_micro}):",
            f"        x, y = run.tokens({SEQUENCES // n_micro})",
            "        h = model.embed(x)",
            "        for block in model.blocks:",
            f"            h = {'kit.checkpoint(block, h)' if 'checkpoint' in turned else 'block(h)'}",
            "        h = model.norm(h)",
            f"        loss = {head}",
            f"        (loss / {n_micro}).backward()",
            *update,
            "",
        ]
    )


@cache
def _billed(text: str) -> Bill:
    return bill(read(text))


def bill_with(knobs: Iterable[str] = (), machine: str = "basement") -> Bill:
    """The bill of the script with these knobs. Each is run once and remembered."""
    return _billed(script_with(knobs, machine))
