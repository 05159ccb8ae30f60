"""What a script is given is PyTorch's and the kit's own: whoever changes a class changes it for the engine too.

A text that sets an attribute of something given is refused when it is read (`script`). A class or a function under
another name is found where it is set (`its_own`), because what cards hand one another by it would be on no bill. What
was changed all the same is found when the script has run: it is put back, and the try ends.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch

from labkit.capstone.allowed import Names, namespace
from labkit.capstone.broken import RuleBroken
from labkit.capstone.kit import KIT

Thing = TypeVar("Thing")


def its_own(thing: Thing) -> Thing:
    """The same, where a script may set what it has: modules, tensors, optimizers, and what the script has made.

    Raises RuleBroken for classes and functions that are none of its own: all scripts and all cards have the same.
    """
    shared = isinstance(thing, type) or (callable(thing) and not isinstance(thing, _MAY_BE_SET))
    if shared and getattr(thing, "__module__", None) != "script":
        raise RuleBroken(f"`{getattr(thing, '__name__', 'this')}` cannot be set: a script patches nothing", "refused")
    return thing


_MAY_BE_SET = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)


@contextmanager
def as_given() -> Iterator[None]:
    """Run the block, and see that the classes and functions that scripts find are what they were.

    Raises RuleBroken where they are not. A name that begins with an underscore cannot be written by a script.
    """
    before = {thing: dict(vars(thing)) for thing in _things()}
    changed = ""
    try:
        yield
    finally:
        for thing, values in before.items():
            now = dict(vars(thing))
            for name in now.keys() | values.keys():
                if not name.startswith("_") and _of(thing, name, now) is not _of(thing, name, values):
                    changed = f"{thing.__name__}.{name}"
                    if name in values:
                        setattr(thing, name, values[name])
                    else:
                        delattr(thing, name)
    if changed:
        raise RuleBroken(f"`{changed}` cannot be set: a script patches nothing", "refused")


def _of(thing: object, name: str, values: dict[str, object]) -> object:
    """The value without what is wrapped around it: PyTorch wraps an optimizer's `step`, an inherited one too, when the
    first one is made."""
    inherited = (vars(base) for base in getattr(thing, "__mro__", (thing,))[1:])
    return inspect.unwrap(next((one[name] for one in (values, *inherited) if name in one), None))


@cache
def _things() -> tuple[object, ...]:
    """Classes and functions written in Python; what C has made cannot be changed."""
    found: list[object] = []

    def look(names: Names) -> None:
        for value in vars(names).values():
            if isinstance(value, Names):
                look(value)
            elif inspect.isclass(value) or inspect.isfunction(value):
                found.append(value)

    for value in namespace(KIT).values():
        if isinstance(value, Names):
            look(value)
    return tuple(dict.fromkeys(found))
