"""What PyTorch loads when a part of it is first used, loaded before anything is measured."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labkit.meters import measure_memory


def warm_up_autograd(device: torch.device) -> None:
    """A backward pass with a gradient given, and a loss in inference mode beside a meter.

    At the first of each PyTorch imports tens of MiB of Python modules.
    """
    x = torch.ones(2, 2, device=device, requires_grad=True)
    torch.autograd.backward(x @ x, torch.ones_like(x))
    with measure_memory({}), torch.inference_mode():
        F.mse_loss(x, x)
