"""Values on the patched interpreter are PyTorch's, to the bit, and the stock one really needs every patch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")

from labkit import interpreter
from tests.interpreter import checks

interpreter.enable()

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", checks.ALL)
def test_on_the_patched_interpreter(name: str) -> None:
    checks.ALL[name]()


@pytest.mark.full("kernels")
def test_the_stock_interpreter_fails_what_we_patched() -> None:
    """The control of the tests above: a check that the stock version passes would guard nothing."""
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests/interpreter/stock.py"), str(ROOT)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=200, env=dict(os.environ))
    assert found.returncode == 0, found.stderr
    passed = set(checks.ALL) - set(found.stdout.split())
    assert passed <= checks.STOCK_PASSES
