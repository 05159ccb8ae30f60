"""`compile_cuda`: CUDA C++ -> kernels that can be launched on tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from labkit.simt import gpu, launch, nvrtc
from labkit.simt.arguments import Argument
from labkit.simt.compiler_process import CompilerStopped, compile_apart
from labkit.simt.declarations import constant_bytes
from labkit.simt.diagnostics import CudaCompileError, Diagnostic, errors, parse_log
from labkit.simt.explained import explained
from labkit.simt.faults import LaunchFault
from labkit.simt.memory import Memory
from labkit.simt.parse import parse
from labkit.simt.plan import Plan, make_plan
from labkit.simt.prelude import MEMORY_HEADERS, PRELUDE
from labkit.simt.profile import KernelProfile
from labkit.simt.program import Module
from labkit.simt.signature import parameters, plain_name
from labkit.simt.sources import check_source
from labkit.simt.tracking import note
from labkit.simt.values import Unsupported
from labkit.simt.watching import Watch

FILE = "kernel.cu"
MAX_PTX_BYTES = 4 << 20
MAX_VARIABLE_BYTES = 1 << 28


class Kernel:
    """One `__global__` function. `launch` runs it."""

    def __init__(self, owner: Kernels, loaded: launch.Loaded) -> None:
        self._owner = owner
        self._loaded = loaded

    @property
    def name(self) -> str:
        """As the source writes it."""
        return self._loaded.name

    @property
    def entry(self) -> str:
        """As the PTX and machine code name it: "_Z9transposePKfPf"."""
        return self._loaded.entry

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Argument,
        shared_bytes: int = 0,
        max_work: int | None = None,
        check: bool = True,
        watch: tuple[int, int] | None = None,
    ) -> KernelProfile:
        """Run the kernel on tensors, in place, as `kernel<<<grid, block, shared_bytes>>>(...)` would.

        On tensors of the CPU it is executed here, counted and checked. On those of a GPU it runs there, and the profile
        has no counters; `max_work`, `check` and `watch` mean nothing then.
        shared_bytes: dynamic shared memory. max_work: threads × instructions after which a launch counts as
        endless, in place of what `compile_cuda` was given.
        watch: (number of a block, of its warp): what this warp accesses is noted in the profile's `accesses`.
        check: raise `LaunchFault` for what CUDA does not define; else the faults are only in the profile.
        Raises TypeError and ValueError for arguments and shapes that do not fit.
        """
        owner = self._owner
        if gpu.device_of(arguments).type == "cuda":
            return gpu.run(self._loaded, owner.ptx, grid, block, arguments, shared_bytes)
        most = owner.max_work if max_work is None else max_work
        noted = Watch(*watch) if watch else None
        profile = launch.run(
            self._loaded, grid, block, arguments, owner.memory(), owner.symbols, shared_bytes, most, noted
        )
        note(profile)
        if check and profile.faults:
            raise LaunchFault(self.name, profile.faults, self._loaded.source, profile)
        return profile


@dataclass
class Kernels(Mapping[str, Kernel]):
    """The kernels of one source by name. Their `__device__` variables keep their values from launch to launch."""

    source: str
    ptx: str = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    max_work: int = launch.MAX_WORK
    symbols: dict[str, int] = field(default_factory=dict, repr=False)
    found: dict[str, Kernel] = field(default_factory=dict, repr=False)
    _variables: Memory = field(default_factory=Memory, repr=False)

    def __getitem__(self, name: str) -> Kernel:
        if name not in self.found:
            raise KeyError(f"no kernel {name!r} in this source; it has {', '.join(self.found) or 'none'}")
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def memory(self) -> Memory:
        """A memory with the source's own variables, for one launch."""
        return self._variables.copy()

    def variable(self, name: str) -> np.ndarray:
        """The bytes of a `__device__` or `__constant__` variable, to read and to change."""
        return next(one.data for one in self._variables.regions if one.name == name)


