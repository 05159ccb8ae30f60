"""`track_memory`: what a block of PyTorch code holds in memory, on CPU tensors, fake tensors and CUDA alike.

It counts live tensor storages. Scratch memory inside an operator, an allocator's rounding and caching, and whatever
is not a tensor are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch.nn.parameter import UninitializedParameter
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from labkit.meters.memory.dropout import byte_masks
from labkit.meters.memory.profile import MemoryProfile
from labkit.meters.memory.storages import tensors_in
from labkit.meters.memory.tracker import Tracker


@contextmanager
def track_memory(
    model: torch.nn.Module | None = None,
    optimizer: object = None,
    batch: object = None,
    *,
    sites: bool = True,
    device: str | torch.device | None = None,
) -> Iterator[MemoryProfile]:
    """Measure the block; what is named exists before it and is counted from its first moment.

    model: its parameters, buffers and gradients. optimizer: a torch optimizer, or anything that holds its states in
    attributes. batch: tensors in nested lists and dicts. All may be left out: storages that the block uses without
    having made them are found when they are first used, and are counted from the start, as inputs.
    sites: find out on which line every tensor was made; without it the block runs faster.
    device: only storages on this kind of device count; by default the model's, or the batch's. Where nothing is named,
    or a batch on several kinds, every device's count.

    Raises TypeError for a model that is no Module, ValueError for one on several kinds of device when `device` is not
    given.
    """
    tracker = Tracker(device_type_of(model, batch, device), sites)
    with tracked(tracker, model, optimizer, batch) as profile:
        yield profile


@contextmanager
def tracked(
    tracker: Tracker, model: torch.nn.Module | None = None, optimizer: object = None, batch: object = None
) -> Iterator[MemoryProfile]:
    """Run the block under a tracker that is told what hangs on the model and what an optimizer keeps."""

    def label_all() -> None:
        _label_model(tracker, model)
        _label_states(tracker, optimizer)

    def before_step(stepping: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        tracker.in_step = True
        parameters = [parameter for group in stepping.param_groups for parameter in group["params"]]
        _label_parameters(tracker, parameters)

    def after_step(stepping: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        tracker.in_step = False
        _label_states(tracker, stepping)

    profile = MemoryProfile(tracker, prepare=label_all)
    with ExitStack() as stack:
        if model is not None:
            tracker.give([*model.parameters(), *model.buffers()])
            tracker.give([p.grad for p in model.parameters() if p.grad is not None])
            for parameter in model.parameters():
                if parameter.requires_grad and not isinstance(parameter, UninitializedParameter):
                    hook = parameter.register_post_accumulate_grad_hook(lambda p: _label_parameters(tracker, [p]))
                    stack.callback(hook.remove)
        tracker.give(_states_of(optimizer))
        tracker.give(tensors_in(batch, []))
        label_all()
        tracker.label(tensors_in(batch, []), "inputs", over=(None,))
        stack.callback(register_optimizer_step_pre_hook(before_step).remove)
        stack.callback(register_optimizer_step_post_hook(after_step).remove)
        stack.enter_context(byte_masks())
        stack.enter_context(tracker)
        try:
            yield profile
        finally:
            # The last labels, before the tracker lets go of its storages.
            label_all()
            profile.prepare = _nothing


def _nothing() -> None:
    """What is left to prepare when the block has ended."""


def _label_model(tracker: Tracker, model: torch.nn.Module | None) -> None:
    """What the model holds now; a block may have given it new parameters."""
    if model is not None:
        tracker.label([*model.parameters(), *model.buffers()], "parameters")
    _label_parameters(tracker, tracker.used_parameters() if model is None else list(model.parameters()))


def _label_parameters(tracker: Tracker, parameters: list[torch.Tensor]) -> None:
    tracker.label(parameters, "parameters")
    tracker.label([p.grad for p in parameters if p.grad is not None], "gradients", over=(None,))


def _label_states(tracker: Tracker, optimizer: object) -> None:
    tracker.label(_states_of(optimizer), "optimizer", over=(None,))


def _states_of(optimizer: object) -> list[torch.Tensor]:
    """The tensors that an optimizer keeps, its own or any object's; parameters among them have their label already."""
    if isinstance(optimizer, torch.optim.Optimizer):
        return tensors_in(list(optimizer.state.values()), [])
    return tensors_in(getattr(optimizer, "__dict__", {}), [])


def device_type_of(model: torch.nn.Module | None, batch: object, device: str | torch.device | None) -> str | None:
    """The kind of device whose memory is meant, None for all.

    Raises TypeError for a model that is no Module, ValueError for one on several kinds of device.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is of type {type(model).__name__}, not a Module; after it come optimizer and batch")
    if device is not None:
        return torch.device(device).type
    held = [] if model is None else [*model.parameters(), *model.buffers()]
    types = sorted({tensor.device.type for tensor in held or tensors_in(batch, [])})
    if len(types) > 1 and held:
        raise ValueError(
            f"the model has tensors on {' and '.join(types)}, whose bytes do not add up to one memory; say which to "
            f'measure: device="{types[-1]}"'
        )
    return types[0] if len(types) == 1 else None
