"""See while an answer runs whether the student's code calls what its exercise forbids, whatever its text says.

The text is `labkit.forbids`'s. Here a name may come out of a list, a loop, a pickle or another module: what counts is
the function that is called, and that the student's own code calls it; a library that does so for itself is free.

It does not see a function in C that another one in C calls (`map(math.fsum, ...)`), unless it is one of torch's on
tensors, nor what other threads do. It runs beside the student's code, which can switch it off: `find_disguise` notes
the ways that do.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType

import torch
from torch.overrides import TorchFunctionMode

from labkit.forbids import METHOD, Forbidden
from labkit.students_code import is_students, line_of

BETWEEN = ("/torch/autograd/function.py", "/torch/nn/modules/module.py", "/torch/_compile.py", "/torch/_dynamo/")
"""Where PyTorch calls on behalf of whoever called it."""

DEEPEST = 16
"""Wrappers that are looked into, one within another."""


@dataclass
class Watch:
    """What is looked for, and what was found."""

    functions: dict[str, list[tuple[object, str]]] = field(default_factory=dict)
    """Functions in C by their last name: each with its dotted one."""
    codes: dict[CodeType, str] = field(default_factory=dict)
    wrappers: set[CodeType] = field(default_factory=set)
    classes: dict[type, str] = field(default_factory=dict)
    found: Forbidden | None = None


def forbidden_call(names: Sequence[str], answers: Mapping[str, object], run: Callable[[], object]) -> Forbidden | None:
    """The first call of one of these that the student's code makes while `run` does, if it makes one.

    names: dotted, as in `Exercise.forbids`; one that is not loaded cannot be called. answers: refused without a run
    where one of them is such a function itself. Whatever `run` raises is passed over: it is not judged here.
    """
    watch = _watch_for(names)
    for answer in answers.values():
        for one in _stands_for(answer):
            if name := _named(one, watch) or _class_or_code(one, watch):
                return Forbidden(name, "")
    with _watched(watch):
        try:
            run()
        except KeyboardInterrupt:
            raise
        except BaseException:
            return watch.found
    return watch.found


def _watch_for(names: Iterable[str]) -> Watch:
    watch = Watch()
    for name, target in _loaded(names):
        if isinstance(target, type):
            watch.classes[target] = name
            # `apply` of an autograd.Function makes no object.
            target = vars(target).get("forward") if issubclass(target, torch.autograd.Function) else None
        while target is not None:
            target = getattr(target, "__func__", target)
            inner = getattr(target, "__wrapped__", None)
            if code := getattr(target, "__code__", None):
                (watch.codes.setdefault(code, name) if inner is None else watch.wrappers.add(code))
            elif callable(target):
                watch.functions.setdefault(name.rpartition(".")[2], []).append((target, name))
            target = inner
    return watch


def _loaded(names: Iterable[str]) -> Iterator[tuple[str, object]]:
    """What these names mean in the modules that are loaded; nothing is imported for it."""
    for name in names:
        if "." not in name:
            yield name, getattr(builtins, name)
            continue
        parts = name.split(".")
        for n in range(len(parts) - 1, 0, -1):
            found = sys.modules.get(".".join(parts[:n]))
            if found is not None:
                for part in parts[n:]:
                    # A module that loads its parts on first use would load one for being asked.
                    found = vars(found).get(part) if hasattr(found, "__path__") else getattr(found, part, None)
                if found is not None:
                    yield name, found
                break


@contextmanager
def _watched(watch: Watch) -> Iterator[None]:
    def look(frame: FrameType, event: str, argument: object) -> None:
        if watch.found is not None:
            return
        if event == "call":
            code = frame.f_code
            if code in watch.codes or (watch.classes and code.co_name == "__init__"):
                name = watch.codes.get(code) or _class_of(frame, watch)
                if name and (caller := _caller(frame.f_back, watch)):
                    watch.found = Forbidden(name, _at(caller))
        elif event == "c_call" and (name := _named(argument, watch)) and is_students(frame.f_code.co_filename):
            watch.found = Forbidden(name, _at(frame))

    class Calls(TorchFunctionMode):
        """Functions of torch that are called from C, as by `map`."""

        def __torch_function__(self, func, types, args=(), kwargs=None):
            name = None if watch.found else _named(func, watch)
            if name and (caller := _caller(sys._getframe(1), watch)):
                watch.found = Forbidden(name, _at(caller))
            return func(*args, **(kwargs or {}))

    before = sys.getprofile()
    with Calls():
        sys.setprofile(look)
        try:
            yield
        finally:
            sys.setprofile(before)


def _named(called: object, watch: Watch) -> str | None:
    """The forbidden name of a function in C, if it has one. Asked at every call."""
    known = watch.functions.get(getattr(called, "__name__", None))
    if known is None:
        return None
    return next((dotted for target, dotted in known if called is target or _is_same(called, target, dotted)), None)


def _is_same(called: object, target: object, dotted: str) -> bool:
    """Whether two objects stand for one function: methods are made anew whenever they are looked up."""
    if dotted.startswith(METHOD):
        return isinstance(getattr(called, "__self__", None), torch.Tensor)
    return type(called) is type(target) and called == target


def _stands_for(answer: object) -> Iterator[object]:
    """The answer, and what is called in its place: within `functools.partial` and its like, behind a bound method."""
    for _ in range(DEEPEST):
        yield answer
        if isinstance(bound_to := getattr(answer, "__self__", None), type):
            yield bound_to
        inner = answer.func if isinstance(answer, functools.partial) else getattr(answer, "__wrapped__", None)
        answer = inner if inner is not None else getattr(answer, "__func__", None)
        if answer is None:
            return


def _class_or_code(answer: object, watch: Watch) -> str | None:
    """The name of a forbidden function, or of a forbidden class that this is or is derived from."""
    if isinstance(answer, type):
        return next((watch.classes[kind] for kind in answer.__mro__ if kind in watch.classes), None)
    return watch.codes.get(getattr(answer, "__code__", None))


def _class_of(frame: FrameType, watch: Watch) -> str | None:
    """The forbidden class that an object which begins here is of, or is derived from."""
    names = frame.f_code.co_varnames
    made = frame.f_locals.get(names[0]) if names else None
    return next((watch.classes[kind] for kind in type(made).__mro__ if kind in watch.classes), None)


def _caller(frame: FrameType | None, watch: Watch) -> FrameType | None:
    """The student's frame that called, past what only passes calls on; None where a library did."""
    while frame is not None:
        if is_students(frame.f_code.co_filename):
            return frame
        passes_on = frame.f_code in watch.wrappers or any(part in frame.f_code.co_filename for part in BETWEEN)
        if not passes_on:
            return None
        frame = frame.f_back
    return None


def _at(frame: FrameType) -> str:
    return line_of(frame.f_code.co_filename, frame.f_lineno)
