"""Launch a kernel on the CPU, whatever it was decorated for, and say where in it and in which program it failed.

Launches take turns: the interpreter has one builder for the whole process. An endless kernel is not ended here, but it
is Python code, so an interrupt or `labkit.limits` ends it.
"""

from __future__ import annotations

import linecache
import operator
import threading
from collections.abc import Callable
from types import ModuleType, TracebackType

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from labkit.interpreter.language import Language

MAX_GRID = (2**31 - 1, 65535, 65535)
"""Programs along each axis: CUDA's limits, so that a grid that works here works there."""


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
        _check_tensors(name, {**dict(zip(self.arg_names, args)), **kwargs})
        self.grid = _checked_grid(name, self.grid)
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
                where = _place(name, self.fn.__code__.co_filename, interpreter.interpreter_builder.grid_idx, cause)
                raise interpreter.InterpreterError(f"{where}\n{type(cause).__name__}: {cause}") from cause
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
        return call_interpreted(self, *args, **kwargs)

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


def _checked_grid(kernel: str, grid: object) -> Callable[[dict], tuple[int, ...]]:
    def checked(args: dict) -> tuple[int, ...]:
        value = grid(args) if callable(grid) else grid
        if not isinstance(value, tuple | list) or not 1 <= len(value) <= 3:
            raise ValueError(f"the grid of kernel {kernel} must be a tuple of 1 to 3 integers, not {value!r}")
        try:
            sizes = tuple(operator.index(size) for size in value)
        except TypeError:
            raise ValueError(
                f"the grid of kernel {kernel} must be of integers, not {value!r}; triton.cdiv(n, BLOCK_SIZE) rounds up"
            ) from None
        if any(not 0 <= size <= most for size, most in zip(sizes, MAX_GRID)):
            raise ValueError(f"the grid of kernel {kernel} is {sizes}; each axis has 0 to {MAX_GRID[: len(sizes)]}")
        return sizes

    return checked


def _check_tensors(kernel: str, arguments: dict[str, object]) -> None:
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor) and value.device.type not in ("cpu", "cuda"):
            raise ValueError(
                f"argument {name} of kernel {kernel} is on device {value.device}, which holds no data to load: "
                "give it a tensor on the CPU"
            )


def _innermost(error: BaseException, wrapper: type) -> BaseException:
    """What was raised in the kernel, below one wrapping for each function that it passed through."""
    while isinstance(error, wrapper) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _place(kernel: str, file: str, program: tuple[int, ...], cause: BaseException) -> str:
    line = _last_line_in(file, cause.__traceback__)
    text = linecache.getline(file, line).strip() if line else ""
    return f"kernel {kernel} failed in program {program}" + (f", line {line}: {text}" if line else "")


def _last_line_in(file: str, traceback: TracebackType | None) -> int | None:
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
