"""What transformers calls the keys and values of earlier tokens, as an argument of a model and in its output.

From version 5.24 on it is `cache`; `past_key_values`, the name before, then still works and warns.
"""

from __future__ import annotations

from importlib.metadata import version

RENAMED = (5, 24)


def cache_name(installed: str | None = None) -> str:
    """The name in this version of transformers; None: in the one that is installed."""
    major, minor = (installed or version("transformers")).split(".")[:2]
    return "cache" if (int(major), int(minor)) >= RENAMED else "past_key_values"
