"""Hang recorders into Triton's interpreter for the length of a block: at its arguments, its memory, its grid.

Blocks may be nested: every open profile is given every launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import torch

from labkit.interpreter.masked import is_undefined
from labkit.interpreter.unwatched import PROFILES
from labkit.meters.traffic.profile import Launch, TrafficProfile
from labkit.meters.traffic.recorder import TrafficRecorder

_MEMORY = ("create_masked_load", "create_masked_store", "create_atomic_rmw", "create_atomic_cas", "set_grid_idx")
_HOOKED = (*_MEMORY, "create_dot")


class _Current:
    """The recorder of the launch that is running; launches take turns, so there is never more than one."""

    recorder: TrafficRecorder


def open_profiles(interpreter: ModuleType) -> list[TrafficProfile]:
    """The profiles of all open blocks, the outermost first."""
    return getattr(interpreter, PROFILES, [])


@contextmanager
def metered(interpreter: ModuleType, profile: TrafficProfile) -> Iterator[None]:
    """Add every launch of the block to the profile."""
    profiles = getattr(interpreter, PROFILES, None)
    if profiles is not None:
        profiles.append(profile)
        try:
            yield
        finally:
            profiles.remove(profile)
        return
    setattr(interpreter, PROFILES, [profile])
    current = _Current()
    builder, executor = interpreter.interpreter_builder, interpreter.GridExecutor
    stock = executor._init_args_hst, interpreter._implicit_cvt
    restore, reduce = executor._restore_args_dev, interpreter.ReduceOps.apply_impl
    try:
        executor._init_args_hst = _arguments(interpreter, stock[0], current)
        executor._restore_args_dev = _finishing(restore, current)
        interpreter._implicit_cvt = _pointers(interpreter, stock[1], current)
        for name, hook in _memory(interpreter, current).items():
            setattr(builder, name, hook)
        interpreter.ReduceOps.apply_impl = _reducing(reduce, current)
        builder.create_dot = _multiplying(builder.create_dot, current)
        yield
    finally:
        executor._init_args_hst, interpreter._implicit_cvt = stock
        executor._restore_args_dev, interpreter.ReduceOps.apply_impl = restore, reduce
        for name in _HOOKED:
            vars(builder).pop(name, None)
        delattr(interpreter, PROFILES)


def _arguments(interpreter: ModuleType, stock, current: _Current):
    def _init_args_hst(self, args_dev, kwargs):
        args, named = stock(self, args_dev, kwargs)
        launch = Launch(self.fn.__name__)
        for profile in getattr(interpreter, PROFILES):
            profile.launches.append(launch)
        current.recorder = TrafficRecorder(launch)
        for name, value in (*zip(self.arg_names, args), *named.items()):
            for part, tensor in _tensors(interpreter, name, value):
                current.recorder.add(part, tensor)
        return args, named

    return _init_args_hst


def _finishing(stock, current: _Current):
    def _restore_args_dev(self, *args):
        current.recorder.finish()
        return stock(self, *args)

    return _restore_args_dev


def _tensors(interpreter: ModuleType, name: str, value: object) -> Iterator[tuple[str, torch.Tensor]]:
    value = interpreter._unwrap_tensor(value)
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, interpreter.TensorDescriptor):
        yield from _tensors(interpreter, name, value.base)
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from _tensors(interpreter, f"{name}[{i}]", part)


def _pointers(interpreter: ModuleType, stock, current: _Current):
    def _implicit_cvt(arg):
        converted = stock(arg)
        argument = current.recorder.book.of(interpreter._unwrap_tensor(arg))
        if argument is not None:
            converted.handle.data = np.array([argument.address], dtype=np.uint64)
        return converted

    return _implicit_cvt


def _reducing(stock, current: _Current):
    def apply_impl(self, input):
        for tensor in input:
            if is_undefined(tensor.handle.data, tensor.dtype.scalar):
                current.recorder.use_undefined("a reduction")
        return stock(self, input)

    return apply_impl


def _multiplying(stock, current: _Current):
    def create_dot(a, b, *rest):
        if any(is_undefined(one.data, one.dtype.scalar) for one in (a, b)):
            current.recorder.use_undefined("tl.dot")
        return stock(a, b, *rest)

    return create_dot


def _memory(interpreter: ModuleType, current: _Current) -> dict[str, object]:
    """The builder's memory operations, with a recorder between the kernel and them."""
    builder, Handle = interpreter.interpreter_builder, interpreter.TensorHandle
    stock = {name: getattr(builder, name) for name in _MEMORY}
    order = interpreter._ir.MEM_SEMANTIC
    acquiring = (order.ACQUIRE, order.ACQUIRE_RELEASE)
    releasing = (order.RELEASE, order.ACQUIRE_RELEASE)

    def access(kind, pointers, mask, values=None):
        lanes = np.asarray(mask.data)
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        real, inside = current.recorder.access(kind, pointers.data, lanes, size, values)
        return Handle(real, pointers.dtype), mask if inside is lanes else Handle(inside, interpreter.tl.int1)

    def load(pointers, mask, other, *rest, **named):
        pointers, inside = access("load", pointers, mask)
        if other is None and inside is not mask:
            # Lanes out of bounds hold 0: that they were touched is reported, and should be all that is wrong with them.
            kind = pointers.get_element_ty()
            other = Handle(np.zeros(pointers.data.shape, interpreter._get_np_dtype(kind)), kind)
        return stock["create_masked_load"](pointers, inside, other, *rest, **named)

    def store(pointers, value, mask, *rest, **named):
        pointers, mask = access("store", pointers, mask, value.data)
        return stock["create_masked_store"](pointers, value, mask, *rest, **named)

    def rmw(operation, pointers, value, mask, sem, scope):
        real, inside = access("atomic", pointers, mask)
        current.recorder.synchronize(pointers.data, inside.data, sem in acquiring, sem in releasing)
        return stock["create_atomic_rmw"](operation, real, value, inside, sem, scope)

    def cas(pointers, compare, value, sem, scope):
        everyone = Handle(np.ones_like(pointers.data, dtype=bool), interpreter.tl.int1)
        real, inside = access("atomic", pointers, everyone)
        if not inside.data.all():
            # A compare-and-swap has no mask to leave lanes out with, and what it compared with is not there.
            return compare
        current.recorder.synchronize(pointers.data, inside.data, sem in acquiring, sem in releasing)
        return stock["create_atomic_cas"](real, compare, value, sem, scope)

    def set_grid_idx(x, y, z):
        current.recorder.launch.grid = builder.grid_dim
        current.recorder.start_program((x, y, z))
        return stock["set_grid_idx"](x, y, z)

    hooks = (load, store, rmw, cas, set_grid_idx)
    return dict(zip(_MEMORY, hooks))
