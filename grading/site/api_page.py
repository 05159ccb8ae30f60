"""The page of labkit's public names: what each is called with, and its docstring.

A docstring is Markdown in this project, but for what Markdown would take for its own signs. Names that begin with an
underscore, and what a class only inherits, are left out.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

import labkit
import labkit.figures

GROUPS = {
    "Checks and predictions": ("check", "progress", "CheckFailed", "Predictions", "feature_row", "feature_table"),
    "The machine": ("device", "has_gpu", "seed_all"),
    "Memory, time and operations": (
        *("track_memory", "measure_step", "limit_memory", "bench", "Timing", "track_ops", "track_compile"),
        "VirtualClock",
    ),
    "Kernels": (*("track_traffic", "guard_launches", "compile_report", "compile_cuda", "track_cuda", "KernelProfile"),),
    "Ranks": ("run_ranks", "track_comm"),
    "Cells that wait for an answer": ("leave_out_blanks", "written", "each_written"),
}
"""Every public name of labkit, by what it is for."""
WIDTH = 88
OPENING = """# What notebooks import

`import labkit` gives these names. Each runs in a plain Python program as well as in a notebook. `help(labkit.check)`
shows the same text.
"""
FIGURES_OPENING = """## Figures

Each takes results and returns a figure, as in `labkit.figures.memory_timeline(profile)`; or sliders and buttons over
one, where `ipywidgets` is installed.
"""


def api_page() -> str:
    """The page as Markdown."""
    parts = [OPENING]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [entry(name, getattr(labkit, name)) for name in names]
    parts.append(FIGURES_OPENING)
    parts += [figure_line(name) for name in labkit.figures.__all__]
    return "\n".join(parts)


def entry(name: str, value: object) -> str:
    """A heading, how it is called, what its docstring says, and its public methods."""
    parts = [f"### {name}\n", f"```python\n{called(name, value)}\n```\n", prose(inspect.getdoc(value) or ""), ""]
    if inspect.isclass(value):
        parts += [f"`{shown}`\n: {summary}\n" for shown, summary in methods(value)]
    return "\n".join(parts)


def figure_line(name: str) -> str:
    """A term of a list of definitions, with the first line of its docstring."""
    value = getattr(labkit.figures, name)
    return f"`{name}`\n: {first_line(value)}\n"


def methods(of: type) -> Iterator[tuple[str, str]]:
    """Each public method or property that the class itself defines and explains, as it is called, and what it does."""
    for name, value in vars(of).items():
        value = getattr(value, "__func__", value)
        is_property = isinstance(value, property) or hasattr(value, "attrname")
        if name.startswith("_") or not (is_property or inspect.isfunction(value)) or not value.__doc__:
            continue
        yield name if is_property else called(name, value, method=True), first_line(value)


def first_line(value: object) -> str:
    """The first paragraph of a docstring, in one line."""
    summary = (inspect.getdoc(value) or "").split("\n\n")[0]
    return escaped(" ".join(summary.split()))


def called(name: str, value: object, *, method: bool = False) -> str:
    """`bench(fn, *, n_repeats=None) -> Timing`, over several lines where it is long."""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return name
    if isinstance(value, type) and issubclass(value, Exception):
        return f"class {name}(Exception)"
    kept = [one.replace(annotation=_plain(one.annotation)) for one in signature.parameters.values()]
    kept = [one for one in kept if not (method and one.name in ("self", "cls"))]
    returned = _plain(signature.return_annotation)
    if isinstance(value, type):
        returned = inspect.Signature.empty
    signature = signature.replace(parameters=kept, return_annotation=returned)
    prefix = "class " if isinstance(value, type) else ""
    whole = f"{prefix}{name}{signature}"
    if len(whole) <= WIDTH or method:
        return whole
    rows = "".join(f"    {one},\n" for one in _with_separators(kept))
    end = "" if returned is inspect.Signature.empty else f" -> {returned!r}"
    return f"{prefix}{name}(\n{rows}){end}"


def _with_separators(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """The parameters as they are written, with the star before those that are given by name alone."""
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
            starred = True
        starred |= one.kind is one.VAR_POSITIONAL
        yield str(one)


class _Written:
    """An annotation that is shown as it is written in the source."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _plain(annotation: object) -> object:
    return _Written(annotation) if isinstance(annotation, str) else annotation


def prose(docstring: str) -> str:
    """A docstring as Markdown: what is indented is code, and what Markdown would take for its own is not."""
    blocks = re.split(r"\n\s*\n", docstring)
    return "\n\n".join(map(_block, _joined(blocks)))


def _joined(blocks: list[str]) -> list[str]:
    """Indented blocks that follow one another are one."""
    found: list[str] = []
    for block in blocks:
        if found and _is_code(block) and _is_code(found[-1]):
            found[-1] += f"\n\n{block}"
        else:
            found.append(block)
    return found


def _is_code(block: str) -> bool:
    return all(line.startswith("    ") for line in block.split("\n") if line.strip()) and bool(block.strip())


def _block(block: str) -> str:
    return f"```python\n{textwrap.dedent(block)}\n```" if _is_code(block) else escaped(block)


def escaped(text: str) -> str:
    """The text with its backticks as code; stars, brackets and the like are themselves."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if n % 2 else re.sub(r"([\\*_<>\[\]$])", r"\\\1", part) for n, part in enumerate(parts))
