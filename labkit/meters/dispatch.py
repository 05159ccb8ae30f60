"""The base of our meters: a mode that sees every operation that PyTorch dispatches. It measures nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Meter(TorchDispatchMode):
    """A dispatch mode that does not load the compiler: that import takes seconds and tens of megabytes."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Asked by PyTorch when a subclass is made; true would wrap the handler in code of torch._dynamo.
        return False

    def decomposed(self, func: Any, args: tuple, kwargs: Mapping[str, Any]) -> Any:
        """What comes of an operation's parts, each of which is dispatched to this mode; NotImplemented without parts.

        In inference mode composite operators arrive whole, with what they allocate and multiply hidden inside of them.
        """
        if not torch.is_inference_mode_enabled():
            return NotImplemented
        # Not `with self`: the exit of a meter may end its count.
        TorchDispatchMode.__enter__(self)
        try:
            return func.decompose(*args, **kwargs)
        finally:
            TorchDispatchMode.__exit__(self, None, None, None)
