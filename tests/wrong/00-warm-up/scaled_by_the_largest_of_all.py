# hint: The squares leave the range of float16
import torch


def rms(x: torch.Tensor, dim: int) -> torch.Tensor:
    largest = x.abs().max()
    return ((x / largest).square().mean(dim).sqrt() * largest).to(x.dtype)
