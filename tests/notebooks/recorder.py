"""A plugin for pytest: writes what nbval's cells gave, cell by cell, to the file that LABS_OUTPUTS names.

It compares nothing. The kernel keeps a history of the cells, as under JupyterLab and not by nbval's own doing: a check
finds an answer there that is the text of its cell.
"""

import json
import os
from pathlib import Path

import pytest
from nbval.kernel import RunningKernel


def execute_and_keep(self: RunningKernel, cell_input: str, allow_stdin: bool | None = None) -> str:
    """In place of nbval's: the id of the request that runs a cell."""
    return self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)


def pytest_configure(config: pytest.Config) -> None:
    RunningKernel.execute_cell_input = execute_and_keep


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = {item.cell.id: item.test_outputs or [] for item in session.items}
    Path(os.environ["LABS_OUTPUTS"]).write_text(json.dumps(found))
