"""`compile_cuda`: CUDA C++ -> kernels that can be launched on tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from labkit.simt import launch, nvrtc
from labkit.simt.arguments import Argument
from labkit.simt.diagnostics import CudaCompileError, Diagnostic, errors, parse_log
from labkit.simt.faults import LaunchFault
from labkit.simt.memory import Memory
from labkit.simt.parse import constant_bytes, parse
from labkit.simt.plan import make_plan
from labkit.simt.profile import KernelProfile
from labkit.simt.signature import parameters, plain_name
from labkit.simt.sources import check_source

FILE = "kernel.cu"
COMPILE_LIMIT_S = 30.0
MACROS = ("-DINFINITY=__int_as_float(0x7f800000)", "-DNAN=__int_as_float(0x7fffffff)")
"""What nvcc takes from math.h, a header of the host."""


class Kernel:
    """One `__global__` function. `launch` runs it."""

    def __init__(self, owner: Kernels, loaded: launch.Loaded) -> None:
        self._owner = owner
        self._loaded = loaded

    @property
    def name(self) -> str:
        """As the source writes it."""
        return self._loaded.name

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Argument,
        shared_bytes: int = 0,
        max_steps: int = launch.MAX_STEPS,
        check: bool = True,
    ) -> KernelProfile:
        """Run the kernel on tensors of the CPU, in place, as `kernel<<<grid, block, shared_bytes>>>(...)` would.

        shared_bytes: dynamic shared memory. max_steps: instructions after which a launch counts as endless.
        check: raise `LaunchFault` for what CUDA does not define; else the faults are only in the profile.
        Raises TypeError and ValueError for arguments and shapes that do not fit.
        """
        memory = self._owner.memory()
        profile = launch.run(self._loaded, grid, block, arguments, memory, self._owner.symbols, shared_bytes, max_steps)
        if check and profile.faults:
            raise LaunchFault(self.name, profile.faults, self._loaded.source, profile)
        return profile


@dataclass
class Kernels(Mapping[str, Kernel]):
    """The kernels of one source by name. Their `__device__` variables keep their values from launch to launch."""

    source: str
    ptx: str = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()
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


def compile_cuda(source: str, arch: int = 80, options: Sequence[str] = ()) -> Kernels:
    """Compile CUDA C++ and make all of its kernels ready to launch. No GPU is needed.

    arch: the compute capability times ten; options: further ones of NVRTC, such as "--use_fast_math".
    Raises `CudaCompileError` with the source line and a caret, `SourceRefused`, `NvrtcMissing`, and `Unsupported` for
    an instruction that is not executed.
    """
    check_source(source)
    allowed = {"--use_fast_math", "--fmad=false", "--fmad=true", "--ftz=true", "--ftz=false", "--restrict"}
    if refused := [option for option in options if option not in allowed and not option.startswith("-D")]:
        raise ValueError(f"options {refused} are not allowed")
    folders = [f"--include-path={folder}" for folder in nvrtc.header_folders()]
    flags = [
        f"--gpu-architecture=compute_{arch}",
        "-lineinfo",
        "--std=c++17",
        "--device-int128",
        *MACROS,
        *folders,
        *options,
    ]
    compiled = nvrtc.compile_ptx(source, FILE, flags, COMPILE_LIMIT_S)
    diagnostics = parse_log(compiled.log, FILE)
    if compiled.timed_out:
        late = Diagnostic("error", 0, 0, f"the compiler was stopped after {COMPILE_LIMIT_S:.0f} s")
        raise CudaCompileError([late], source)
    if compiled.ptx is None:
        raise CudaCompileError(errors(diagnostics) or [Diagnostic("error", 0, 0, compiled.log.strip())], source)
    warnings = tuple(one for one in diagnostics if one.kind == "warning")
    return load_ptx(compiled.ptx, source, warnings)


def load_ptx(ptx: str, source: str, warnings: Sequence[Diagnostic] = ()) -> Kernels:
    """Make the kernels of a PTX text ready to launch. source: the C++ that it comes from."""
    module = parse(ptx, FILE)
    kernels = Kernels(source, ptx, tuple(warnings))
    for variable in module.variables.values():
        if variable.space in ("global", "const"):
            data = np.zeros(variable.size, np.uint8)
            region = kernels._variables.add_bytes(
                plain_name(variable.name), data, variable.word_bytes, variable.space == "global"
            )
            kernels.symbols[variable.name] = region.base
    for variable in module.variables.values():
        if variable.space in ("global", "const") and variable.words:
            region = next(one for one in kernels._variables.regions if one.base == kernels.symbols[variable.name])
            region.data[:] = np.frombuffer(constant_bytes(variable, kernels.symbols), np.uint8)
    plans = {}
    for name, function in module.functions.items():
        if not function.entry:
            continue
        names = launch.reachable(module, name)
        for one in names:
            plans[one] = plans.get(one) or make_plan(module.functions[one])
        plain = plain_name(name)
        known = tuple(parameters(source, plain))
        loaded = launch.Loaded(plain, name, {one: plans[one] for one in names}, module, known, source)
        kernels.found[plain] = Kernel(kernels, loaded)
    return kernels
