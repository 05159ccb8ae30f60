"""A line of CUDA C++ beside what became of it: PTX, and the machine code of one chip."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, SHADE, TRUTH, YOURS, LabFigure
from labkit.figures.sliders import with_sliders
from labkit.meters.compiled.sass import by_line
from labkit.simt import compile_cuda
from labkit.simt.compiling import FILE
from labkit.simt.cubin import compile_cubin
from labkit.simt.listing import ptx_by_line

WIDTH, HALF_WIDTH = 118, 58
"""Characters of a line of the source, and of an instruction, that are shown."""
LINE_IN = 0.165
MEMORY = re.compile(r"\b(ld|st|atom|red)\.(global|shared)|\b(LDG|STG|LDS|STS|ATOMG|ATOMS|RED)\b")


@dataclass(frozen=True)
class KernelLife:
    """A kernel's source, and by its lines the instructions of both forms. sass: None without a disassembler."""

    name: str
    arch: int
    source: str = field(repr=False)
    ptx: Mapping[int, Sequence[str]] = field(repr=False)
    sass: Mapping[int, Sequence[str]] | None = field(repr=False)

    @property
    def lines(self) -> list[int]:
        """Those of which there are instructions in either form."""
        return sorted({line for line in (*self.ptx, *(self.sass or ())) if line})

    @property
    def first(self) -> int:
        """The line to begin with: that with the widest accesses to memory, and of several the longest in PTX."""
        rank = {line: (self._width(line), len(self.ptx.get(line, ()))) for line in self.lines}
        return max(rank, key=rank.__getitem__, default=0)

    def _width(self, line: int) -> int:
        """Numbers that one access moves for a thread; 0 where no memory is accessed."""
        accesses = [one for one in self.ptx.get(line, ()) if MEMORY.search(one)]
        return max((int(wide[1]) if (wide := re.search(r"\.v(\d)", one)) else 1 for one in accesses), default=0)


def life_of(source: str, name: str, arch: int = 80) -> KernelLife:
    """Compile the kernel to PTX and to the machine code of a chip."""
    kernel = compile_cuda(source)
    sass = None
    if importlib.util.find_spec("triton") is not None:
        sass = by_line(compile_cubin(source, arch).data, FILE, kernel[name].entry)
    return KernelLife(name, arch, source, ptx_by_line(kernel.ptx, name), sass)


def life_player(source: str, name: str, arch: int = 80) -> object:
    """`kernel_life` under a slider for the line."""
    life = life_of(source, name, arch)
    return with_sliders(lambda line: kernel_life(life, line), {"line": ("line", life.lines, life.first)})


def kernel_life(life: KernelLife, line: int) -> Figure:
    """The source with one line marked, and under it this line's instructions in PTX and in machine code."""
    rows = [(number, text.rstrip()) for number, text in enumerate(life.source.splitlines(), 1)]
    rows = [row for row in rows if row[1]]
    found = {"PTX": life.ptx.get(line, ()), f"sm_{life.arch}": () if life.sass is None else life.sass.get(line, ())}
    longest = max(max(map(len, found.values())), 1)
    height = 0.7 + LINE_IN * (len(rows) + longest + 3)
    figure = LabFigure(figsize=(9.0, height), dpi=DPI, layout="constrained", facecolor="white")
    grid = figure.add_gridspec(2, 2, height_ratios=(len(rows) + 1, longest + 1.5))
    _source(figure.add_subplot(grid[0, :]), rows, line)
    totals = [sum(map(len, life.ptx.values())), 0 if life.sass is None else sum(map(len, life.sass.values()))]
    for column, ((form, listed), total) in enumerate(zip(found.items(), totals, strict=True)):
        head = f"{form}: {len(listed)} of {total} instructions"
        if column and life.sass is None:
            head = f"{form}: the disassembler comes with Triton"
        _instructions(figure.add_subplot(grid[1, column]), head, listed, longest)
    figure.axes[0].set_title(f"{life.name}, line {line}", loc="left", fontsize=10)
    summary = "; ".join(f"{form}: {' '.join(listed) or 'nothing'}" for form, listed in found.items())
    figure.alt = f"Line {line} of {life.name} and its instructions. {summary}"
    return figure


def _source(axes: Axes, rows: Sequence[tuple[int, str]], line: int) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows), 0)
    axes.set_axis_off()
    for place, (number, text) in enumerate(rows):
        if number == line:
            axes.add_patch(Rectangle((0, place), 1, 1, facecolor=YOURS, alpha=0.18, edgecolor="none"))
        _text(axes, place, f"{number:3} {text}", WIDTH)


def _instructions(axes: Axes, head: str, listed: Sequence[str], longest: int) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(longest + 0.2, -1.2)
    axes.set_axis_off()
    axes.text(0, -0.6, head, va="center", fontsize=8, color=TRUTH, fontweight="bold")
    for place, text in enumerate(listed):
        if MEMORY.search(text):
            axes.add_patch(Rectangle((0, place), 1, 1, facecolor=SHADE, edgecolor="none"))
        _text(axes, place, text, HALF_WIDTH, bold=bool(MEMORY.search(text)))


def _text(axes: Axes, place: int, text: str, width: int, bold: bool = False) -> None:
    cut = text if len(text) <= width else text[: width - 1] + "…"
    weight = "bold" if bold else "normal"
    # matplotlib would read what stands between two dollars as a formula.
    line = cut.replace("$", r"\$")
    shown = axes.text(0.005, place + 0.5, line, va="center", fontsize=7, family="monospace", fontweight=weight)
    shown.set_in_layout(False)
