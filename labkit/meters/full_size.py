"""What an answer would launch at a size too large to run here: on tensors without data, written down and not run.

So a launcher chooses its grid and its blocks as it would on a GPU, in milliseconds and in no memory. Values, traffic
and races are not seen: they are the small cases' business.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from labkit import interpreter
from labkit.interpreter.arguments import checked_grid
from labkit.interpreter.unwatched import WRITTEN
from labkit.meters.compiled.build import largest_block_bytes
from labkit.meters.compiled.launched import ARCHS, compiled_figures
from labkit.meters.compiled.report import REGISTER_BYTES
from labkit.meters.launches import KernelLaunch, Pointer, launch_of
from labkit.meters.memory.storages import tensors_in

LARGE = 0.1
"""A tensor with this part of the bytes of the largest one is large."""


class HostReadsTensor(Exception):
    """The host asked for a number that lies in a tensor; on a GPU it waits until all that was launched is done."""


@contextmanager
def without_data() -> Iterator[list[KernelLaunch]]:
    """In the block, tensors have shapes and no data, and launches are only written down, into the list.

    Tensors of a written launch are Pointers. Raises HostReadsTensor for `.item()`, and for whatever else asks for a
    tensor's value; what the launcher itself raises passes through, as does ValueError for a grid that no GPU takes.
    """
    interpreter.enable()
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
    from triton.runtime import interpreter as triton_interpreter

    interpreted, launches = triton_interpreter.InterpretedFunction, []
    setattr(triton_interpreter, WRITTEN, launches)

    def run(self, *args, grid, warmup, **kwargs):
        given = launch_of(self, args, kwargs, ())
        sizes = checked_grid(self.fn.__name__, grid)({**given.arguments, **given.options})
        written = replace(given, arguments=_pointed(given.arguments), grid=sizes)
        getattr(triton_interpreter, WRITTEN).append(written)

    stock, interpreted.run = interpreted.run, run
    try:
        # What asks a tensor without data for its address is warned, and a warning is nothing that a student could use.
        with warnings.catch_warnings(action="ignore"), FakeTensorMode(allow_non_fake_inputs=True):
            yield launches
    except RuntimeError as error:
        # `.tolist()` and `.numpy()` refuse such a tensor by its type.
        if not isinstance(error, DataDependentOutputException) and "FakeTensor" not in str(error):
            raise
        reads = "the host reads a number out of a tensor (.item(), int(), float(), if), and has to wait for the GPU"
        # With the way to the student's line.
        raise HostReadsTensor(reads).with_traceback(error.__traceback__) from None
    finally:
        interpreted.run = stock
        delattr(triton_interpreter, WRITTEN)


def forget_values(inputs: object) -> None:
    """Tensors without data that were made from a Python number still know it: these know it no longer."""
    for tensor in tensors_in(inputs, []):
        tensor.constant = None


def full_size_figures(launches: Sequence[KernelLaunch], archs: Sequence[int] = ARCHS) -> dict[str, float]:
    """What launches that were written down would take: programs, most_programs, block_bytes, spills, shared_bytes.

    The worst of launches and GPUs. programs: of the launches that are given large tensors, so that one which counts or
    adds up a few numbers may be short of them. most_programs: of any launch. Where a block has more bytes than there
    are registers, that is all: compiling it would take minutes. Raises CompileFailed.
    """
    largest = [max((one.n_bytes for one in _pointers(launch.arguments.values())), default=0) for launch in launches]
    programs = [math.prod(launch.grid) for launch, n_bytes in zip(launches, largest) if n_bytes >= LARGE * max(largest)]
    blocks = [largest_block_bytes(one.kernel, arch=archs[0], **one.arguments, **one.options) for one in launches]
    figures = {
        "programs": min(programs, default=0),
        "most_programs": max((math.prod(launch.grid) for launch in launches), default=0),
        "block_bytes": max(blocks, default=0),
    }
    if figures["block_bytes"] <= REGISTER_BYTES:
        made = compiled_figures(launches, archs)
        figures |= {name: made[name] for name in ("spills", "shared_bytes")}
    return figures


def _pointers(values: Iterable[object]) -> Iterator[Pointer]:
    for value in values:
        value = getattr(value, "base", value)
        if isinstance(value, Pointer):
            yield value
        elif isinstance(value, tuple):
            yield from _pointers(value)


def _pointed(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: _pointer(value) for name, value in arguments.items()}


def _pointer(value: object) -> object:
    from triton.tools.tensor_descriptor import TensorDescriptor

    if isinstance(value, torch.Tensor):
        return Pointer(value.dtype, value.storage_offset() * value.element_size() % 16, value.nbytes)
    if isinstance(value, TensorDescriptor):
        return replace(value, base=_pointer(value.base))
    return tuple(map(_pointer, value)) if isinstance(value, tuple) else value
