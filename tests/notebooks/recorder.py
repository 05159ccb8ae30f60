"""A plugin for pytest: writes what nbval's cells gave, cell by cell, to the file that LABS_OUTPUTS names.

It compares nothing.
"""

import json
import os
from pathlib import Path

import pytest


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = {item.cell.id: item.test_outputs or [] for item in session.items}
    Path(os.environ["LABS_OUTPUTS"]).write_text(json.dumps(found))
