"""Reductions on the patched interpreter cost at most half of what they cost on the stock one.

What is compared is calls of Python functions, which are the same at every run and of which an interpreted launch
consists; in CPU time, the factors were found to be as large.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")

ROOT = Path(__file__).resolve().parents[2]


def calls(which: str) -> dict[str, int]:
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests/interpreter/calls.py"), str(ROOT), which]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.full("kernels")
def test_reductions_take_half_of_what_they_took() -> None:
    stock, ours = calls("stock"), calls("ours")
    factors = {kind: stock[kind] / ours[kind] for kind in stock}
    assert min(factors.values()) >= 2, factors
