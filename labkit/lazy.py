"""Public names of a package that are found, and their modules imported, when they are first asked for.

Nothing is imported here: packages use this so that importing them is cheap.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping


def on_first_use(package: str, homes: Mapping[str, str], name: str) -> object:
    """What this name of the package stands for; from then on it is an ordinary name of the package.

    For a package's own `__getattr__`. homes: the module of each name, in full: {"check": "labkit.check.api"}. Raises
    AttributeError for other names, and whatever the import raises.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(homes[name]), name)
    setattr(sys.modules[package], name, found)
    return found
