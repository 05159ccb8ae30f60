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
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from grading.worker.wire.safetensors import buffers_of, tensors_in
from grading.worker.wire.shared_memory import map_tensors, sealed_memory
from grading.worker.wire.typed import F, Frame, WireError, frame_of
from labkit.spec import Tree
from labkit.tree import Opaque, bounded

MAX_HEADER_BYTES = 4 * 2**20
MAX_BODY_BYTES = 256 * 2**20
_LENGTHS = struct.Struct("<IQ")
_SMALL_BYTES = 64 * 2**10


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

    def post(self, frame: Frame, deadline: float | None = None) -> None:
        """Send a frame. Raises TimeoutError at `deadline` (time.monotonic), or Closed."""
        if frame.as_memory:
            self.send(frame.kind, frame.to_parts(), deadline, as_memory=True)
        else:
            self.send(frame.kind, frame.to_parts(), deadline)

    def expect(self, due: type[F] | tuple[type[F], ...], deadline: float | None = None) -> F:
        """The next frame, which has to be of this type or one of these.

        Raises TimeoutError at `deadline` (time.monotonic), Closed, and WireError for whatever else comes.
        """
        kind, parts = self.receive(deadline)
        return frame_of(kind, parts, due if isinstance(due, tuple) else (due,))

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
        body = buffers_of(tensors)
        try:
            if as_memory and body:
                self._socket.settimeout(_left(deadline))
                with sealed_memory(body) as descriptor:
                    socket.send_fds(self._socket, [_LENGTHS.pack(len(header), 0)], [descriptor])
                self._socket.sendall(header)
                return
            n_bytes = sum(map(len, body))
            pieces = [_LENGTHS.pack(len(header), n_bytes), header, *body]
            # A small frame goes in one piece, a large one is not put together first.
            for piece in [b"".join(pieces)] if n_bytes < _SMALL_BYTES else pieces:
                self._socket.settimeout(_left(deadline))
                self._socket.sendall(piece)
        except BlockingIOError as error:
            raise TimeoutError from error
        except (BrokenPipeError, ConnectionError) as error:
            raise Closed(str(error)) from error

    def receive(self, deadline: float | None = None) -> tuple[str, dict[str, Tree]]:
        """The next frame's kind and parts. Raises TimeoutError at `deadline` (time.monotonic), Closed, WireError."""
        header_bytes, body_bytes = _LENGTHS.unpack(self._read(_LENGTHS.size, deadline, at_start=True))
        if header_bytes > MAX_HEADER_BYTES or body_bytes > MAX_BODY_BYTES:
            raise WireError(f"a frame of {header_bytes + body_bytes:,} bytes is over the limit")
        header = bytes(self._read(header_bytes, deadline))
        body = self._read(body_bytes, deadline)
        try:
            frame = json.loads(header)
            tensors = self._tensors(body) if body_bytes else self._mapped()
            parts = _decode(frame["parts"], tensors)
            kind = frame["kind"]
            if not isinstance(kind, str):
                raise TypeError("a kind that is no text")
            return kind, parts if isinstance(parts, dict) else {}
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, SafetensorError, RuntimeError) as error:
            raise WireError(f"a frame that does not decode: {type(error).__name__}") from error

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, deadline: float | None, at_start: bool = False) -> memoryview:
        # Memory that nobody has touched yet: what is announced need not come.
        data = memoryview(torch.empty(size, dtype=torch.uint8, device="cpu").numpy())
        n_read = 0
        while n_read < size:
            self._socket.settimeout(_left(deadline))
            try:
                n_more = self._receive_into(data[n_read:])
            except BlockingIOError as error:
                raise TimeoutError from error
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not n_more:
                if at_start and not n_read:
                    raise Closed("hung up")
                raise WireError("hung up in the middle of a frame")
            n_read += n_more
        return data

    def _receive_into(self, data: memoryview) -> int:
        if not self._takes_memory or len(data) > _LENGTHS.size:
            return self._socket.recv_into(data)
        # Memory comes with the lengths, which begin a frame.
        chunk, descriptors, _, _ = socket.recv_fds(self._socket, len(data), 1)
        data[: len(chunk)] = chunk
        if descriptors:
            self._memory = descriptors[0]
        return len(chunk)

    def _tensors(self, body: memoryview) -> dict[str, torch.Tensor]:
        return tensors_in(body) if self._takes_memory else load(bytes(body))

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
        if not isinstance(type_name, str) or not isinstance(text, str):
            raise ValueError("an opaque value without its texts")
        return Opaque(type_name[:200], text[:200])
    raise ValueError("an unknown tag")