def compile_cuda(source: str, arch: int = 80, options: Sequence[str] = (), max_work: int = launch.MAX_WORK) -> Kernels:
    """Compile CUDA C++ and make all of its kernels ready to launch. No GPU is needed.

    arch: the compute capability times ten; options: further ones of NVRTC, such as "--use_fast_math".
    max_work: threads × instructions after which a launch counts as endless; the default takes ten to twenty seconds.
    Raises `CudaCompileError` with the source line and a caret, `SourceRefused`, `NvrtcMissing`, and `Unsupported` for
    an instruction that is not executed.
    """
    check_source(source)
    allowed = {"--use_fast_math", "--fmad=false", "--fmad=true", "--ftz=true", "--ftz=false", "--restrict"}
    if refused := [option for option in options if option not in allowed and not option.startswith("-D")]:
        raise ValueError(f"options {refused} are not allowed")
    ptx, warnings = _compiled(source, arch, tuple(options))
    return load_ptx(ptx, source, warnings, max_work)


def load_ptx(ptx: str, source: str, warnings: Sequence[Diagnostic] = (), max_work: int = launch.MAX_WORK) -> Kernels:
    """Make the kernels of a PTX text ready to launch. source: the C++ that it comes from."""
    ready = _ready(ptx)
    kernels = Kernels(source, ptx, tuple(warnings), max_work)
    for variable in ready.module.variables.values():
        if variable.space in ("global", "const"):
            data = np.zeros(variable.size, np.uint8)
            region = kernels._variables.add_bytes(
                plain_name(variable.name), data, variable.word_bytes, variable.space == "global"
            )
            kernels.symbols[variable.name] = region.base
    for variable in ready.module.variables.values():
        if variable.space in ("global", "const") and variable.words:
            region = next(one for one in kernels._variables.regions if one.base == kernels.symbols[variable.name])
            region.data[:] = np.frombuffer(constant_bytes(variable, kernels.symbols), np.uint8)
    for name, plans in ready.plans.items():
        plain = plain_name(name)
        loaded = launch.Loaded(plain, name, plans, ready.module, tuple(parameters(source, plain)), source)
        kernels.found[plain] = Kernel(kernels, loaded)
    return kernels


def compiler_options() -> list[str]:
    """What NVRTC is told of every source, whatever it is compiled for."""
    folders = [f"--include-path={folder}" for folder in nvrtc.header_folders()]
    return ["-lineinfo", "--std=c++17", "--device-int128", f"--pre-include={PRELUDE}", *folders]


@lru_cache(maxsize=32)
def _compiled(source: str, arch: int, options: tuple[str, ...]) -> tuple[str, tuple[Diagnostic, ...]]:
    """The PTX, and the warnings. The same for every case that an answer is checked on, so it is kept."""
    flags = [f"--gpu-architecture=compute_{arch}", *compiler_options(), *options]
    try:
        compiled = compile_apart(source, FILE, flags, headers=MEMORY_HEADERS)
    except CompilerStopped as error:
        raise CudaCompileError([Diagnostic("error", 0, 0, str(error))], source) from None
    diagnostics = explained(parse_log(compiled.log, FILE), source)
    if compiled.code is None:
        raise CudaCompileError(errors(diagnostics) or [Diagnostic("error", 0, 0, compiled.log.strip())], source)
    if len(compiled.code) > MAX_PTX_BYTES:
        text = (
            f"the source becomes {len(compiled.code):,} bytes of PTX, of which at most {MAX_PTX_BYTES:,} are executed"
        )
        raise CudaCompileError([Diagnostic("error", 0, 0, f"{text}: is a long loop unrolled?")], source)
    return compiled.code.rstrip(b"\0").decode(), tuple(one for one in diagnostics if one.kind == "warning")


@dataclass(frozen=True)
class _Ready:
    """A PTX text, read. plans: by kernel, those of all functions that it may call."""

    module: Module
    plans: Mapping[str, Mapping[str, Plan]]


@lru_cache(maxsize=32)
def _ready(ptx: str) -> _Ready:
    module = parse(ptx, FILE)
    size = sum(one.size for one in module.variables.values() if one.space in ("global", "const"))
    if size > MAX_VARIABLE_BYTES:
        raise Unsupported(f"variables of {size:,} bytes in all: at most {MAX_VARIABLE_BYTES:,} are executed")
    known: dict[str, Plan] = {}
    plans = {}
    for name, function in module.functions.items():
        if function.entry:
            for one in launch.reachable(module, name):
                known[one] = known.get(one) or make_plan(module.functions[one])
            plans[name] = {one: known[one] for one in launch.reachable(module, name)}
    return _Ready(module, plans)
