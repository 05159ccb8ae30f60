"""Lab 20: one run at a billion parameters made cheaper, one change after the other, and what each is billed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from labkit.capstone import BILLION, Bill, bill, read
from labkit.exercises.lab20.config import Config, script_of

_PLAIN = Config(BILLION.width, BILLION.n_heads, BILLION.vocab, BILLION.seq_len, micro_batch=8, n_micro=1, n_steps=100)
_BF16 = replace(_PLAIN, bytes_per_number=2)
_RECOMPUTED = replace(_BF16, recompute=True)
_MICRO = replace(_RECOMPUTED, micro_batch=2, n_micro=4)

CHEAPER: dict[str, Config] = {
    "float32": _PLAIN,
    "+ bfloat16": _BF16,
    "+ recomputation": _RECOMPUTED,
    "+ micro-batches of 2": _MICRO,
    "+ states on the host": replace(_MICRO, states_on_host=True),
}
"""By what was changed last: the same 8 texts of 2,048 tokens a step, with fused attention."""


@cache
def billed(config: Config) -> Bill:
    """One step of the run on one card. Each is billed once, in about two seconds, and remembered."""
    return bill(read(script_of(config)), config.size)
