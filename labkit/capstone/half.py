"""Products in float16 on a processor that has none: in float32, rounded once. They would take ten times as long.

A card's tensor cores do the same: they multiply in float16 and add up in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.meters.dispatch import Meter

_aten = torch.ops.aten
_PRODUCTS = {
    *(_aten.mm.default, _aten.bmm.default, _aten.addmm.default, _aten.baddbmm.default, _aten.addmm_.default),
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
}


class fast_half(Meter):
    """A mode in which these operations on float16 are carried out in float32."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in _PRODUCTS or not any(_is_half(one) for one in args):
            return func(*args, **kwargs)
        result = func(*(one.float() if _is_half(one) else one for one in args), **kwargs)
        if func is _aten.addmm_.default:
            return args[0].copy_(result)
        if isinstance(result, Tensor):
            return result.half()
        if func is _aten._scaled_dot_product_flash_attention_for_cpu.default:
            return result[0].half(), *result[1:]
        return tuple(one.half() for one in result)


def _is_half(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.float16
