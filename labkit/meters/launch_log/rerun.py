"""Run what a launch log has again: the same launches and numbers, on other inputs, under the traffic meter.

Memory that neither the inputs, nor a kernel, nor a move of the log's vocabulary filled holds no number (NaN, -1), so a
result that rests on anything else comes out wrong. PyTorch moves what it likes, but adds up, scales and adds only what
kernels stored. Where kernels come from, and what the results are worth, is for others to say.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch.utils._python_dispatch import _disable_current_modes

from labkit.meters.compiled.launched import compiled_figures
from labkit.meters.full_size import full_size_figures
from labkit.meters.launch_log.meter import BY_TORCH
from labkit.meters.launch_log.moves import MAX_CONSTANTS
from labkit.meters.launch_log.origin import DTYPES, Origin, read_by
from labkit.meters.launches import KernelLaunch, Pointer, launch_of, listening
from labkit.meters.traffic.budget import figures_of
from labkit.meters.traffic.eager import Operation, distinct_bytes
from labkit.meters.traffic.profile import TrafficProfile
from labkit.meters.traffic.track import track_traffic
from labkit.spec import GiB, Tree
from labkit.unwritten import UNWRITTEN_BYTE

MAX_BYTES = GiB // 2
"""What the storages of one log may hold together."""
_OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


class UnusableLog(Exception):
    """The log asks for what cannot be repeated; the text says for what."""


@dataclass(frozen=True)
class RerunResult:
    """outputs: the tensors that the log names as results, by path. inputs: how its inputs were left, by path.

        RerunResult({"out": torch.zeros(4)}, {"x": torch.ones(4)}, {"load_bytes": 16}, lost=("sort",))

    measured: figures of the traffic, and of the compiler where it was asked. lost: names of PyTorch's operations whose
    results were left out, because only kernels may compute.
    """

    outputs: dict[str, torch.Tensor]
    inputs: dict[str, torch.Tensor]
    measured: dict[str, float]
    lost: tuple[str, ...]


@dataclass
class Rerunner:
    """kernels: by name and digest of their source. archs: what the launches are compiled for, if for anything."""

    kernels: Mapping[tuple[str, str], Callable]
    archs: tuple[int, ...] = ()
    _buffers: list[torch.Tensor] = field(default_factory=list)
    _origin: Origin = field(default_factory=lambda: Origin(()))
    _lost: list[str] = field(default_factory=list)
    _launches: list[KernelLaunch] = field(default_factory=list)

    def rerun(self, log: Tree, inputs: Mapping[str, torch.Tensor]) -> RerunResult:
        """Repeat a `LaunchLog.as_tree` on these inputs. Raises UnusableLog; what a kernel raises passes through."""
        self._lost, self._launches = [], []
        if log["left_out"]:
            raise UnusableLog(f"it launches and moves more than can be recorded: {log['left_out']:,} too many")
        self._buffers = self._filled(log["storages"], inputs)
        self._origin = Origin([len(buffer) for buffer in self._buffers])
        do = {"launch": self._launch, "lost": self._lose, "fill": self._fill, "constants": self._constants}
        do |= {"copy": self._copy, "pad": self._pad, "sum": self._sum, **dict.fromkeys(_OPERATORS, self._elementwise)}
        with track_traffic() as traffic, self._listening():
            for entry in log["entries"]:
                if entry["do"] not in do:
                    raise UnusableLog(f"an entry of no known kind: {str(entry['do'])[:40]}")
                do[entry["do"]](entry, traffic)
        measured = {**figures_of(traffic), BY_TORCH: len(self._lost)}
        if self.archs:
            measured |= compiled_figures(self._launches, self.archs)
        paths = {described["input"]: n for n, described in enumerate(log["storages"]) if "input" in described}
        left = {path: self._typed(n, inputs[path].dtype).view(inputs[path].shape) for path, n in paths.items()}
        outputs = {path: self._tensor(ref).contiguous() for path, ref in log["outputs"].items()}
        return RerunResult(outputs, left, measured, tuple(dict.fromkeys(self._lost)))

    def compiled(self, log: Tree) -> dict[str, float]:
        """The figures of a log whose launches were written down and not run. Raises UnusableLog, CompileFailed."""
        if log["left_out"] or any(entry["do"] != "launch" for entry in log["entries"]):
            raise UnusableLog("at full size it holds more than launches")
        return full_size_figures([self._written(entry) for entry in log["entries"]], self.archs)

    def _written(self, entry: Tree) -> KernelLaunch:
        kernel, name = self._kernel(entry["kernel"]), entry["kernel"][0]
        arguments = {str(key): self._argument(name, key, value) for key, value in entry["arguments"].items()}
        options = {str(key): int(value) for key, value in entry["options"].items()}
        return launch_of(kernel, (), {**arguments, **options}, tuple(int(size) for size in entry["grid"]))

    def _listening(self) -> AbstractContextManager[None]:
        return listening(self._launches.append) if self.archs else nullcontext()

    def _filled(self, described: list, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        n_bytes = sum(max(int(one.get("bytes", 0)), 0) for one in described)
        if n_bytes > MAX_BYTES:
            raise UnusableLog(f"it works in {n_bytes:,} bytes of memory; {MAX_BYTES:,} are the most")
        paths = [one["input"] for one in described if "input" in one]
        if len(set(paths)) < len(paths):
            raise UnusableLog("it names an input twice")
        buffers = []
        for one in described:
            if "input" in one:
                buffers.append(inputs[one["input"]].contiguous().clone().reshape(-1).view(torch.uint8))
            else:
                buffers.append(torch.full((int(one["bytes"]),), UNWRITTEN_BYTE, dtype=torch.uint8))
        return buffers

    def _typed(self, number: int, dtype: torch.dtype) -> torch.Tensor:
        if number < 0:
            raise UnusableLog("its storages are numbered from 0")
        buffer = self._buffers[number]
        return buffer[: len(buffer) // dtype.itemsize * dtype.itemsize].view(dtype)

    def _tensor(self, ref: Tree) -> torch.Tensor:
        dtype = DTYPES[ref["dtype"]]
        # Refuses, other than a storage that would grow, whatever does not lie inside.
        return self._typed(ref["storage"], dtype).as_strided(ref["shape"], ref["strides"], ref["offset"])

    def _launch(self, entry: Tree, traffic: TrafficProfile) -> None:
        name = entry["kernel"][0]
        kernel = self._kernel(entry["kernel"])
        arguments = {key: self._argument(name, key, value) for key, value in entry["arguments"].items()}
        options = {str(key): int(value) for key, value in entry["options"].items()}
        grid = tuple(entry["grid"])
        n_before = len(traffic.launches)
        kernel[grid](**arguments, **options)
        if len(traffic.launches) != n_before + 1:
            raise UnusableLog(f"kernel {name} launches kernels itself")
        self._origin.add_launch(entry, traffic.launches[-1])

    def _kernel(self, key: Tree) -> Callable:
        name, digest = key
        if (name, digest) not in self.kernels:
            raise UnusableLog(f"kernel {name} is not one that is known")
        return self.kernels[name, digest]

    def _argument(self, kernel: str, name: str, encoded: Tree) -> object:
        import triton.language as tl
        from triton.tools.tensor_descriptor import TensorDescriptor

        ((kind, value),) = encoded.items()
        if kind == "tensor":
            return self._tensor(value)
        if kind == "pointer":
            return _pointer(value)
        if kind == "plain" and (value is None or type(value) in (bool, int, float, str)):
            return value
        if kind == "dtype":
            return next(one for one in vars(tl).values() if isinstance(one, tl.dtype) and one.name == value)
        if kind == "tuple":
            return tuple(self._argument(kernel, name, item) for item in value)
        if kind == "descriptor":
            layout = {key: list(value[key]) for key in ("shape", "strides", "block_shape")}
            base = value["base"]
            base = _pointer(base["pointer"]) if "pointer" in base else self._tensor(base)
            return TensorDescriptor(base, **layout, padding=value["padding"])
        if kind == "kernel":
            return self._kernel(value)
        raise UnusableLog(f"argument {name} of kernel {kernel} is of type {str(value)[:40]}, which cannot be sent")

    def _lose(self, entry: Tree, traffic: TrafficProfile) -> None:
        self._origin.allows(entry)
        self._poison(entry["name"], entry["to"])

    def _fill(self, entry: Tree, traffic: TrafficProfile) -> None:
        self._origin.allows(entry)
        self._tensor(entry["to"]).fill_(entry["value"])

    def _constants(self, entry: Tree, traffic: TrafficProfile) -> None:
        self._origin.allows(entry)
        if len(entry["values"]) > MAX_CONSTANTS:
            raise UnusableLog(f"{len(entry['values'])} constants at once; {MAX_CONSTANTS} are the most")
        to = self._tensor(entry["to"])
        to.copy_(torch.tensor(entry["values"], dtype=to.dtype).view(to.shape))

    def _copy(self, entry: Tree, traffic: TrafficProfile) -> None:
        self._origin.allows(entry)
        self._tensor(entry["to"]).copy_(self._tensor(entry["from"]))

    def _pad(self, entry: Tree, traffic: TrafficProfile) -> None:
        def result(to: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
            to.fill_(entry["value"])
            self._tensor(entry["inner"]).copy_(source)
            return to

        self._compute(entry, traffic, result)

    def _sum(self, entry: Tree, traffic: TrafficProfile) -> None:
        def result(to: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
            add_up = torch.mean if entry["name"] == "mean" else torch.sum
            return add_up(source, entry["dims"], dtype=to.dtype).view(to.shape)

        self._compute(entry, traffic, result)

    def _elementwise(self, entry: Tree, traffic: TrafficProfile) -> None:
        def result(to: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
            rest = iter(tensors)
            left, right = (
                next(rest) if "tensor" in entry[side] else entry[side]["plain"] for side in ("left", "right")
            )
            return _OPERATORS[entry["do"]](left, right if entry["times"] == 1 else right * entry["times"])

        self._compute(entry, traffic, result)

    def _compute(self, entry: Tree, traffic: TrafficProfile, result: Callable[..., torch.Tensor]) -> None:
        if not self._origin.allows(entry):
            self._poison(entry["name"], [entry["to"]])
            return
        with _disable_current_modes():
            tensors = [self._tensor(ref) for ref in read_by(entry)]
            to = self._tensor(entry["to"])
            to.copy_(result(to, *tensors))
        # Counted here, as one operation: PyTorch's own copy of the result into its place is not the answer's.
        traffic.operations.append(Operation(entry["do"], sum(map(distinct_bytes, tensors)), distinct_bytes(to)))

    def _poison(self, name: str, refs: list[Tree]) -> None:
        self._lost.append(str(name)[:40])
        with _disable_current_modes():
            for ref in refs:
                self._buffers[ref["storage"]].fill_(UNWRITTEN_BYTE)


def _pointer(value: Tree) -> Pointer:
    dtype, offset_bytes, n_bytes = value
    return Pointer(DTYPES[dtype], int(offset_bytes), int(n_bytes))
