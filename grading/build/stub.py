"""What students find in place of a solution, as nbgrader's own configuration.

The build and every course set up from this project use the same object, so that both make the same notebooks.
Nothing else about a course is configured here.
"""

from __future__ import annotations

from traitlets.config import Config

from labkit.spec import STUB_MESSAGE

CODE_STUB = f'raise NotImplementedError("{STUB_MESSAGE}")'
TEXT_STUB = "*Write your answer here, in place of this line.*"


def nbgrader_config() -> Config:
    """A fresh Config for nbgrader; in an `nbgrader_config.py`: `c.merge(nbgrader_config())`."""
    config = Config()
    config.ClearSolutions.code_stub = {"python": CODE_STUB}
    config.ClearSolutions.text_stub = TEXT_STUB
    return config
