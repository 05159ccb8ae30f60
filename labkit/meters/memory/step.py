"""`measure_step`: the memory of a training step of a model that need not fit anywhere.

It runs the real program on fake tensors, so it is the profile of what would happen, without the time or the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

from labkit.meters.memory.answers import MOST_ELEMENTS, Answers
from labkit.meters.memory.fake import fake_tensors
from labkit.meters.memory.profile import MemoryProfile
from labkit.meters.memory.storages import tensors_in
from labkit.meters.memory.track import track_memory

Build = Callable[[], "torch.nn.Module | tuple[torch.nn.Module, torch.optim.Optimizer | None]"]
StepFunction = Callable[[torch.nn.Module, "torch.optim.Optimizer | None", object], object]


def training_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, batch: object) -> None:
    """Forward, backward, update, gradients freed. The loss is the output's `loss`, or the sum of what came out."""
    output = model(**batch) if isinstance(batch, Mapping) else model(batch)
    loss = getattr(output, "loss", None)
    if loss is None:
        loss = sum(part.float().sum() for part in tensors_in(output, []) if part.is_floating_point())
    del output
    loss.backward()
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def measure_step(
    build: Build,
    batch: object | Callable[[], object],
    device: str = "fake",
    step: StepFunction | None = None,
    n_steps: int = 2,
    sites: bool = False,
) -> MemoryProfile:
    """The profile of `n_steps` training steps; the second is the first that begins with optimizer states.

    build: returns the model, or (model, optimizer); it is called here, so that on the device "fake" its weights take no
    memory. batch: tensors in nested lists and dicts, or a function that makes them; a dict is passed as keyword
    arguments. step: (model, optimizer, batch) -> anything, in place of `training_step`. Each step is marked.

    device: "fake", or a real device such as "cpu" or "cuda". Optimizers choose their implementation by the device
    (`foreach` on CUDA), so give it by name where the figure is for another device than the one here.
    """
    with _on(device) as answers:
        built = build()
        model, optimizer = built if isinstance(built, tuple) else (built, None)
        batch = batch() if callable(batch) else batch
        if answers is not None:
            batch = _faked(batch, {}, answers)
        with track_memory(model, optimizer, batch, sites=sites) as profile:
            for number in range(n_steps):
                profile.mark(f"step {number + 1}")
                (step or training_step)(model, optimizer, batch)
    return profile


@contextmanager
def _on(device: str) -> Iterator[Answers | None]:
    if device == "fake":
        with fake_tensors() as answers:
            yield answers
    else:
        with torch.device(device):
            yield None


def _faked(value: object, known: dict[int, tuple[torch.Tensor, torch.Tensor]], answers: Answers) -> object:
    """The same nest with fake tensors in place of real ones; views of one tensor stay views of one.

    Small integers and truth values (token ids, masks) are remembered: programs look at them.
    """
    from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            fake = value
            if not isinstance(value, FakeTensor):
                fake = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE).from_tensor(value)
                if value.numel() <= MOST_ELEMENTS and not value.is_floating_point():
                    with unset_fake_temporarily():
                        answers.know(fake, value.to("cpu", copy=True))
            # With the tensor itself, so that its id is not given to another one.
            known[id(value)] = fake, value
        return known[id(value)][0]
    if isinstance(value, Mapping):
        return {key: _faked(item, known, answers) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_faked(item, known, answers) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
