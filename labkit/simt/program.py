"""A PTX program as data: modules, functions, instructions and their operands. `parse` makes them, nothing changes them.

What an instruction does is not here (`instructions`), nor in which order they run (`machine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Register:
    """A virtual register. slot: its number in its function; type: as declared, "b32", "f32", "pred"."""

    slot: int
    type: str
    name: str


@dataclass(frozen=True)
class Special:
    """A register that the hardware fills, such as "%tid.x"."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant. value: an int, or a float that was written by its bits (0f3F800000)."""

    value: int | float


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, a function or a label, plus bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """What stands in brackets: base plus offset bytes."""

    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """{a, b, c, d}; None where the item is `_`."""

    items: tuple[Operand | None, ...]


@dataclass(frozen=True)
class Pair:
    """a|b: two results."""

    first: Operand | None
    second: Operand | None


@dataclass(frozen=True)
class Negated:
    """!p: the opposite of a predicate."""

    register: Register


@dataclass(frozen=True)
class Group:
    """(a, b): the arguments or results of a call."""

    items: tuple[Operand, ...]


Operand = Register | Special | Immediate | Symbol | Address | Vector | Pair | Negated | Group


@dataclass(frozen=True)
class Instruction:
    """One instruction. opcode "ld", modifiers ("global", "f32"); line: of the student's source, 0 where unknown.

    guard: executed only by the lanes where this predicate is true.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand | None, ...]
    guard: Register | Negated | None
    line: int

    @property
    def name(self) -> str:
        """As PTX writes it: "ld.global.f32"."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def type(self) -> str:
        """The last modifier, which nearly always is the type of what is worked on."""
        return self.modifiers[-1] if self.modifiers else ""


@dataclass(frozen=True)
class Variable:
    """A variable in memory. space: "global", "const", "shared", "local"; size 0: as large as the launch makes it.

    words: initial values, of `word_bytes` bytes each; a word may be a symbol, whose address it is.
    """

    name: str
    space: str
    align: int
    size: int
    word_bytes: int = 1
    words: tuple[int | Symbol, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function. type "b8" with size > 1: a struct passed by value."""

    name: str
    type: str
    size: int
    align: int


@dataclass(frozen=True)
class Function:
    """A kernel (entry) or device function. labels: name -> index into `code`; tables: name -> labels of a switch."""

    name: str
    entry: bool
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]
    code: tuple[Instruction, ...]
    labels: Mapping[str, int]
    tables: Mapping[str, tuple[str, ...]]
    max_threads: int | None = None


@dataclass(frozen=True)
class Module:
    """What one compilation made."""

    functions: Mapping[str, Function]
    variables: Mapping[str, Variable]
