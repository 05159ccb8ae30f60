"""Launch a kernel on the CPU, whatever it was decorated for, and say where in it and in which program it failed.

Launches take turns: the interpreter has one builder for the whole process. An endless kernel is not ended here, but it
is Python code, so an interrupt or `labkit.limits` ends it.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable
from types import ModuleType, TracebackType

import numpy as np
from torch.utils._python_dispatch import _disable_current_modes

from labkit.interpreter.arguments import check_arguments, checked_grid
from labkit.interpreter.language import Language


class Gate:
    """One launch at a time; `running` while a kernel's programs run."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.running = False


class _Nothing:
    def restore(self) -> None:
        """The language is given back by the launch."""


def patch(interpreter: ModuleType) -> None:
    """Replace how the interpreter launches and nests, and send launches of compiled kernels to it."""
    gate = Gate()
    _patch_executor(interpreter, gate)
    _patch_calls(interpreter, gate)


def _patch_executor(interpreter: ModuleType, gate: Gate) -> None:
    executor = interpreter.GridExecutor
    stock = executor.__call__
    language = Language(interpreter)

    def launch(self, *args, **kwargs):
        name = self.fn.__name__
        given = {**dict(zip(self.arg_names, args)), **kwargs}
        check_arguments(name, given, self.arg_names, self.constexprs)
        self.grid = checked_grid(name, self.grid)
        with gate.lock:
            if gate.running:
                raise RuntimeError(f"kernel {name} is launched inside a kernel: call it without a grid, {name}(...)")
            language.put()
            gate.running = True
            try:
                # The interpreter's own copies and casts are not the student's operations: no meter shall see them.
                # A GPU computes infinities and NaN without a word, and a warning in a graded cell costs its points.
                with _disable_current_modes(), np.errstate(all="ignore"):
                    return stock(self, *args, **kwargs)
            except interpreter.InterpreterError as error:
                cause = _innermost(error, interpreter.InterpreterError)
                program = interpreter.interpreter_builder.grid_idx
                raise interpreter.InterpreterError(_message(self.fn, program, cause, given)) from cause
            finally:
                gate.running = False
                language.take_back()

    executor.__call__ = launch
    interpreter._patch_lang = lambda fn: _Nothing()


def _patch_calls(interpreter: ModuleType, gate: Gate) -> None:
    """A function called without a grid needs a running kernel; one made for the compiler gets an interpreted twin."""
    from triton.runtime.jit import JITFunction

    interpreted = interpreter.InterpretedFunction
    call_interpreted = interpreted.__call__

    def call(self, *args, **kwargs):
        if not gate.running:
            name = self.fn.__name__
            raise RuntimeError(f"{name} is a Triton kernel and was called without a grid: {name}[grid](...)")
        try:
            return call_interpreted(self, *args, **kwargs)
        except interpreter.InterpreterError as error:
            cause = _innermost(error, interpreter.InterpreterError)
        # Unwrapped: each wrapping quotes the one inside, which doubles its backslashes, and 30 calls deep fills memory.
        raise cause

    def twin(function):
        known = vars(function)
        if "_labkit_twin" not in known:
            known["_labkit_twin"] = interpreted(function.fn)
        return known["_labkit_twin"]

    def run(self, *args, grid, warmup, **kwargs):
        return twin(self).run(*args, grid=grid, warmup=warmup, **kwargs)

    interpreted.__call__ = call
    JITFunction.run = run
    JITFunction.__call__ = lambda self, *args, **kwargs: call(twin(self), *args, **kwargs)


def _innermost(error: BaseException, wrapper: type) -> BaseException:
    """What was raised in the kernel, below one wrapping for each function that it passed through."""
    while isinstance(error, wrapper) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _message(kernel: Callable, program: tuple[int, ...], cause: BaseException, given: dict[str, object]) -> str:
    """Where and why on the first line, which is the one that a check shows; below it, the kernel's own line."""
    file = kernel.__code__.co_filename
    number = _last_line_in(file, cause.__traceback__)
    where = f"kernel {kernel.__name__} failed in program {program}" + (f", line {number}" if number else "")
    what, _, more = f"{type(cause).__name__}: {cause}".partition("\n")
    nothing = ", ".join(name for name, value in given.items() if value is None)
    if nothing and isinstance(cause, AttributeError):
        what += f" (None was given for {nothing})"
    line = linecache.getline(file, number).strip() if number else ""
    return "\n".join(part for part in (f"{where}: {what}", f"    {line}" if line else "", more) if part)


def _last_line_in(file: str, traceback: TracebackType | None) -> int | None:
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
