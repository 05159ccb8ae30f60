"""Lab 20: a run of transformers' `Trainer` on the CPU, on a model that notes what reaches it.

What the flags do is not known here. transformers is imported where a run begins, and not before.
"""

from __future__ import annotations

import gc
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager as Context
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

OF_THE_CHECK = ("output_dir", "max_steps", "use_cpu", "report_to", "save_strategy", "disable_tqdm")
"""Arguments that are set here, whatever an answer has in their place."""
Sample = dict[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """Of a model, and of the texts that it is trained on.

    Shape(width=32, n_blocks=2, seq_len=8)
    """

    width: int
    n_blocks: int
    seq_len: int
    vocab: int = 64


@dataclass
class Seen:
    """What reached the model. passes: for each forward pass the number of samples, the bytes that it kept for the
    backward pass beside the weights, and the dtype that its matrix products came out in.
    """

    passes: list[tuple[int, int, str]] = field(default_factory=list)


class Tiny(nn.Module):
    """Blocks of an MLP on tokens; to `Trainer` it is a model that can recompute its blocks."""

    supports_gradient_checkpointing = True

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.embed = nn.Embedding(shape.vocab, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(shape.n_blocks)
        )
        self.head = nn.Linear(width, shape.vocab)
        self.recomputes = False
        self.seen = Seen()

    def gradient_checkpointing_enable(self, *args: object, **kwargs: object) -> None:
        """As transformers calls it, whatever it passes."""
        self.recomputes = True

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        weights = {one.untyped_storage().data_ptr() for one in self.parameters()}
        kept: dict[int, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            h = self.embed(x)
            for block in self.blocks:
                h = h + (checkpoint(block, h, use_reentrant=False) if self.recomputes else block(h))
            logits = self.head(h)
            loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        self.seen.passes.append((len(x), sum(kept.values()), str(logits.dtype).removeprefix("torch.")))
        return {"loss": loss, "logits": logits}


@dataclass(frozen=True)
class Training:
    """What came of a run. n_passes: forward passes by optimizer step. cleared: calls of `clear_device_cache`."""

    seen: Seen
    n_passes: Sequence[int]
    cleared: int
    optimizer: str


def samples_of(tokens: Tensor) -> list[Sample]:
    """(samples, length + 1) tokens as a data set: each token, and the one that follows."""
    return [{"x": row[:-1], "labels": row[1:]} for row in tokens]


def train(
    shape: Shape,
    samples: Sequence[Sample],
    arguments: Mapping[str, Any],
    n_steps: int,
    tmp: Path,
    watched: Callable[[nn.Module], Context[Any]] = lambda model: nullcontext(),
) -> Training:
    """Train for so many optimizer steps with these arguments of `TrainingArguments`, the training itself in `watched`.

    Raises what `TrainingArguments` raises, TypeError for a name that it does not have.
    """
    import transformers.trainer as library
    from transformers import PrinterCallback, TrainingArguments

    ours = (str(tmp), n_steps, True, "none", "no", True)
    chosen = {**arguments, **dict(zip(OF_THE_CHECK, ours, strict=True))}
    patched = mock.patch.object(library, "clear_device_cache")
    with _random_states(), _old_objects_left_alone(), warnings.catch_warnings(), patched as cleared:
        warnings.simplefilter("ignore")  # that there is no GPU to pin memory for
        model = Tiny(shape)
        trainer = library.Trainer(model=model, args=TrainingArguments(**chosen), train_dataset=list(samples))
        trainer.remove_callback(PrinterCallback)
        steps: list[int] = []
        model.register_forward_pre_hook(lambda *_: steps.append(trainer.state.global_step))
        with watched(model):
            trainer.train()
    optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
    return Training(
        model.seen, [steps.count(step) for step in range(n_steps)], cleared.call_count, type(optimizer).__name__
    )


@contextmanager
def _random_states() -> Iterator[None]:
    """`Trainer` sets the seeds of Python, NumPy and PyTorch: put them back behind it."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


@contextmanager
def _old_objects_left_alone() -> Iterator[None]:
    """`Trainer` collects garbage when it ends: looking at all that is loaded takes ten times the run."""
    had_frozen = gc.get_freeze_count() > 0
    if not had_frozen:
        gc.freeze()
    try:
        yield
    finally:
        if not had_frozen:
            gc.unfreeze()
