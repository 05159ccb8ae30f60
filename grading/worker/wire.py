"""Frames between supervisor and worker: a JSON header and a safetensors body. Nothing is ever pickled.

Both sides use this module, and each trusts the other's frames only as far as it checks them: lengths are capped
before anything is read, and a tree that does not decode is a WireError, never a crash.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from dataclasses import fields
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from grading.worker.memory import map_tensors, sealed_memory
from labkit.spec import Case, Tree, Trouble
from labkit.tree import Opaque, bounded

MAX_HEADER_BYTES = 4 * 2**20
MAX_BODY_BYTES = 256 * 2**20
_LENGTHS = struct.Struct("<IQ")


class WireError(Exception):
    """The other side sent something that is not a frame, or hung up in the middle of one."""


class Closed(WireError):
    """The other side hung up between two frames."""


class Channel:
    """Frames over a connected stream socket.

    takes_memory: whether tensors may come as shared memory, which only the worker accepts.
    """

    def __init__(self, sock: socket.socket, takes_memory: bool = False) -> None:
        self._socket = sock
        self._takes_memory = takes_memory
        self._memory: int | None = None

    def send(
        self,
        kind: str,
        parts: dict[str, Tree] | None = None,
        deadline: float | None = None,
        as_memory: bool = False,
    ) -> None:
        """Send a frame of plain trees. Raises TimeoutError at `deadline` (time.monotonic), or Closed.

        as_memory: hand the tensors over as read-only memory, which the other side maps and never has to copy.
        """
        tensors: dict[str, torch.Tensor] = {}
        header = json.dumps({"kind": kind, "parts": _encode(parts or {}, tensors)}).encode()
        body = save(tensors) if tensors else b""
        self._socket.settimeout(_left(deadline))
        try:
            if as_memory and body:
                with sealed_memory(body) as descriptor:
                    socket.send_fds(self._socket, [_LENGTHS.pack(len(header), 0)], [descriptor])
                self._socket.sendall(header)
            else:
                self._socket.sendall(_LENGTHS.pack(len(header), len(body)) + header + body)
        except BlockingIOError as error:
            raise TimeoutError from error
        except (BrokenPipeError, ConnectionError) as error:
            raise Closed(str(error)) from error

    def receive(self, deadline: float | None = None) -> tuple[str, dict[str, Tree]]:
        """The next frame's kind and parts. Raises TimeoutError at `deadline` (time.monotonic), Closed, WireError."""
        header_bytes, body_bytes = _LENGTHS.unpack(self._read(_LENGTHS.size, deadline, at_start=True))
        if header_bytes > MAX_HEADER_BYTES or body_bytes > MAX_BODY_BYTES:
            raise WireError(f"a frame of {header_bytes + body_bytes:,} bytes is over the limit")
        header = self._read(header_bytes, deadline)
        body = self._read(body_bytes, deadline)
        try:
            frame = json.loads(header)
            tensors = load(body) if body else self._mapped()
            parts = _decode(frame["parts"], tensors)
            return str(frame["kind"]), parts if isinstance(parts, dict) else {}
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, SafetensorError, RuntimeError) as error:
            raise WireError(f"a frame that does not decode: {type(error).__name__}") from error

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, deadline: float | None, at_start: bool = False) -> bytes:
        chunks, missing = [], size
        while missing:
            self._socket.settimeout(_left(deadline))
            try:
                chunk = self._received(min(missing, 1 << 20))
            except BlockingIOError as error:
                raise TimeoutError from error
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not chunk:
                if at_start and missing == size:
                    raise Closed("hung up")
                raise WireError("hung up in the middle of a frame")
            chunks.append(chunk)
            missing -= len(chunk)
        return b"".join(chunks)

    def _received(self, size: int) -> bytes:
        if not self._takes_memory:
            return self._socket.recv(size)
        chunk, descriptors, _, _ = socket.recv_fds(self._socket, size, 1)
        if descriptors:
            self._memory = descriptors[0]
        return chunk

    def _mapped(self) -> dict[str, torch.Tensor]:
        """The tensors of the memory that came with the frame, if any did."""
        if self._memory is None:
            return {}
        descriptor, self._memory = self._memory, None
        try:
            return map_tensors(descriptor)
        finally:
            os.close(descriptor)


def _left(deadline: float | None) -> float | None:
    """Seconds until the deadline; 0, which takes what is there already, when it has passed.

    The other side may have answered in time while this machine stood still.
    """
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def case_to_tree(case: Case) -> dict[str, Tree]:
    """A case's fields as a plain tree."""
    return {item.name: _as_lists(getattr(case, item.name)) for item in fields(case)}


def case_from_tree(kind: type[Case], tree: dict[str, Tree]) -> Case:
    """The case of this type with these fields; lists become tuples again."""
    return kind(**{name: _as_tuples(value) for name, value in tree.items()})


def trouble_to_tree(trouble: Trouble | None) -> Tree:
    return None if trouble is None else {"kind": trouble.kind, "text": trouble.text, "where": trouble.where}


def trouble_from_tree(tree: Tree) -> Trouble | None:
    """A Trouble as the worker tells it, its texts cut to a readable length."""
    if tree is None:
        return None
    where = tree.get("where")
    return Trouble(clean(tree["kind"], 20), clean(tree["text"], 400), None if where is None else clean(where, 200))


def clean(text: object, limit: int) -> str:
    """A text that can be stored: of bounded length, and without the halves of characters that no file can hold."""
    return str(text)[:limit].encode("utf-8", "replace").decode()


def _encode(tree: Tree, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(tree, torch.Tensor):
        name = str(len(tensors))
        tensors[name] = tree.contiguous()
        return {"t": name}
    if isinstance(tree, dict):
        return {"d": {key: _encode(item, tensors) for key, item in tree.items()}}
    if isinstance(tree, list | tuple):
        return {"l": [_encode(item, tensors) for item in tree]}
    if isinstance(tree, Opaque):
        return {"o": [tree.type_name, tree.text]}
    return tree


def _decode(tree: Any, tensors: dict[str, torch.Tensor]) -> Tree:
    if not isinstance(tree, dict):
        if isinstance(tree, list):
            raise ValueError("a bare list")
        return bounded(tree)
    ((tag, value),) = tree.items()
    if tag == "t":
        return tensors[value]
    if tag == "d":
        return {str(key): _decode(item, tensors) for key, item in value.items()}
    if tag == "l":
        return [_decode(item, tensors) for item in value]
    if tag == "o":
        type_name, text = value
        return Opaque(str(type_name)[:200], str(text)[:200])
    raise ValueError("an unknown tag")


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, tuple | list) else value


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value
