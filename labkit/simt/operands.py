"""Read operands from tokens: registers by the scope they are declared in, constants, addresses, lists."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from labkit.simt.program import Address, Group, Immediate, Negated, Operand, Pair, Register, Special, Symbol, Vector
from labkit.simt.tokens import PtxSyntaxError, Tokens

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?")


def integer(token: str) -> int:
    """The value of an integer constant: "0x10", "017" is octal as in C, "3U"."""
    digits = token.rstrip("U")
    if re.fullmatch(r"0[0-7]+", digits):
        return int(digits, 8)
    return int(digits, 0)


def signed_integer(tokens: Tokens) -> int:
    """Take an integer with an optional sign."""
    sign = -1 if tokens.accept("-") else 1
    return sign * integer(tokens.take())


def read_operand(tokens: Tokens, scope: Mapping[str, Register]) -> Operand | None:
    """Take one operand; None for `_`. scope: the registers by name."""
    first = _read_one(tokens, scope)
    if tokens.accept("|"):
        return Pair(first, _read_one(tokens, scope))
    return first


def _read_one(tokens: Tokens, scope: Mapping[str, Register]) -> Operand | None:
    token = tokens.take()
    if token == "_":
        return None
    if token == "!":
        register = _read_one(tokens, scope)
        if not isinstance(register, Register):
            raise PtxSyntaxError("! stands before what is no predicate in the PTX")
        return Negated(register)
    if token == "{":
        return Vector(_items(tokens, scope, "}"))
    if token == "(":
        return Group(_items(tokens, scope, ")"))
    if token == "[":
        return _address(tokens, scope)
    if token in "-+" and token:
        return Immediate(-integer(tokens.take()) if token == "-" else integer(tokens.take()))
    if token[:2] in ("0f", "0F") and len(token) == 10:
        return Immediate(struct.unpack(">f", bytes.fromhex(token[2:]))[0] if not _is_nan32(token) else float("nan"))
    if token[:2] in ("0d", "0D") and len(token) == 18:
        return Immediate(struct.unpack(">d", bytes.fromhex(token[2:]))[0])
    if _INTEGER.fullmatch(token):
        return Immediate(integer(token))
    return _named(token, tokens, scope)


def _is_nan32(token: str) -> bool:
    bits = int(token[2:], 16)
    return (bits & 0x7F800000) == 0x7F800000 and bool(bits & 0x7FFFFF)


def _named(token: str, tokens: Tokens, scope: Mapping[str, Register]) -> Operand:
    if token in scope:
        return scope[token]
    if token == "WARP_SZ":
        return Immediate(32)
    if token.startswith("%"):
        return Special(token)
    if not re.match(r"[A-Za-z_$]", token):
        raise PtxSyntaxError(f"{token!r} is no operand of the PTX")
    return Symbol(token, _offset(tokens))


def _offset(tokens: Tokens) -> int:
    if tokens.next in ("+", "-"):
        sign = -1 if tokens.take() == "-" else 1
        return sign * signed_integer(tokens)
    return 0


def _address(tokens: Tokens, scope: Mapping[str, Register]) -> Address:
    base = _read_one(tokens, scope)
    if not isinstance(base, Register | Symbol | Immediate):
        raise PtxSyntaxError("an address of the PTX starts with neither a register, a name nor a number")
    offset = _offset(tokens)
    tokens.expect("]")
    return Address(base, offset)


def _items(tokens: Tokens, scope: Mapping[str, Register], end: str) -> tuple[Operand | None, ...]:
    items = []
    while not tokens.accept(end):
        items.append(read_operand(tokens, scope))
        if not tokens.accept(","):
            tokens.expect(end)
            break
    return tuple(items)
