"""What PyTorch loads when autograd is first used, loaded before anything is measured."""

from __future__ import annotations

import torch


def warm_up_autograd(device: torch.device) -> None:
    """A backward pass with a gradient given: at the first one PyTorch imports tens of MiB of Python modules."""
    x = torch.ones(2, 2, device=device, requires_grad=True)
    torch.autograd.backward(x @ x, torch.ones_like(x))
