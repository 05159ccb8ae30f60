"""Every private name of PyTorch that the oracles rest on, in one place, found when it is asked for.

It gives each of them a name of ours and says what is missing from another PyTorch. What they do is not checked here.
"""

from __future__ import annotations

import contextlib
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

TRIED = ("2.11", "2.12", "2.13", "2.15")
"""The versions of PyTorch with which the tests of these oracles have passed."""
_NAMES = {
    "FakeStore": "torch.testing._internal.distributed.fake_pg",
    "LocalTensorMode": "torch.distributed._local_tensor",
    "LocalTensor": "torch.distributed._local_tensor",
    "get_schedule_ops": "torch.distributed.pipelining._schedule_visualizer",
    "_get_all_submeshes": "torch.distributed.device_mesh:DeviceMesh",
}


def private(name: str) -> Any:
    """The object of this name. Raises RuntimeError, with the versions that have it, where PyTorch has moved it."""
    try:
        return getattr(pkgutil.resolve_name(_NAMES[name]), name)
    except (ImportError, AttributeError) as error:
        tried = ", ".join(TRIED)
        where = f"{_NAMES[name]}.{name}"
        raise RuntimeError(f"PyTorch {torch.__version__} has no {where}; PyTorch {tried} has it") from error


def missing_names() -> list[str]:
    """Of the private names, those that this PyTorch has not."""
    missing = []
    for name in _NAMES:
        try:
            private(name)
        except RuntimeError:
            missing.append(name)
    return missing


@contextlib.contextmanager
def fake_ranks(n: int) -> Iterator[None]:
    """A default process group of n ranks of which this process is rank 0: its calls return at once, others there are
    none. Afterwards there is no group, as before. Raises RuntimeError where a real one is in use.
    """
    if dist.is_initialized():
        raise RuntimeError("this process belongs to a process group already: fake ranks need one that does not")
    excepthook = sys.excepthook
    dist.init_process_group("fake", store=private("FakeStore")(), rank=0, world_size=n)
    try:
        yield
    finally:
        dist.destroy_process_group()
        # Of a process that belongs to a group, PyTorch begins each line of a traceback with its rank, for good.
        sys.excepthook = excepthook
