"""A frame as a dataclass: its kind, and its parts by the names of its fields. Which frames there are is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

if TYPE_CHECKING:
    # The forking process reads frames before anything large is loaded.
    from labkit.spec import Tree

F = TypeVar("F", bound="Frame")


class WireError(Exception):
    """The other side sent something that is not a frame, or hung up in the middle of one."""


@dataclass(frozen=True)
class Frame:
    """One message. kind: its name on the wire."""

    kind: ClassVar[str] = ""

    @property
    def as_memory(self) -> bool:
        """Whether its tensors go as read-only memory, which the other side maps and never has to copy."""
        return False

    def to_parts(self) -> dict[str, Tree]:
        """The fields as plain trees; one whose default is None is left out where it is None."""
        parts = {item.name: (getattr(self, item.name), item.default) for item in fields(self)}
        return {name: value for name, (value, default) in parts.items() if value is not None or default is not None}

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        """The frame with these parts. Whatever it raises, they make no sense. Unknown parts are dropped."""
        known = [item for item in fields(cls) if item.name in parts or item.default is MISSING]
        return cls(**{item.name: parts[item.name] for item in known})


def frame_of(kind: str, parts: Mapping[str, Tree], due: tuple[type[F], ...], in_words: str = "") -> F:
    """The frame, which has to be of one of these types, or `in_words`. Raises WireError."""
    for frame in due:
        if frame.kind == kind:
            try:
                return frame.from_parts(parts)
            except WireError:
                raise
            except Exception as error:
                # Whatever the other side put there.
                problem = "without all its parts" if isinstance(error, KeyError) else "whose parts make no sense"
                raise WireError(f'"{kind}" {problem}') from error
    in_words = in_words or " or ".join(f'"{frame.kind}"' for frame in due)
    raise WireError(f'"{kind[:40]}" where {in_words} was due')
