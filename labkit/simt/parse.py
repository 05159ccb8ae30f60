"""PTX text -> `program.Module`. What it cannot read it refuses; it never skips an instruction.

Sections with debug information are left out, and so are hints to the assembler (.pragma, .maxnreg and the like).
"""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import replace

from labkit.simt.declarations import read_variables
from labkit.simt.lines import read_lines
from labkit.simt.operands import integer, read_operand
from labkit.simt.program import (
    Function,
    Instruction,
    Module,
    Negated,
    Operand,
    Parameter,
    Register,
    Variable,
)
from labkit.simt.tokens import PtxSyntaxError, Tokens, tokenize
from labkit.simt.types import type_bytes
from labkit.simt.values import refuse

LINKING = {".visible", ".extern", ".weak", ".common"}
SPACES = {".global", ".const", ".shared", ".local", ".param"}
HINTS = {".maxntid": 3, ".reqntid": 3, ".minnctapersm": 1, ".maxnreg": 1, ".maxnctapersm": 1, ".noreturn": 0}
_HEADER = re.compile(r"^\s*\.(version|target|address_size|file)\b.*$", re.MULTILINE)
MAX_REGISTERS = 20_000
MAX_INSTRUCTIONS = 100_000


def parse(ptx: str, name: str = "kernel.cu") -> Module:
    """Read what NVRTC wrote. name: the file name that the source was compiled under. Raises `PtxSyntaxError`."""
    text, _ = read_lines(ptx, name)
    tokens = tokenize(_HEADER.sub("", text))
    functions: dict[str, Function] = {}
    variables: dict[str, Variable] = {}
    while tokens.next:
        token = tokens.take()
        if token == ".section":
            tokens.take()
            tokens.skip_braces()
        elif token in (".entry", ".func"):
            if function := _FunctionReader(tokens).read(entry=token == ".entry"):
                functions[function.name] = function
        elif token in SPACES:
            for variable in read_variables(token[1:], tokens):
                variables[variable.name] = variable
        elif token not in LINKING and token not in (";", ".loc"):
            raise PtxSyntaxError(f"{token} in the PTX is not known")
        elif token == ".loc":
            tokens.take()
    return Module(functions, variables)


