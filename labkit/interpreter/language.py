"""Exchange Triton's language for the interpreter's: all of it once per launch, in microseconds.

The stock interpreter looks the whole language up again at every nested call, of `tl.sum` say, and leaves it exchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType


class Language:
    """What the stock interpreter changes in `triton.language`, recorded once; `put` and `take_back` replay it."""

    def __init__(self, interpreter: ModuleType) -> None:
        scope = interpreter._LangPatchScope()
        tl, builder = interpreter.tl, interpreter.interpreter_builder
        try:
            # As in the stock function, for both names under which a kernel may see the language.
            for language in (tl, tl.core):
                interpreter._patch_builtin(language, builder, scope)
                interpreter._patch_builtin(language.tensor, builder, scope)
                interpreter._patch_lang_tensor(language.tensor, scope)
                interpreter._patch_lang_core(language, scope)
            interpreter._patch_builtin(tl.math, builder, scope)
            interpreter._patch_builtin(tl.core.tensor_descriptor_base, builder, scope)
            originals: dict[tuple[int, str], tuple[object, str, object]] = {}
            for target, name, original in scope._changes:
                originals.setdefault((id(target), name), (target, name, original))
            self._changes = [(o, name, original, getattr(o, name)) for o, name, original in originals.values()]
        finally:
            scope.restore()
        self._missing = interpreter._MISSING
        self._changes += [(tl.tensor, *change) for change in _methods(tl.tensor)]
        ours_of_tensor = {"__bool__": _truth, "__index__": _index}
        self._changes = [
            (target, name, original, ours_of_tensor.get(name, ours) if target is tl.tensor else ours)
            for target, name, original, ours in self._changes
        ]

    def put(self) -> None:
        for target, name, _, ours in self._changes:
            setattr(target, name, ours)

    def take_back(self) -> None:
        for target, name, original, _ in self._changes:
            if original is self._missing:
                delattr(target, name)
            else:
                setattr(target, name, original)


def _truth(self) -> bool:
    """`if` and `while` decide by one value. The stock interpreter takes every block for true; the compiler refuses."""
    if sys._getframe(1).f_globals.get("__name__") == "triton.language.semantic":
        # Triton asks here whether it was given an operand, as in `other.handle if other else None`: also one of 0.
        return True
    values = self.handle.data
    if values.size == 1:
        return bool(values)
    raise TypeError(
        f"a block of {values.size} values is neither true nor false: choose with tl.where(condition, x, y), and join "
        "masks with &, | and ~"
    )


def _index(self) -> int:
    """`range(0, x)` and the like. Triton 3.6 asks for more than NumPy 2.4 allows of an array with one dimension."""
    return int(self.handle.data.item())


def _methods(tensor: type) -> list[tuple[str, object, Callable]]:
    """`x.sum()` and the like: functions of Triton's that are attributes of a class, and would not be given their x."""
    found = []
    for name, value in vars(tensor).items():
        if hasattr(value, "fn") and hasattr(value, "run"):
            found.append((name, value, _bound(value)))
    return found


def _bound(function: Callable) -> Callable:
    return lambda *args, **kwargs: function(*args, **kwargs)
