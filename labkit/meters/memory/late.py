"""What is imported at its first use, imported before memory is counted: it is no answer's.

PyTorch loads its compiler, 65 MiB of Python's objects, at the first checkpoint, optimizer, tensor on the meta device
or `backward` with a gradient, whichever comes first; and an answer may import within its functions. In a block both
would count at the first call in a process, and at no later one. So nothing that is imported in a block is ever taken
off its figures, where other things could hide: it is there before.

Modules of a student's own and packages beyond these are left alone: they count where they are first imported.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import importlib
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType

from labkit.students_code import is_students

LATE = ("torch._dynamo", "numpy.fft", "numpy.ma", "numpy.polynomial", "numpy.random")
"""What PyTorch and numpy import by themselves."""
_CACHED = type(functools.cache(len))
ROOTS = frozenset({"torch", "numpy", *sys.stdlib_module_names}) - {"antigravity", "idlelib", "this", "turtle"}
"""What an answer may import where it likes; without those that show something."""


@functools.cache
def load_late_modules() -> None:
    """Once in a process. It takes seconds where PyTorch's compiler has not been used."""
    for name in LATE:
        importlib.import_module(name)


def load_imports_of(answers: Iterable[object]) -> None:
    """What the student's functions behind these answers import when they are called."""
    # What cannot be looked into, such as a class whose own code raises, is left to be imported when it is called.
    with contextlib.suppress(Exception):
        for name, parts in _imports(answers):
            if name.partition(".")[0] in ROOTS:
                # A name that is not there is the answer's to find out.
                with contextlib.suppress(Exception):
                    __import__(name, fromlist=parts)


def _imports(answers: Iterable[object]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """("torch.nn", ("functional",)) for `from torch.nn import functional`, ("math", ()) for `import math`."""
    for code in _codes(answers):
        before = None
        for instruction in dis.get_instructions(code):
            if instruction.opname == "IMPORT_NAME" and instruction.argval:
                yield instruction.argval, before if isinstance(before, tuple) else ()
            before = instruction.argval


def _codes(answers: Iterable[object]) -> Iterator[CodeType]:
    """The code of the student's functions and classes, of what they name, enclose and define within."""
    seen: dict[int, object] = {}
    left = list(answers)
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, FunctionType):
            if is_students(one.__code__.co_filename):
                for code in _with_those_within(one.__code__):
                    yield code
                    left += (one.__globals__[name] for name in code.co_names if name in one.__globals__)
                for cell in one.__closure__ or ():
                    with contextlib.suppress(ValueError):  # it is empty
                        left.append(cell.cell_contents)
        elif isinstance(one, type):
            if _is_of_a_student(one):
                left += (*vars(one).values(), *one.__bases__)
        elif isinstance(one, staticmethod | classmethod | MethodType):
            left.append(one.__func__)
        elif isinstance(one, functools.partial):
            left.append(one.func)
        elif isinstance(one, _CACHED):
            left.append(one.__wrapped__)
        else:
            left.append(type(one))


def _is_of_a_student(one: type) -> bool:
    """Told by its module alone: there are thousands of methods in PyTorch's classes."""
    name = one.__module__
    if not isinstance(name, str) or name == "__main__" or name not in sys.modules:
        return True
    file = getattr(sys.modules[name], "__file__", None)
    return isinstance(file, str) and is_students(file)


def _with_those_within(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions and classes that it defines."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _with_those_within(const)
