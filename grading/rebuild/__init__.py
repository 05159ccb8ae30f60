"""Rebuild, do not trust: a submission is the text of its answer cells and of the cells the student added.

Everything else comes from the course's own template. Nothing is run here and nothing is graded. A name is found when it
is first asked for: who judges needs one module of it, and none of nbgrader.
"""

from labkit.lazy import on_first_use

_HOMES = {
    "Merged": "grading.rebuild.merge",
    "Submission": "grading.rebuild.submission",
    "Template": "grading.rebuild.template",
    "TemplateCell": "grading.rebuild.template",
    "read_submission": "grading.rebuild.submission",
    "read_template": "grading.rebuild.template",
    "rebuilt_notebook": "grading.rebuild.merge",
    "steps_of": "grading.rebuild.merge",
}
"""The public names, and the module of each."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    return on_first_use(__name__, _HOMES, name)
