"""Lab 11: two functions that the compiler cannot look into. They stand for a library in C.

Nothing here knows of `torch.library`: that is what the exercise adds.
"""

from __future__ import annotations

import torch

LARGEST = 127


@torch.compiler.disable
def quantize_blocks(x: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(int8 values of x's shape, float32 scales) with a scale for each `block` values of a row; both contiguous.

    The last block of a row may be shorter. A block of zeros has scale 1.
    """
    if isinstance(x, torch._subclasses.FakeTensor):
        raise RuntimeError("native.quantize_blocks reads memory, and a fake tensor has none")
    values = x.detach().float()
    short = -values.shape[-1] % block
    blocks = torch.nn.functional.pad(values, (0, short)).unflatten(-1, (-1, block))
    scale = blocks.abs().amax(-1) / LARGEST
    scale = torch.where(scale == 0, 1.0, scale)
    quantized = (blocks / scale[..., None]).round().to(torch.int8).flatten(-2)
    return quantized[..., : values.shape[-1]].contiguous(), scale.contiguous()


@torch.compiler.disable
def note_peak(peak: torch.Tensor, x: torch.Tensor) -> None:
    """Raise `peak`, a number for each column, in place to the largest absolute value that x has there."""
    with torch.no_grad():
        peak.copy_(torch.maximum(peak, x.detach().abs().flatten(0, -2).amax(0).to(peak.dtype)))
