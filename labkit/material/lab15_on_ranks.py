"""Lab 15: what its notebook runs on ranks with the student's own code, and beside it with PyTorch's.

`losses_and_calls`: three steps of training; `micro_batches_and_calls`: one step of four micro-batches;
`overflowing_steps`: thirty steps whose gradients overflow on one rank or another. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.meters import track_comm
from labkit.ranks import Comm

WIDTH = 64
LAYER_BYTES = 4 * WIDTH * (WIDTH + 1)
"""Weight and bias of a layer in float32."""

Batch = tuple[Tensor, Tensor]


def five_layers() -> nn.Sequential:
    """Without activations: what counts are the gradients' bytes."""
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(4)), nn.Linear(WIDTH, 1))


def losses_and_calls(
    comm: Comm, wrap: Callable[[nn.Module, Comm, int], Any], step: Callable[..., Any]
) -> tuple[list[float], int, int]:
    """(losses averaged over the ranks, all-reduce calls of the last step, of which inside of backward) of three steps.

    wrap(module, comm, bucket_bytes) makes the data parallel model; step(ddp, optimizer, loss, max_norm) takes a step.
    The ranks begin with different weights.
    """
    torch.manual_seed(comm.rank)
    model = five_layers()
    ddp = wrap(model, comm, LAYER_BYTES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + comm.rank)
    losses = []
    for _ in range(3):
        x = torch.randn(32, WIDTH)
        with track_comm() as log:
            loss = F.mse_loss(ddp(x), x[:, :1])
            step(ddp, optimizer, loss, max_norm=1.0)
        mean = loss.detach().clone()
        comm.all_reduce(mean, op="avg")
        losses.append(round(mean.item(), 5))
    reduces = [call for call in log.calls if call.name == "all_reduce"]
    return losses, len(reduces), sum(call.in_backward for call in reduces)


def micro_batches_and_calls(
    comm: Comm, accumulate: Callable[[nn.Module, list[Batch], Callable[[nn.Module, Batch], Tensor]], None]
) -> tuple[int, int, float]:
    """(all-reduce calls, their bytes, norm of the gradient) of one step of four micro-batches on PyTorch's own class.

    accumulate(ddp, batches, loss_of) leaves the gradient of all of them.
    """
    torch.manual_seed(comm.rank)
    ddp = nn.parallel.DistributedDataParallel(five_layers())
    torch.manual_seed(100 + comm.rank)
    batches = [(x, x[:, :1]) for x in torch.randn(4, 2, WIDTH)]
    with track_comm() as log:
        accumulate(ddp, batches, lambda model, batch: F.mse_loss(model(batch[0]), batch[1]))
    norm = nn.utils.get_total_norm([p.grad for p in ddp.parameters()]).item()
    reduces = [call for call in log.calls if call.name == "all_reduce"]
    return len(reduces), sum(call.n_bytes for call in reduces), round(norm, 5)


def overflowing_steps(comm: Comm, step: Callable[..., tuple[Any, float]]) -> tuple[list[float], Tensor]:
    """(the scale after each of thirty steps, the shared parameter at the end) of one rank.

    step(comm, shared, own, optimizer, scale, max_norm) returns the norm and the next scale. The own gradients grow by
    30 % from step to step, and are rounded to float16 as they come, scaled.
    """
    generator = torch.Generator().manual_seed(comm.rank)
    shared, own = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([shared, own], lr=0.1)
    scale, scales = 2.0**14, []
    for number in range(30):
        for parameter, size in ((shared, 0.01), (own, 0.02 * 1.3**number)):
            grad = torch.randn(4, generator=generator) * size * scale
            parameter.grad = grad.half().float()
        _, scale = step(comm, [shared], [own], optimizer, scale, 1.0)
        scales.append(scale)
    return scales, shared.detach()
