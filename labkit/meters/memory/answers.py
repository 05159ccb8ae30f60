"""Values that fake tensors do have: what a program asks of them is answered from these, as long as they are known.

A fake tensor holds nothing, but programs look at some: an attention mask, a step count, whether a gradient is finite.
Such tensors are small and do not depend on the weights, so the same operations run on real values beside the fake ones.
Where a value is not known, the answer is the usual one: true, or one. Data-dependent shapes are not handled.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence

import torch
from torch.utils._pytree import tree_map

from labkit.meters.dispatch import Meter
from labkit.meters.memory.storages import tensors_in

MOST_ELEMENTS = 2**16
"""Tensors larger than this are not followed."""

_aten = torch.ops.aten
_ASKING = (_aten._local_scalar_dense.default, _aten.equal.default)
_SCALING = _aten._amp_foreach_non_finite_check_and_unscale_.default


class Answers(Meter):
    """Answers `.item()`, `bool()` and `torch.equal` under fake tensors."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[int, tuple[weakref.ref, torch.Tensor]] = {}

    def know(self, fake: torch.Tensor, value: torch.Tensor) -> None:
        """Say what a fake tensor would hold."""
        key = id(fake)
        self._values[key] = (weakref.ref(fake, lambda _: self._values.pop(key, None)), value)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _ASKING:
            return self._answer(func, args)
        result = func(*args, **kwargs)
        # A loss scaler's flag, zero before, stays what it is: gradients are taken to be finite.
        if func is not _SCALING:
            self._follow(func, args, kwargs, result)
        return result

    def _answer(self, func: object, args: Sequence[torch.Tensor]) -> object:
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        values = [self._known(arg) for arg in args]
        if all(value is not None for value in values):
            with unset_fake_temporarily():
                return func(*values)
        dtype = args[0].dtype
        if func is _aten.equal.default or dtype is torch.bool:
            return True
        return 1.0 if dtype.is_floating_point else 1

    def _known(self, tensor: torch.Tensor) -> torch.Tensor | None:
        from torch._subclasses.fake_tensor import FakeTensor

        if not isinstance(tensor, FakeTensor):
            return tensor
        return self._values[id(tensor)][1] if id(tensor) in self._values else None

    def _follow(self, func, args: Sequence, kwargs: Mapping, result: object) -> None:
        """Run an operation on the known values too, or forget what it overwrites with unknown ones."""
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        if _asks_for_nan(func, args):
            with unset_fake_temporarily():
                self.know(result, torch.zeros((), dtype=torch.bool).expand(result.shape))
            return
        used, made = tensors_in([args, kwargs], []), tensors_in([result], [])
        known = [self._known(tensor) for tensor in used]
        small = all(tensor.numel() <= MOST_ELEMENTS for tensor in (*made, *used))
        random = torch.Tag.nondeterministic_seeded in func.tags
        if small and not random and all(value is not None for value in known):
            value_of = dict(zip(map(id, used), known, strict=True))
            real_args, real_kwargs = tree_map(lambda leaf: value_of.get(id(leaf), leaf), (args, kwargs))
            with unset_fake_temporarily():
                values = tensors_in([func(*real_args, **real_kwargs)], [])
            for fake, value in zip(made, values, strict=True):
                self.know(fake, value)
        elif func._schema.is_mutable:
            for tensor, argument in zip(args, func._schema.arguments, strict=False):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    for written in tensors_in([tensor], []):
                        self._values.pop(id(written), None)


def _asks_for_nan(func: object, args: Sequence) -> bool:
    """Whether it is a search for values that are not finite: in a run that is worth measuring there are none."""
    itself = func is _aten.ne.Tensor and args[0] is args[1]
    return itself or func in (_aten.isnan.default, _aten.isinf.default)
