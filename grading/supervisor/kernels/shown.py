"""What a student may be told about kernels that do not run again: it rests on the record of the public cases alone.

A record of hidden cases is written by a process that knows these cases. Which of its kernels or operations is named in
a hint would tell what they are, also where every name in it is one of the notebook's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from grading.supervisor.kernels.sanitize import NotRerunnable
from labkit.spec import Tree

IN_KERNELS = "Let the result come out of the kernels that the answer launches, computed from what they load."
FROM_TEXT = "A kernel that it launches cannot be run from its text alone: see which ones it launches on other sizes."
_COMPUTES = frozenset({"sum", "add", "sub", "mul", "div"})
_MAX_NAMES = 3


def hint_on_text(extracted: Callable[[Sequence[Tree]], object], public: Sequence[Tree]) -> str:
    """Why the kernels of the public cases cannot be taken from the text; if they can, that others cannot.

    extracted: takes the kernels of some records from the text, and raises NotRerunnable.
    """
    try:
        extracted(public)
    except NotRerunnable as error:
        return str(error)
    except Exception:
        # Whatever a worker may send in place of a record.
        pass
    return FROM_TEXT


def hint_on_operations(public: Sequence[Tree]) -> str:
    """That PyTorch computed a part of the result, with the operations that it may have been."""
    try:
        entries = [entry for record in public for entry in record["entries"]]
        lost = [entry["name"] for entry in entries if entry["do"] == "lost"]
        named = lost or [entry["name"] for entry in entries if entry["do"] in _COMPUTES]
        names = [name for name in dict.fromkeys(named) if _is_operation(name)]
    except Exception:
        return IN_KERNELS
    if not 0 < len(names) <= _MAX_NAMES:
        return IN_KERNELS
    listed = " or ".join(f"`{name}`" for name in names)
    return f"The result rests on {listed}, computed by PyTorch: compute it in the kernel instead."


def _is_operation(name: object) -> bool:
    """Whether PyTorch has an operation of this name."""
    is_name = isinstance(name, str) and name.isidentifier()
    return is_name and isinstance(getattr(torch.ops.aten, name, None), torch._ops.OpOverloadPacket)
