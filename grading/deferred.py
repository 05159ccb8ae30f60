"""Modules that a library imports for one function which this program hardly ever calls: loaded when it is called.

`import nbgrader` starts with its four extensions of the Jupyter server, and `import jsonschema` has a parser made for
the syntax of IRIs (RFC 3987): over a second of CPU each, in every process that grades. In their place stand modules
with that function alone, which loads the real module at its first call; so does any other name that is asked of them.
What is imported already, or not installed, is left as it is.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

DEFERRED = {
    "rfc3987_syntax": "is_valid_syntax",
    "nbgrader.server_extensions.assignment_list": "load_jupyter_server_extension",
    "nbgrader.server_extensions.course_list": "load_jupyter_server_extension",
    "nbgrader.server_extensions.formgrader": "load_jupyter_server_extension",
    "nbgrader.server_extensions.validate_assignment": "load_jupyter_server_extension",
}
"""The modules, and the function that each is imported for."""


class _Finder(MetaPathFinder, Loader):
    """Finds a stand-in for each module of DEFERRED, until the real one is wanted."""

    def __init__(self) -> None:
        self._left = dict(DEFERRED)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path) if name in self._left else None
        if found is None:
            return None
        spec = ModuleSpec(name, self, origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = found.has_location
        return spec

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__

        def found(wanted: str) -> object:
            if wanted.startswith("__"):
                # Asked of every module by `inspect`.
                raise AttributeError(wanted)
            return getattr(self._load(name), wanted)

        setattr(module, self._left[name], self._calling(name, self._left[name]))
        module.__getattr__ = found

    def _calling(self, module: str, function: str) -> Callable:
        def call(*args: object, **kwargs: object) -> object:
            return getattr(self._load(module), function)(*args, **kwargs)

        return call

    def _load(self, name: str) -> ModuleType:
        """The real module, which takes the stand-in's place."""
        if self._left.pop(name, None) is not None:
            del sys.modules[name]
        return importlib.import_module(name)


def defer() -> None:
    """From here on, in this process. Doing it again does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
