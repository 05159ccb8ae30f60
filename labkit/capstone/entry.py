"""An entry of the game: what one script came to on one machine, as plain data that is stored, ranked and drawn.

Every number of it follows from the script's text and the seeds, and can be worked out again (`play`, `entry_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """peak_bytes: of one card, by category, each rounded up to 1 MiB; they add up to the peak. losses: by seed, in nats
    per token. digest: of the script's text. reached: whether every loss is at or below the target. fits: whether the
    peak is within the machine's memory.

        Entry(
            machine="basement", virtual_hours=0.5, declared_steps=200, step_ms=9000.0, setup_ms=0.0,
            peak_bytes={"parameters": 2 * 2**30, "activations": 2**30}, losses={"7": 1.5, "8": 1.52, "9": 1.49},
            digest="a5105af9a7e0f1d2", changed="checkpoint every block", fits=True, reached=True,
        )
    """

    machine: str
    virtual_hours: float
    declared_steps: int
    step_ms: float
    setup_ms: float
    peak_bytes: Mapping[str, int]
    losses: Mapping[str, float]
    digest: str
    changed: str = ""
    fits: bool = True
    reached: bool = True
    facts: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Of the billed step: "flops", "bytes", "host_bytes", "link_bytes", "sequences" of one card."""

    @property
    def counts(self) -> bool:
        """Whether it has a place on a board."""
        return self.fits and self.reached

    @property
    def total_peak_bytes(self) -> int:
        return sum(self.peak_bytes.values())

    @property
    def largest(self) -> str:
        """The category that takes most at the peak."""
        return max(self.peak_bytes, key=lambda name: self.peak_bytes[name])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        return cls(**data)
