"""What of a solved run gives an answer away: which outputs must not stand on a page.

It knows an answer by its lines, by its name where it is a value, and by the figures that draw a kernel's source. What a
figure shows otherwise is meant to be seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from nbformat import NotebookNode

from grading.build.markers import SOLUTION, find, inside
from grading.build.syntax import parse

DRAW_SOURCE = frozenset({"address_player", "kernel_life", "lane_addresses", "life_player", "source_heat"})
"""Figures of labkit that show lines of the kernel they are given, which is the student's as a rule."""
SHORTEST = 20
"""Characters of a line that tells whose it is; `return out` is everybody's."""
COLLECTIONS = (ast.Dict, ast.List, ast.Set, ast.Tuple)
BLANKS = re.compile(r"[\s`]+")
"""What makes no difference between a line of code and the same line in a text, or on a page."""


@dataclass(frozen=True)
class Answers:
    """What a solved notebook holds and the student's does not.

    lines: of solutions, without the blanks in them. values: names that stand for one value, whatever is
    asked of them.

        Answers(lines=frozenset({"total=torch.zeros(n)"}), values=frozenset({"nf4_codebook"}))
    """

    lines: frozenset[str]
    values: frozenset[str]

    def are_in(self, text: str) -> bool:
        """Whether a line of a solution stands in this text."""
        shown = BLANKS.sub("", text)
        return any(line in shown for line in self.lines)

    def are_shown_by(self, cell: NotebookNode) -> bool:
        """Whether the outputs of this cell, which is no answer, show one, as far as its code and their texts tell."""
        used = _names(cell.source)
        if used & DRAW_SOURCE:
            return True
        if used & self.values and not cell.get("metadata", {}).get("nbgrader", {}).get("grade"):
            return True
        return any(self.are_in(text) for output in cell.get("outputs", ()) for text in texts_of(output))


def answers_of(solved: NotebookNode, student: NotebookNode) -> Answers:
    """Those of a solved notebook; what the student's shows, in a hint for example, is given away already."""
    public = BLANKS.sub("", "\n".join(cell.source for cell in student.cells))
    lines, values = set(), set()
    for cell in solved.cells:
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            continue
        rows = cell.source.split("\n")
        markers = find(rows, SOLUTION)
        numbered = [line for region in inside(rows, markers) for line in region]
        lines |= {BLANKS.sub("", text) for _, text in numbered}
        if cell.cell_type == "code" and not cell.source.startswith("%%"):
            values |= set(_values(parse(cell.source), {number + 1 for number, _ in numbered}))
    return Answers(frozenset(one for one in lines if len(one) >= SHORTEST and one not in public), frozenset(values))


def _values(tree: ast.Module, written: set[int]) -> Iterable[str]:
    """The names at the top of a cell that are one value, given in the lines `written`: a function without arguments
    that makes no other function, and a variable that holds several things."""
    for node in tree.body:
        if not written & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
            continue
        if isinstance(node, ast.FunctionDef):
            inner = any(isinstance(one, ast.FunctionDef | ast.Lambda) for each in node.body for one in ast.walk(each))
            if not ast.unparse(node.args) and not inner:
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, COLLECTIONS):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


def _names(source: str) -> set[str]:
    """Every name and attribute that the code of a cell reads."""
    nodes = list(ast.walk(parse(source)))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def texts_of(output: NotebookNode) -> list[str]:
    """What an output says in words: a stream, a result, the alternative text of a picture."""
    texts = [output.get("text", ""), *output.get("traceback", ())]
    data = output.get("data", {})
    texts += [data[kind] for kind in ("text/plain", "text/html", "text/markdown") if kind in data]
    texts.append(output.get("metadata", {}).get("image/png", {}).get("alt", ""))
    return [text for text in texts if text]
