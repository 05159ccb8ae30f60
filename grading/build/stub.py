"""What students find in place of a solution, as nbgrader's own configuration.

The build and every course set up from this project use the same object, so that both make the same notebooks.
Nothing else about a course is configured here.
"""

from __future__ import annotations

from nbformat import NotebookNode
from nbgrader import preprocessors
from nbgrader.converters import GenerateAssignment
from traitlets.config import Config

from labkit.spec import STUB_MESSAGE

CODE_STUB = f'raise NotImplementedError("{STUB_MESSAGE}")'
CUDA_STUB = f'#error "{STUB_MESSAGE}"'
TEXT_STUB = "*Write your answer here, in place of this line.*"


class ClearSolutions(preprocessors.ClearSolutions):
    """nbgrader's, but a solution that begins with `// ### BEGIN SOLUTION` is CUDA C++, and so is its stub."""

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        begins = [line for line in cell.source.split("\n") if self.begin_solution_delimeter in line]
        in_cuda = cell.cell_type == "code" and any(line.lstrip().startswith("//") for line in begins)
        return super()._replace_solution_region(cell, "cuda" if in_cuda else language)


def nbgrader_config() -> Config:
    """A fresh Config for nbgrader; in an `nbgrader_config.py`: `c.merge(nbgrader_config())`."""
    config = Config()
    config.ClearSolutions.code_stub = {"python": CODE_STUB, "cuda": CUDA_STUB}
    config.ClearSolutions.text_stub = TEXT_STUB
    config.GenerateAssignment.preprocessors = [
        ClearSolutions if step is preprocessors.ClearSolutions else step
        for step in GenerateAssignment.preprocessors.default()
    ]
    return config
