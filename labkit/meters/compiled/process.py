"""Lend the compiler a process as it likes it: functions that are the compiler's, its own settings, a cache of its own.

Whatever was interpreted before is so again afterwards. Nothing is compiled here.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType


@contextmanager
def settings() -> Iterator[None]:
    """Triton's environment variables for a compile: no interpreter, a fresh cache, the assembler's log printed."""
    with tempfile.TemporaryDirectory(prefix="compile-report-") as folder:
        wanted = {
            "TRITON_INTERPRET": None,
            "TRITON_CACHE_DIR": folder,
            "TRITON_DUMP_PTXAS_LOG": "1",
            # What 3.9 does by default as well, but with a warning.
            "TRITON_DEFAULT_FP_FUSION": os.environ.get("TRITON_DEFAULT_FP_FUSION", "1"),
        }
        before = {name: os.environ.get(name) for name in wanted}
        try:
            _set(wanted)
            yield
        finally:
            _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class Compilable:
    """The compiler's twins of interpreted functions, made when first asked for."""

    def __init__(self) -> None:
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction

        self.interpreted, self._compiled = InterpretedFunction, JITFunction
        self._twins: dict[int, object] = {}

    def is_interpreted(self, value: object) -> bool:
        return type(value) is self.interpreted

    def of(self, function):
        """The function itself where the compiler knows it; its twin, with the settings of its decorator, otherwise."""
        if not self.is_interpreted(function):
            return function
        if id(function) not in self._twins:
            self._twins[id(function)] = self._compiled(function.fn, **function.kwargs)
        return self._twins[id(function)]


@contextmanager
def compilable(kernel: Callable) -> Iterator[Callable]:
    """The kernel as the compiler wants it, and in its place every function that it may call, in whatever module."""
    twins = Compilable()
    undo: list[Callable[[], None]] = []
    try:
        for module in [*sys.modules.values(), None]:
            names = kernel.fn.__globals__ if module is None else getattr(module, "__dict__", None)
            if isinstance(module, ModuleType | None) and type(names) is dict:
                _exchange_names(names, twins, undo)
        _exchange_methods(twins, undo)
        function = twins.of(kernel)
        _exchange_captured(function.fn, twins, undo)
        yield function
    finally:
        for step in reversed(undo):
            step()


def _exchange_names(names: dict[str, object], twins: Compilable, undo: list) -> None:
    if twins.interpreted not in map(type, names.values()):
        # So for nearly all of a thousand modules and more.
        return
    for name, value in list(names.items()):
        if twins.is_interpreted(value):
            names[name] = twins.of(value)
            undo.append(lambda names=names, name=name, value=value: names.__setitem__(name, value))


def _exchange_methods(twins: Compilable, undo: list) -> None:
    """`x.sum()`: when Triton is imported for interpreting, it wraps such functions in plain ones."""
    import triton.language as tl

    for name, value in list(vars(tl.tensor).items()):
        if type(value) is FunctionType and value.__closure__:
            inner = [cell.cell_contents for cell in value.__closure__ if twins.is_interpreted(cell.cell_contents)]
            if inner:
                setattr(tl.tensor, name, twins.of(inner[0]))
                undo.append(lambda name=name, value=value: setattr(tl.tensor, name, value))


def _exchange_captured(function: FunctionType, twins: Compilable, undo: list) -> None:
    """Functions that a kernel, defined inside of another function, took from there."""
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if twins.is_interpreted(value):
            cell.cell_contents = twins.of(value)
            undo.append(lambda cell=cell, value=value: setattr(cell, "cell_contents", value))
            _exchange_captured(value.fn, twins, undo)
