"""Declarations of variables in PTX: their space, size and initial bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from labkit.simt.operands import integer, read_operand, signed_integer
from labkit.simt.program import Symbol, Variable
from labkit.simt.tokens import PtxSyntaxError, Tokens
from labkit.simt.types import type_bytes


def read_variables(space: str, tokens: Tokens) -> list[Variable]:
    """Variables of one declaration, up to its semicolon: `.align 4 .b8 coef[16] = {0, 0, 128, 63}, x;`."""
    align, kind = 0, ""
    while tokens.next.startswith("."):
        token = tokens.take()
        if token == ".align":
            align = integer(tokens.take())
        elif token == ".attribute":
            raise PtxSyntaxError(f"variables with an attribute (.{space} .attribute) are not executed")
        else:
            kind += token
    vector = re.match(r"\.v([24])", kind)
    word_bytes = type_bytes(kind.rsplit(".", 1)[-1])
    found = []
    while True:
        name, count = tokens.take(), int(vector[1]) if vector else 1
        while tokens.accept("["):
            count = 0 if tokens.next == "]" else count * integer(tokens.take())
            tokens.expect("]")
        names = [name]
        if tokens.accept("<"):
            names = [f"{name}{i}" for i in range(integer(tokens.take()))]
            tokens.expect(">")
        words = _initial(tokens) if tokens.accept("=") else ()
        if words and count == 0:
            count = len(words)
        size = count * word_bytes
        found += [Variable(one, space, max(align, word_bytes), size, word_bytes, words) for one in names]
        if not tokens.accept(","):
            tokens.expect(";")
            return found


def _initial(tokens: Tokens) -> tuple[int | Symbol, ...]:
    if tokens.accept("{"):
        words: list[int | Symbol] = []
        while not tokens.accept("}"):
            words += _initial(tokens)
            tokens.accept(",")
        return tuple(words)
    if tokens.accept("generic"):
        tokens.expect("(")
        words = _initial(tokens)
        tokens.expect(")")
        return words
    if tokens.next[:1].isdigit() and tokens.next[1:2] in ("f", "d", "F", "D"):
        return (int(tokens.take()[2:], 16),)
    if tokens.next in ("-", "+") or tokens.next[:1].isdigit():
        return (signed_integer(tokens),)
    operand = read_operand(tokens, {})
    if not isinstance(operand, Symbol):
        raise PtxSyntaxError("an initial value in the PTX is neither a number nor a name")
    return (operand,)


def constant_bytes(variable: Variable, addresses: Mapping[str, int]) -> bytes:
    """The initial bytes of a variable. addresses: of the symbols that its words may name."""
    data = bytearray(variable.size)
    for i, word in enumerate(variable.words):
        value = addresses[word.name] + word.offset if isinstance(word, Symbol) else word
        piece = (value % (1 << (8 * variable.word_bytes))).to_bytes(variable.word_bytes, "little")
        data[i * variable.word_bytes : (i + 1) * variable.word_bytes] = piece
    return bytes(data)
