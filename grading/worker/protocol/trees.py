"""What the frames carry, as plain trees and back: cases, troubles, figures and texts. From a worker, all may lie."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from labkit.measures import MOST_LETTERS, MOST_TEXTS, in_short
from labkit.spec import Case, Tree, Trouble

MAX_ERROR = 400
"""Characters of an exception or another trouble, in words; a worker sends no more of them."""


def case_to_tree(case: Case) -> dict[str, Tree]:
    """A case's fields as a plain tree."""
    return {item.name: _as_lists(getattr(case, item.name)) for item in fields(case)}


def case_from_tree(known: Iterable[Case], tree: dict[str, Tree]) -> Case:
    """The case with these fields, of the type of a known case that has them; lists become tuples again."""
    kind = next(type(case) for case in known if {item.name for item in fields(case)} == tree.keys())
    return kind(**{name: _as_tuples(value) for name, value in tree.items()})


def trouble_to_tree(trouble: Trouble | None) -> Tree:
    """As in `{"kind": "raised", "text": "ValueError: no", "where": "line 3: x = y"}`."""
    return None if trouble is None else {"kind": trouble.kind, "text": trouble.text, "where": trouble.where}


def trouble_from_tree(tree: Tree) -> Trouble | None:
    """A Trouble as the worker names it, its texts cut to a readable length. Raises whatever where it is none."""
    if tree is None:
        return None
    where = tree.get("where")
    return Trouble(
        clean(tree["kind"], 20), clean(tree["text"], MAX_ERROR), None if where is None else clean(where, 200)
    )


def figures_from_tree(tree: Tree) -> dict[str, float]:
    """The figures among what a worker sends for figures: finite and not negative. Raises AttributeError for no dict."""
    return {
        str(name): float(value)
        for name, value in tree.items()
        if type(value) in (int, float) and math.isfinite(value) and value >= 0
    }


def held_from_tree(tree: Tree) -> dict[str, Sequence[str]]:
    """What figures consist of, as a worker names it, cut and cleaned. Raises whatever where it is no dict of lists."""
    cleaned = {
        clean(name, MOST_LETTERS): [clean(text, MOST_LETTERS) for text in texts[:MOST_TEXTS]]
        for name, texts in tree.items()
    }
    return in_short(cleaned)


def clean(text: object, limit: int) -> str:
    """A text that can be stored: of bounded length, and without the halves of characters that no file can hold.

    Only texts and numbers are shown. Of anything else it is the name of its type: written out, a list that refers to
    one tensor a hundred thousand times takes minutes.
    """
    if not isinstance(text, str):
        text = str(text) if isinstance(text, int | float) else f"<{type(text).__name__}>"
    return text[:limit].encode("utf-8", "replace").decode()


def clean_or_none(text: object, limit: int) -> str | None:
    return None if text is None else clean(text, limit)


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, tuple | list) else value


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value
