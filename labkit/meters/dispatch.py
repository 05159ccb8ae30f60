"""The base of our meters: a mode that sees every operation that PyTorch dispatches. It measures nothing itself."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Meter(TorchDispatchMode):
    """A dispatch mode that does not load the compiler: that import takes seconds and tens of megabytes."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Asked by PyTorch when a subclass is made; true would wrap the handler in code of torch._dynamo.
        return False
