"""The same report whatever the process did before: interpreter never on, on from the start, or patched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

REPORT = """
import torch
from labkit.meters.compiled import compile_report
from tests.kernels.compiled import helpers_kernel
x = torch.zeros(4096)
print(type(helpers_kernel).__name__)
print(compile_report(helpers_kernel, x, x, 4096, BLOCK_SIZE=1024, arch=80))
print(compile_report(helpers_kernel, x, x, 4096, BLOCK_SIZE=1024, arch=90).ptx)
"""

STATES = {
    "never": "import os; os.environ['TRITON_INTERPRET'] = '0'; import triton",
    "from-the-start": "import os; os.environ['TRITON_INTERPRET'] = '1'; import triton",
    "patched": "from labkit import interpreter; interpreter.enable()",
    "patched-late": (
        "import os; os.environ.pop('TRITON_INTERPRET', None); import tests.kernels.compiled; "
        "from labkit import interpreter; interpreter.enable()"
    ),
}


@pytest.mark.full("kernels")
def test_the_state_of_the_process_does_not_matter(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    reports, kinds = {}, {}
    for state, first in STATES.items():
        script = tmp_path / f"{state}.py"
        script.write_text(f"{first}\n{REPORT}")
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=280, env=env)
        assert (done.returncode, done.stderr) == (0, ""), f"{state}: {done.stderr}"
        kinds[state], _, reports[state] = done.stdout.partition("\n")
    assert set(kinds.values()) == {"JITFunction", "InterpretedFunction"}, "both kinds of kernel were compiled"
    assert len(set(reports.values())) == 1
