"""`compile_report`: compile a kernel, as one launch would, for a GPU that need not be there, and read the result.

The kernel is not run. Arguments are specialized by Triton itself, so a size that is a multiple of 16 helps here as it
does on a GPU.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from labkit.interpreter.switch import TritonMissing, how_to_get_triton
from labkit.meters.compiled import ptx
from labkit.meters.compiled.cache import kept, key_of
from labkit.meters.compiled.process import compilable, settings
from labkit.meters.compiled.report import REGISTER_BYTES, SHARED_LIMIT_BYTES, CompileReport
from labkit.units import in_bytes

LARGE_BLOCK = "larger than all registers of a multiprocessor"
"""A part of what CompileFailed says of a block that no GPU could hold."""


class CompileFailed(Exception):
    """The compiler refuses the kernel; the text names the line and the reason."""


def compile_report(kernel: Callable, *args: object, arch: int = 90, **kwargs: object) -> CompileReport:
    """Compile `kernel[grid](*args, **kwargs)` for a GPU of compute capability `arch`, on any machine; about a second.

    args, kwargs: as in the launch, `num_warps` and the like included; tensors may be on the CPU. An autotuned kernel is
    compiled in the configuration that it chose last, or else in its first. Works with the interpreter on or off.
    Blocks of more than REGISTER_BYTES are refused, since the compiler would unroll them for many minutes.

    Raises TypeError for what is no Triton kernel or for wrong arguments, ValueError for an unknown arch, CompileFailed,
    TritonMissing.
    """
    if importlib.util.find_spec("triton") is None:
        raise TritonMissing(how_to_get_triton(sys.platform))
    if arch not in SHARED_LIMIT_BYTES:
        known = ", ".join(map(str, SHARED_LIMIT_BYTES))
        raise ValueError(
            f"arch is a compute capability, 80 for an A100 or 90 for an H100, not {arch!r}; known: {known}"
        )
    kernel, kwargs = _unwrapped(kernel, args, dict(kwargs))
    with settings(), compilable(kernel) as function:
        launch = _bound(function, args, kwargs, arch)
        return kept(lambda: key_of(launch.source, launch.backend, launch.options), lambda: _report(launch, arch))


def largest_block_bytes(kernel: Callable, *args: object, arch: int = 90, **kwargs: object) -> int:
    """The bytes of the largest block of floating-point numbers that the kernel computes with; known in milliseconds.

    Arguments as for `compile_report`. Raises CompileFailed for what cannot even be translated.
    """
    kernel, kwargs = _unwrapped(kernel, args, dict(kwargs))
    with settings(), compilable(kernel) as function:
        return _largest_block_bytes(_bound(function, args, kwargs, arch), arch)


def _largest_block_bytes(launch: _Launch, arch: int) -> int:
    from triton._C.libtriton import ir
    from triton.compiler.errors import CompilationError

    context = ir.context()
    ir.load_dialects(context)
    launch.backend.load_dialects(context)
    implementation = launch.backend.get_codegen_implementation(launch.options)
    modules = launch.backend.get_module_map()
    try:
        text = str(launch.source.make_ir(launch.target, launch.options, implementation, modules, context))
    except CompilationError as error:
        raise CompileFailed(_why(launch.name, arch, error)) from error
    blocks = re.findall(r"tensor<((?:\d+x)+)b?f(\d+)", text)
    return max((math.prod(map(int, shape[:-1].split("x"))) * int(bits) // 8 for shape, bits in blocks), default=0)


def _report(launch: _Launch, arch: int) -> CompileReport:
    if (n_bytes := _largest_block_bytes(launch, arch)) > REGISTER_BYTES:
        raise CompileFailed(
            f"kernel {launch.name} is not compiled for sm_{arch}: a block of {in_bytes(n_bytes)} is {LARGE_BLOCK} "
            f"together ({in_bytes(REGISTER_BYTES)})"
        )
    log = io.StringIO()
    with redirect_stdout(log):
        compiled = _compiled(launch, arch)
    registers, spill_stores, spill_loads = ptx.resources(log.getvalue())
    loads, stores = ptx.accesses(compiled.asm["ptx"])
    return CompileReport(
        kernel=launch.name,
        arch=arch,
        num_warps=compiled.metadata.num_warps,
        num_stages=launch.options.num_stages,
        registers=registers,
        spill_store_bytes=spill_stores,
        spill_load_bytes=spill_loads,
        shared_bytes=compiled.metadata.shared,
        loads=loads,
        stores=stores,
        matrix_instructions=ptx.matrix_instructions(compiled.asm["ptx"]),
        ptx=compiled.asm["ptx"],
        ttgir=compiled.asm["ttgir"],
        cubin=compiled.asm["cubin"],
    )


def _unwrapped(kernel: Callable, args: tuple, kwargs: dict[str, object]) -> tuple[Callable, dict[str, object]]:
    """The function below autotuners and heuristics, and the arguments that these add."""
    from triton.runtime.autotuner import Autotuner, Heuristics
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    while isinstance(kernel, Autotuner | Heuristics):
        if isinstance(kernel, Autotuner):
            config = getattr(kernel, "best_config", None) or kernel.configs[0]
            kwargs = {**kwargs, **config.all_kwargs()}
        else:
            for name, heuristic in kernel.values.items():
                kwargs[name] = heuristic({**dict(zip(kernel.arg_names, args)), **kwargs})
        kernel = kernel.fn
    if not isinstance(kernel, InterpretedFunction | JITFunction):
        raise TypeError(f"compile_report needs a function under @triton.jit, not {kernel!r}")
    return kernel, kwargs


@dataclass(frozen=True)
class _Launch:
    """What the compiler is given, in Triton's own types: ASTSource, BaseBackend, CUDAOptions, GPUTarget."""

    name: str
    source: Any
    backend: Any
    options: Any
    target: Any


