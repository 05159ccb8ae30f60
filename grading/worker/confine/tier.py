"""A tier of isolation as data: what the two sides of a sandbox have to know of it to do their part.

Which tiers there are, which of them works here and how each is started is `grading.isolation`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tier:
    """The tier by its name and by what is done in it. Nothing of it is done where all flags are false.

    in_bubblewrap: the worker is started in a sandbox that bubblewrap makes. enters_namespaces: the worker moves itself
    into namespaces with a view of the files that it lays out. sandbox_per_submission: a worker is ended after one
    submission. Where either of the first two is, each job has processes, temporary space, IPC and a network of its own.

    >>> Tier("kernel", enters_namespaces=True).isolates
    True
    """

    name: str
    in_bubblewrap: bool = False
    enters_namespaces: bool = False
    sandbox_per_submission: bool = False

    @property
    def isolates(self) -> bool:
        """Whether jobs are kept from the machine at all."""
        return self.in_bubblewrap or self.enters_namespaces
