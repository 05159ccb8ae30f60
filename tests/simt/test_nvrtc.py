"""How the compiler is found and loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.simt.harness import require_nvrtc

LOADED = """
from labkit.simt import nvrtc
nvrtc.library()
maps = open("/proc/self/maps").read()
print("libnvrtc.so" in maps, "libnvrtc-builtins.so" in maps)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no file says which libraries a process has loaded")
def test_what_it_asks_for_by_name_is_loaded_before_it() -> None:
    """CUDA 13.0's, which comes with PyTorch 2.11 for GPUs, finds it no other way; later ones look for it when used."""
    require_nvrtc()
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr) == ("True True\n", "")
