"""FLOPs and bytes of one PyTorch operation, from its arguments and its result. No operation is run here."""

from __future__ import annotations

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

aten = torch.ops.aten


def flops_of(func: torch._ops.OpOverload, args: tuple, kwargs: dict, result: object) -> int:
    """FLOPs of matrix products, convolutions and attention as torch.utils.flop_counter counts them, else 0."""
    packet = func._overloadpacket
    if packet in flop_registry:
        return int(flop_registry[packet](*args, **kwargs, out_val=result))
    if packet is aten._scaled_dot_product_flash_attention_for_cpu:  # which the registry leaves out
        return int(sdpa_flop_count(*(tensor.shape for tensor in args[:3])))
    return 0


def bytes_of(*trees: object) -> int:
    """The bytes of the tensors in these arguments and results: what an operation loads and stores at least."""
    return sum(leaf.numel() * leaf.element_size() for leaf in tree_leaves(trees) if isinstance(leaf, torch.Tensor))