class _FunctionReader:
    """Reads one .entry or .func: its head, its body, the scopes inside."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.registers: list[Register] = []
        self.scope: ChainMap[str, Register] = ChainMap()
        self.variables: list[Variable] = []
        self.code: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.line = 0
        self.max_threads: int | None = None

    def read(self, entry: bool) -> Function | None:
        """The function; None for a declaration without a body."""
        tokens = self.tokens
        results = self._parameters() if tokens.next == "(" else ()
        name = tokens.take()
        parameters = self._parameters() if tokens.next == "(" else ()
        self._hints()
        if tokens.accept(";"):
            return None
        tokens.expect("{")
        self._body()
        return Function(
            name,
            entry,
            parameters,
            results,
            tuple(self.registers),
            tuple(self.variables),
            tuple(self.code),
            self.labels,
            self.tables,
            self.max_threads,
        )

    def _hints(self) -> None:
        tokens = self.tokens
        while tokens.next in HINTS or tokens.next == ".pragma":
            hint = tokens.take()
            if hint == ".pragma":
                tokens.take()
                tokens.accept(";")
                continue
            numbers = []
            for _ in range(HINTS[hint]):
                if tokens.next[:1].isdigit():
                    numbers.append(integer(tokens.take()))
                    tokens.accept(",")
            if hint in (".maxntid", ".reqntid"):
                self.max_threads = 1
                for number in numbers:
                    self.max_threads *= number

    def _parameters(self) -> tuple[Parameter, ...]:
        tokens = self.tokens
        tokens.expect("(")
        found = []
        while not tokens.accept(")"):
            tokens.expect(".param", ".reg")
            align, kind = 0, "b32"
            while tokens.next.startswith("."):
                token = tokens.take()
                if token == ".align":
                    align = integer(tokens.take())
                elif token not in (".ptr", ".global", ".const", ".shared", ".local"):
                    kind = token[1:]
            name, size = tokens.take(), type_bytes(kind)
            if tokens.accept("["):
                size = 0 if tokens.next == "]" else size * integer(tokens.take())
                tokens.expect("]")
            found.append(Parameter(name, kind, size, max(align, type_bytes(kind))))
            tokens.accept(",")
        return tuple(found)

    def _body(self) -> None:
        tokens, depth = self.tokens, 1
        while depth:
            token = tokens.next
            if not token:
                raise PtxSyntaxError("a function of the PTX does not end")
            if tokens.accept("{"):
                self.scope, depth = self.scope.new_child(), depth + 1
            elif tokens.accept("}"):
                self.scope, depth = self.scope.parents, depth - 1
            elif tokens.accept(";"):
                pass
            elif token.startswith("."):
                self._directive()
            elif tokens.items[tokens.at + 1 : tokens.at + 2] == [":"]:
                self._label()
            else:
                self.code.append(self._instruction())
                if len(self.code) > MAX_INSTRUCTIONS:
                    raise PtxSyntaxError(f"the kernel has more than {MAX_INSTRUCTIONS:,} instructions")

    def _label(self) -> None:
        name = self.tokens.take()
        self.tokens.expect(":")
        if self.tokens.next == ".branchtargets":
            self.tokens.take()
            targets = []
            while not self.tokens.accept(";"):
                targets.append(self.tokens.take())
                self.tokens.accept(",")
            self.tables[name] = tuple(targets)
        elif self.tokens.next == ".callprototype":
            while not self.tokens.accept(";"):
                self.tokens.take()
        else:
            self.labels[name] = len(self.code)

    def _directive(self) -> None:
        tokens = self.tokens
        token = tokens.take()
        if token == ".loc":
            self.line = integer(tokens.take()) or self.line
        elif token == ".reg":
            self._declare_registers()
        elif token == ".pragma":
            tokens.take()
            tokens.expect(";")
        elif token == ".param":
            read_variables("param", tokens)
        elif token in SPACES:
            self.variables += read_variables(token[1:], tokens)
        else:
            raise PtxSyntaxError(f"{token} in the PTX is not known")

    def _declare_registers(self) -> None:
        tokens = self.tokens
        kind = tokens.take()[1:]
        while True:
            name = tokens.take()
            names = [name]
            if tokens.accept("<"):
                names = [f"{name}{i}" for i in range(min(integer(tokens.take()), MAX_REGISTERS + 1))]
                tokens.expect(">")
            if len(self.registers) + len(names) > MAX_REGISTERS:
                raise PtxSyntaxError(f"a function has more than {MAX_REGISTERS:,} registers, too many to execute")
            for one in names:
                self.scope[one] = Register(len(self.registers), kind, one)
                self.registers.append(self.scope[one])
            if not tokens.accept(","):
                tokens.expect(";")
                return

    def _instruction(self) -> Instruction:
        tokens = self.tokens
        guard: Register | Negated | None = None
        if tokens.accept("@"):
            operand = read_operand(tokens, self.scope)
            if not isinstance(operand, Register | Negated):
                raise PtxSyntaxError("a guard of the PTX is no predicate")
            guard = operand
        opcode, *modifiers = tokens.take().replace("::", ".").split(".")
        one = Instruction(opcode, tuple(modifiers), (), guard, self.line)
        try:
            return replace(one, operands=self._operands())
        except PtxSyntaxError as error:
            raise refuse(one, f"its operands: {error}") from None

    def _operands(self) -> tuple[Operand | None, ...]:
        tokens = self.tokens
        operands: list[Operand | None] = []
        while not tokens.accept(";"):
            operands.append(read_operand(tokens, self.scope))
            if not tokens.accept(","):
                tokens.expect(";")
                break
        return tuple(operands)
