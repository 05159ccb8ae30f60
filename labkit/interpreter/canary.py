"""The canary: which of Triton's functions, among those we replace or stand on, are not those we were written for.

It reads sources and runs nothing. A change is no proof of a fault; the tests of this package are what tells.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from types import ModuleType
from typing import Any

KNOWN: dict[str, tuple[str, ...]] = {
    "interpreter.TensorHandle": (
        "3202e4a6ff09",
        "0efd336dc08e",
    ),
    "interpreter.InterpreterBuilder.cast_impl": ("b221bbb79664",),
    "interpreter.InterpreterBuilder.create_fp_to_fp": ("4cfd24ff0203", "c7c60f44488e"),
    "interpreter.InterpreterBuilder.binary_op": ("df11eb49f20b", "ca085f65855c"),
    "interpreter.InterpreterBuilder.unary_op": ("fae9670ade6d",),
    "interpreter.InterpreterBuilder.ternary_op": ("83d9c33d1a21",),
    "interpreter.InterpreterBuilder.create_fma": ("23c2e952e623", "3ad626bc0d7b"),
    "interpreter.InterpreterBuilder.create_clampf": ("6da30573db17", "adf5608228cd"),
    "interpreter.InterpreterBuilder.create_dot": ("7d5da68ca4b3",),
    "interpreter.InterpreterBuilder.create_atomic_rmw": ("439de2147dca",),
    "interpreter.InterpreterBuilder.create_atomic_cas": ("b7c0e3f0b15d",),
    "interpreter.InterpreterBuilder.create_masked_load": ("3d7f09b9abc7", "b80d0b6693a5"),
    "interpreter.InterpreterBuilder.create_masked_store": ("c749a5dad7ac", "1d5e501bd65a"),
    "interpreter.InterpreterBuilder.create_extern_elementwise": ("3f0e32651636",),
    "interpreter.InterpreterBuilder.set_grid_idx": ("22f3c9f5b2d6",),
    "interpreter.ReduceScanOpInterface": ("06d8d210ee9a", "76e674f4f1ba", "2b5e07135ed9"),
    "interpreter.ReduceOps": ("0025368fbc9a", "7794770a3301"),
    "interpreter.ScanOps": ("d2573a0e289b", "edee99fad965"),
    "interpreter._LangPatchScope": ("1b26f629cd73",),
    "interpreter._patch_builtin": ("3c21c270fa61",),
    "interpreter._patch_lang_tensor": ("efc91e4a5c96", "1475c3a06f26", "7c7aba5262fd"),
    "interpreter._patch_lang_core": ("72864625d91b", "8535aecd1dc6", "65cf7cf4d724"),
    "interpreter._patch_lang": ("e5beeba74ada",),
    "interpreter.GridExecutor": ("c552da3bfb8e", "261838fc2902", "ab9b61b54660", "0d3a9edbd715"),
    "interpreter.FunctionRewriter": ("7cc012dec45e", "d7b3164d1fcb"),
    "interpreter.InterpretedFunction": ("e207e8dbac34",),
    "autotuner.Autotuner._bench": ("4338ab90358c",),
    "autotuner.Autotuner.check_disk_cache": ("968882d83607",),
    "autotuner.Autotuner.run": ("f4a25180f554", "ff1f0037e8ac"),
    "jit.KernelInterface": ("ca1c37b39ad2",),
    "jit.JITFunction.__call__": ("0859c60ab06c", "f58ccbb4bf44"),
}
"""Function -> the digests of its source in Triton 3.6.0, 3.7.1, 3.8.0 and 3.9.0."""


def changed() -> list[str]:
    """Names of functions whose source is of none of the known versions, or that are gone. Imports Triton.

    Read before the patches are put in place; afterwards their own sources stand in the same places.
    """
    return [name for name, digests in KNOWN.items() if digest(name) not in digests]


def digest(name: str) -> str:
    """Twelve digits of the SHA-256 of a function's source, "absent" where there is none; name as in KNOWN."""
    from triton.runtime import autotuner, interpreter, jit

    module = {"interpreter": interpreter, "autotuner": autotuner, "jit": jit}[name.split(".")[0]]
    target = module
    for part in name.split(".")[1:]:
        target = getattr(target, part, None)
    if target is None:
        return "absent"
    return hashlib.sha256(_source(target, module).encode()).hexdigest()[:12]


def _source(target: Any, module: ModuleType) -> str:
    """As `inspect.getsource` has it, which until Python 3.13 parses the module's whole file for every class."""
    lines, classes = _lines_and_classes(module)
    if not inspect.isclass(target) or target.__name__ not in classes:
        return inspect.getsource(target)
    return "".join(inspect.getblock(lines[classes[target.__name__] - 1 :]))


@functools.cache
def _lines_and_classes(module: ModuleType) -> tuple[list[str], dict[str, int]]:
    """The lines of a module, and where each of its classes begins, decorators included."""
    lines, _ = inspect.findsource(module)
    tree = ast.parse("".join(lines))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return lines, {node.name: min(one.lineno for one in (node, *node.decorator_list)) for node in classes}
