"""Ranks that have sent all their frames before the router begins: whatever frames a test likes."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import torch

from grading.supervisor.ranks.router import Router
from grading.worker.wire.frames import Channel
from grading.worker.wire.tensor_bytes import pack
from labkit.ranks import UNIT, Cluster
from labkit.spec import Tree

Frame = tuple[str, dict[str, Tree]]
X = torch.arange(6.0)
WITHIN_S = 20.0


@contextlib.contextmanager
def scripted_ranks() -> Iterator[Callable[..., tuple[Router, list[Channel]]]]:
    """A router whose ranks have said all this already, and the ranks' ends."""
    opened: list[Channel] = []

    def make(*said: list[Frame], cluster: Cluster = UNIT, within_s: float = WITHIN_S) -> tuple[Router, list[Channel]]:
        ours, theirs = [], []
        for frames in said:
            one, other = map(Channel, socket.socketpair())
            opened.extend((one, other))
            ours.append(one)
            theirs.append(other)
            for kind, parts in frames:
                other.send(kind, parts, time.monotonic() + WITHIN_S)
        return Router(ours, cluster, time.monotonic() + within_s), theirs

    yield make
    for channel in opened:
        channel.close()


def observed(**parts: Tree) -> Frame:
    return "observed", {"got": None, "measured": {}, "trouble": None, **parts}


def send(to: Tree, tensor: torch.Tensor = X, **more: Tree) -> Frame:
    return "send", {"to": to, "tensor": pack(tensor), **more}


def receive(source: Tree, like: torch.Tensor = X) -> list[Frame]:
    form = {"shape": list(like.shape), "dtype": str(like.dtype).removeprefix("torch.")}
    return [("receive", {"source": source}), ("wait received", {"source": source, "number": 0, "like": form})]


def sent(to: int, number: Tree = 0) -> Frame:
    return "wait sent", {"to": to, "number": number}


SHAPE = {"shape": [6], "dtype": "float32"}


def enter(**parts: Tree) -> Frame:
    return "enter", {"name": "all_reduce", "inputs": [pack(X)], "op": "sum", "src": None, **parts}


def mark(held_bytes: Tree = None, label: str = "after") -> Frame:
    return "mark", {"label": label, "held_bytes": held_bytes}


DATA = torch.zeros(24, dtype=torch.uint8)
