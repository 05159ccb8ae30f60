"""Ranks whose backward passes are cut short by an error, under a memory meter, leave the process alive."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
from grading.demo.examples import example
from tests.exercises.harness import SECRET, CaseSet

cases = CaseSet("16-zero2", SECRET)
twice = example("wrong", "16-zero2/registers_its_hooks_twice")
for _ in range(25):
    assert cases.runs(twice.source)[-1].trouble
print("alive")
"""


@pytest.mark.slow
@pytest.mark.lab("16")
def test_hooks_that_fail_in_one_rank_do_not_end_the_process() -> None:
    """In a process of its own: if a rank's thread ends before the others' meters do, this is a segmentation fault."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr[-1000:]
