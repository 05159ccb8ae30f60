"""Reports on compiled kernels, kept in a folder, so that processes share them: for the course's own tests.

Off unless LABS_COMPILE_CACHE names a folder. A notebook compiles a kernel once in its process and needs no more; the
grader's workers get a clean environment, and so share nothing that a student's code could write.

The key is Triton's own, of the source of the kernel and of all that it calls, the kind of each argument, constants,
options, the GPU, and the versions of Triton and the assembler, together with the files that the code names as its
origin. What cannot be read is compiled anew. Nothing is removed: `make clean` does.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import inspect
import json
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

from labkit.meters.compiled.report import CompileReport

VARIABLE = "LABS_COMPILE_CACHE"


def kept(key: Callable[[], str], make: Callable[[], CompileReport]) -> CompileReport:
    """The report of this key from the folder, or else a new one, which is put there. key: asked only where it is on."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return make()
    path = Path(folder, f"{hashlib.sha256(key().encode()).hexdigest()}.json.gz")
    if (report := _read(path)) is None:
        report = make()
        _write(path, report)
    return report


def key_of(source, backend, options) -> str:
    """source: Triton's ASTSource of a function of the compiler's. backend, options: what compiles it, and how."""
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.runtime.cache import get_cache_key

    files = sorted({function.__code__.co_filename for function in _functions(source.fn.fn)})
    return "\n".join([get_cache_key(source, backend, options, get_cache_invalidating_env_vars()), *files])


def _functions(function: FunctionType) -> Iterator[FunctionType]:
    """The kernel and the functions that it finds by their names, and those that they find."""
    found: list[FunctionType] = []
    rest = [function]
    while rest:
        if (one := rest.pop()) in found:
            continue
        found.append(one)
        taken = inspect.getclosurevars(one)
        inner = [getattr(value, "fn", None) for value in (*taken.globals.values(), *taken.nonlocals.values())]
        rest += [fn for fn in inner if isinstance(fn, FunctionType)]
    return iter(found)


def _read(path: Path) -> CompileReport | None:
    try:
        fields = json.loads(gzip.decompress(path.read_bytes()))
        for name in ("loads", "stores"):
            fields[name] = Counter({int(width): count for width, count in fields[name].items()})
        fields["matrix_instructions"] = Counter(fields["matrix_instructions"])
        fields["cubin"] = base64.b64decode(fields["cubin"])
        return CompileReport(**fields)
    except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(path: Path, report: CompileReport) -> None:
    """Whole or not at all, also where several processes write the same. A folder that cannot be written is left."""
    fields = {**vars(report), "cubin": base64.b64encode(report.cubin).decode()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(gzip.compress(json.dumps(fields).encode()))
        os.replace(file.name, path)
    except OSError:
        return
