"""How an answer was called, as a line of Python in the student's own names: for `Oracle.call`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import SimpleNamespace

import torch


def as_call(function: str, *positional: object, **named: object) -> str:
    """ "extrapolate({1: 325, 2: 532}, n_layers=5)": what can be pasted is written out, a tensor by dtype and shape."""
    arguments = [_literal(value) for value in positional]
    arguments += [f"{name}={_literal(value)}" for name, value in named.items()]
    return f"{function}({', '.join(arguments)})"


def fields_in_words(fields: Mapping[str, object]) -> str:
    """ "hidden_size=64, vocab_size=180"."""
    return ", ".join(f"{name}={_literal(value)}" for name, value in fields.items())


def _literal(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"<{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}>"
    if isinstance(value, SimpleNamespace):
        return as_call("Config", **vars(value))
    if isinstance(value, float) and value.is_integer() and abs(value) >= 1e9:
        # 312000000000000.0 is hard to count; both can be pasted.
        return format(Decimal(value).normalize(), "e")
    return repr(value)
