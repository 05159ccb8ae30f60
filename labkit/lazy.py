"""Public names of a package that are found, and their modules imported, when they are first asked for.

Nothing is imported here: packages use this so that importing them is cheap.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def on_first_use(
    package: str, homes: Mapping[str, str], prepare: Callable[[], None] = lambda: None
) -> Callable[[str], object]:
    """The `__getattr__` of a package with these public names: `__getattr__ = on_first_use(__name__, _HOMES)`.

    homes: the module of each name, in full: {"check": "labkit.check.api"}. prepare: called before a module is imported.
    What it returns raises AttributeError for other names, and whatever `prepare` or the import raises.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        prepare()
        found = getattr(importlib.import_module(homes[name]), name)
        # From now on an ordinary name of the package.
        setattr(sys.modules[package], name, found)
        return found

    return find
