"""A launch's arguments -> the bytes of the kernel's parameters: tensors as virtual addresses, numbers in their type."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch

from labkit.simt.program import Parameter
from labkit.simt.signature import CParameter
from labkit.simt.types import dtype_of

Argument = torch.Tensor | int | float | bool | bytes


class Places(Protocol):
    """Where tensors lie: `labkit.simt.memory.Memory`, or a GPU."""

    def add_tensor(self, name: str, tensor: torch.Tensor) -> int: ...


def names_of(parameters: Sequence[Parameter], known: Sequence[CParameter]) -> list[str]:
    """The names of the parameters for messages."""
    if len(known) == len(parameters):
        return [one.name for one in known]
    return [f"argument {i + 1}" for i in range(len(parameters))]


def bind(
    parameters: Sequence[Parameter], known: Sequence[CParameter], arguments: Sequence[Argument], memory: Places
) -> dict[str, bytes]:
    """The bytes of each parameter by its PTX name. Raises TypeError and ValueError, by the parameter's own name."""
    if len(parameters) != len(arguments):
        raise TypeError(f"the kernel takes {len(parameters)} arguments, {len(arguments)} were given")
    names = names_of(parameters, known)
    found = {}
    for i, (one, argument) in enumerate(zip(parameters, arguments, strict=True)):
        c_type = known[i] if len(known) == len(parameters) else None
        if isinstance(argument, torch.Tensor):
            check_tensor(names[i], one, c_type, argument)
            found[one.name] = struct.pack("<Q", memory.add_tensor(names[i], argument))
        else:
            found[one.name] = number_bytes(names[i], one, c_type, argument)
    return found


def check_tensor(name: str, one: Parameter, c_type: CParameter | None, tensor: torch.Tensor) -> None:
    """Raise TypeError where a tensor does not fit the parameter."""
    if one.size != 8 or (c_type is not None and not c_type.pointer):
        raise TypeError(f"{name} is no pointer in the kernel, but a tensor was given")
    if c_type is not None and not c_type.takes(tensor.dtype):
        raise TypeError(f"{name} points to {c_type.type} in the kernel, but the tensor is {tensor.dtype}")


def number_bytes(name: str, one: Parameter, c_type: CParameter | None, argument: object) -> bytes:
    """A number or the bytes of a struct as the parameter's bytes."""
    if isinstance(argument, bytes):
        if len(argument) != one.size:
            raise ValueError(f"{name} has {one.size} bytes in the kernel, {len(argument)} were given")
        return argument
    if isinstance(argument, np.generic):
        argument = argument.item()
    if not isinstance(argument, int | float):
        raise TypeError(f"{name} must be a tensor or a number, not {type(argument).__name__}")
    if c_type is not None and c_type.pointer:
        raise TypeError(f"{name} is a pointer in the kernel, but the number {argument} was given")
    floating = one.type.startswith("f") or (c_type is not None and c_type.type in ("float", "double"))
    if one.type == "b8" and c_type is not None and c_type.type in ("half", "__half") and one.size == 2:
        return np.float16(argument).tobytes()
    if floating:
        return struct.pack("<f" if one.size == 4 else "<d", argument)
    if isinstance(argument, float):
        raise TypeError(f"{name} is an integer in the kernel, but {argument} was given")
    if one.size not in (1, 2, 4, 8) or one.size != dtype_of(one.type).itemsize:
        raise TypeError(f"{name} is a struct of {one.size} bytes in the kernel: give its bytes")
    bits = 8 * one.size
    if not -(1 << (bits - 1)) <= argument < 1 << bits:
        raise ValueError(f"{name} = {argument} does not fit into {bits} bits")
    return (int(argument) % (1 << bits)).to_bytes(one.size, "little")