def _bound(function, args: tuple, kwargs: dict[str, object], arch: int) -> _Launch:
    """The way that a launch takes up to the compiler."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend
    from triton.runtime.jit import create_function_from_signature

    target = GPUTarget("cuda", arch, 32)
    backend = make_backend(target)
    binder = create_function_from_signature(function.signature, function.params, backend)
    name = function.fn.__name__
    try:
        bound, specialization, options = binder(*args, **kwargs)
        options, signature, constants, attributes = function._pack_args(backend, kwargs, bound, specialization, options)
    except (TypeError, KeyError) as error:
        text = str(error.args[0]).replace("dynamic_func", name)
        raise TypeError(f"the arguments of kernel {name} do not fit: {text}") from None
    return _Launch(name, ASTSource(function, signature, constants, attributes), backend, options, target)


def _compiled(launch: _Launch, arch: int):
    """Triton's compiled kernel."""
    from triton.compiler import compile
    from triton.compiler.errors import CompilationError

    try:
        return compile(launch.source, target=launch.target, options=launch.options.__dict__)
    except CompilationError as error:
        raise CompileFailed(_why(launch.name, arch, error)) from error
    except RuntimeError as error:
        raise CompileFailed(f"kernel {launch.name} does not compile for sm_{arch}: {error}") from error


def _why(kernel: str, arch: int, error: Exception) -> str:
    """The innermost reason: an error in a function called by the kernel is wrapped once for each call."""
    while isinstance(error.__cause__, type(error)):
        error = error.__cause__
    line = getattr(error.node, "lineno", None)
    lines = (error.src or "").splitlines()
    where = f" (line {line}: {lines[line - 1].strip()})" if line and line <= len(lines) else ""
    # A check shows the first line of an error.
    first, *more = str(error.error_message or error.__cause__ or "no reason given").strip().splitlines() or [""]
    return "\n".join([f"kernel {kernel} does not compile for sm_{arch}: {first}{where}", *more])
