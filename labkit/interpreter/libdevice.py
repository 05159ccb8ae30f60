"""CUDA's math library (`libdevice.tanh`, `erf`, `pow`, ...) in the interpreter, computed by numpy and PyTorch.

In double precision, rounded once: nearer to the exact value than a GPU, whose own results are within a few units in the
last place. A function that is missing here says so by name.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType, ModuleType

import numpy as np
import torch

_STUBS = "triton.language.extra.libdevice"
_OF_CUDA = "triton.language.extra.cuda.libdevice"


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: function(torch.from_numpy(np.array(x))).numpy()


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    **{name: getattr(np, name) for name in ("tanh", "sinh", "cosh", "sin", "cos", "tan", "exp", "exp2", "expm1")},
    **{name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "sqrt", "cbrt", "floor", "ceil", "trunc")},
    **{name: getattr(np, name) for name in ("copysign", "fmod", "hypot", "rint")},
    **{name: _by_torch(getattr(torch, name)) for name in ("erf", "erfc", "erfinv", "lgamma")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "fabs": np.abs,
    "abs": np.abs,
    "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "nearbyint": np.rint,
    "isnan": np.isnan,
    "isnand": np.isnan,
    "isinf": np.isinf,
    "isinfd": np.isinf,
    "isfinited": np.isfinite,
    "finitef": np.isfinite,
    "fast_expf": np.exp,
    "fast_logf": np.log,
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_powf": np.power,
    "fast_fdividef": np.divide,
    "fdiv_rn": np.divide,
    "ddiv_rn": np.divide,
}
"""CUDA's name without its prefix and its suffix for the type -> the function of float64 arrays."""


def patch(interpreter: ModuleType) -> None:
    """Let the builder compute these functions, and let their two modules of stubs reach it from a running kernel."""
    Handle, get_np_dtype = interpreter.TensorHandle, interpreter._get_np_dtype

    def create_extern_elementwise(self, libName, libPath, symbol, argList, retType, isPure):
        function = FUNCTIONS.get(plain_name(symbol))
        if function is None:
            raise NotImplementedError(f"libdevice function {symbol} is not available on a CPU; {available()}")
        wide = [arg.data.astype(np.float64) if arg.data.dtype.kind == "f" else arg.data for arg in argList]
        with np.errstate(all="ignore"):
            result = np.asarray(function(*wide))
        return Handle(result.astype(get_np_dtype(retType.scalar)), retType.scalar)

    interpreter.InterpreterBuilder.create_extern_elementwise = create_extern_elementwise
    of_cuda = importlib.import_module(_OF_CUDA)
    stubs = importlib.import_module(_STUBS)
    reachable = {}
    for name, function in inspect.getmembers(of_cuda, inspect.isfunction):
        if interpreter.tl.core.is_builtin(function):
            reachable[name] = _reachable(function, interpreter.interpreter_semantic)
            setattr(of_cuda, name, reachable[name])
    _redirect_stubs(stubs, reachable)


def plain_name(symbol: str) -> str:
    """`tanh` for "__nv_tanhf"; names that end in f by themselves stay."""
    name = symbol.removeprefix("__nv_")
    return name if name in FUNCTIONS or not name.endswith("f") else name[:-1]


def available() -> str:
    return f"these are: {', '.join(sorted(FUNCTIONS))}"


def _reachable(function: Callable, semantic: object) -> Callable:
    """The function, called by an interpreted kernel as well, which unlike the compiler passes no `_semantic`."""

    @wraps(function)
    def call(*args, _semantic=None, **kwargs):
        try:
            return function(*args, _semantic=_semantic or semantic, **kwargs)
        except KeyError as error:
            types = ", ".join(str(item) for item in error.args[0])
            name = function.__name__
            raise TypeError(f"libdevice.{name} takes no {types}: convert first, x.to(tl.float32)") from None

    return call


def _redirect_stubs(stubs: ModuleType, reachable: dict[str, Callable]) -> None:
    """Exchange the stubs wherever a module has imported them; the compiler knows them by their module's name."""
    exchange = {}
    for name, stub in inspect.getmembers(stubs, inspect.isfunction):
        if stub.__module__ == _STUBS and name in reachable:
            exchange[stub] = _named(reachable[name], stub)
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            # By its type: asking some of PyTorch's deprecated objects for their class makes them warn.
            if type(value) is FunctionType and value in exchange:
                setattr(module, name, exchange[value])


def _named(function: Callable, stub: Callable) -> Callable:
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    call.__name__, call.__qualname__, call.__module__ = stub.__name__, stub.__qualname__, stub.__module__
    call.__doc__, call.__signature__ = stub.__doc__, inspect.signature(stub)
    return call
