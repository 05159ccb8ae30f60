"""Rebuild, do not trust: a submission is the text of its answer cells and of the cells the student added.

Everything else comes from the course's own template. Nothing is run here and nothing is graded.
"""

from grading.rebuild.merge import Merged, merge, rebuilt_notebook, steps_of
from grading.rebuild.submission import Submission, read_submission
from grading.rebuild.template import Template, TemplateCell, read_template

__all__ = [
    "Merged",
    "Submission",
    "Template",
    "TemplateCell",
    "merge",
    "read_submission",
    "read_template",
    "rebuilt_notebook",
    "steps_of",
]
