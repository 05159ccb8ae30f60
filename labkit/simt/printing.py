"""printf of device code: the format and the arguments of each lane -> lines of the process's output.

CUDA hands the arguments over as a piece of the thread's local memory, laid out as C lays out a struct. Lanes print one
after the other, in their order. Of very many lines the first are printed, and how many are left out is said once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from labkit.simt.lanes import Mask
from labkit.simt.memory import LOCAL_WINDOW

MOST_LINES = 1000
"""Of one launch, as many as anybody reads."""
MOST_BYTES = 4096
"""Of one text."""
WIDEST = 200
"""Of one number, with the blanks or zeros around it."""
_PIECE = re.compile(r"%%|%([-+ #0]*)(\d*|\*)(\.(?:\d*|\*))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp])")
_WIDTHS = {"ll": 8, "l": 8, "z": 8, "j": 8, "t": 8}


def print_lanes(m: Any, formats: np.ndarray, arguments: np.ndarray, mask: Mask) -> None:
    """Print what these lanes ask for. formats, arguments: addresses, of any of the lanes' shapes."""
    shape = mask.full.shape
    starts, places = (np.broadcast_to(values, shape) for values in (formats, arguments))
    for row, thread in zip(*mask.index, strict=True):
        m.n_printed += 1
        if m.n_printed > MOST_LINES:
            if m.n_printed == MOST_LINES + 1:
                print(f"(only the first {MOST_LINES:,} calls of printf are shown)")
            return
        local = m.local.data[row * shape[1] + thread, max(0, int(places[row, thread]) - LOCAL_WINDOW) :]
        print(formatted(text_at(m, int(starts[row, thread])), local.tobytes(), lambda at: text_at(m, at)), end="")


def text_at(m: Any, address: int) -> str:
    """The text that ends with a null byte at this address of global memory; "(?)" where there is none."""
    region = m.memory.nearest(address)
    if region is None or not region.low <= address < region.high:
        return "(?)"
    data = region.data[address - region.base :][:MOST_BYTES].tobytes()
    return data.split(b"\0", 1)[0].decode(errors="replace")


def formatted(template: str, data: bytes, text_of: Any) -> str:
    """What C's printf makes of a format and the bytes of its arguments. text_of: the text at an address, for %s."""
    numbers = _arguments(data)
    next(numbers)

    def piece(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        flags, width, precision, length, kind = found.groups()
        width, precision = (_length(piece, numbers) for piece in (width, precision))
        if kind in "fFeEgGaA":
            value: object = numbers.send("d")
            if kind in "aA":
                return float(value).hex()  # type: ignore[arg-type]
        elif kind in "sp":
            value = numbers.send("Q")
            if kind == "p":
                return f"{value:#x}"
            value = text_of(value)
        else:
            wide = _WIDTHS.get(length or "", 4) == 8
            value = numbers.send(("q" if wide else "i") if kind in "di" else ("Q" if wide else "I"))
            kind = "d" if kind == "u" else kind
        if kind == "c":
            value, kind = chr(int(value) & 0xFF), "s"  # type: ignore[call-overload]
        return f"%{flags}{width}{precision}{kind}" % (value,)

    return _PIECE.sub(piece, template)


def _length(piece: str | None, numbers: Any) -> str:
    """A width or a precision, "12", ".3" or taken from the arguments, for Python and not longer than WIDEST."""
    if not piece:
        return ""
    dot, digits = "." * piece.startswith("."), piece.removeprefix(".")
    value = int(numbers.send("i")) if digits == "*" else int(digits or 0)
    # A negative width means the left side, a negative precision none.
    sign = "-" if value < 0 and not dot else ""
    return "" if dot and value < 0 else f"{sign or dot}{min(abs(value), WIDEST)}"


def _arguments(data: bytes) -> Iterator[Any]:
    """Takes the format of the next argument, as `struct` has it, and gives the argument; 0 past the end."""
    at, value = 0, None
    while True:
        kind = yield value
        size = struct.calcsize(kind)
        at = -(-at // size) * size
        value = struct.unpack_from(kind, data, at)[0] if at + size <= len(data) else struct.unpack(kind, bytes(size))[0]
        at += size
