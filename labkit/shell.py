"""The notebook that the program runs in, if it does. IPython is not loaded for the question."""

from __future__ import annotations

import sys
from typing import Any


def current_shell() -> Any:
    """IPython's shell, None outside of one."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def show(view: object) -> None:
    """Display in a notebook, print elsewhere."""
    if getattr(current_shell(), "kernel", None) is None:
        print(view)
    else:
        from IPython.display import display

        display(view)
