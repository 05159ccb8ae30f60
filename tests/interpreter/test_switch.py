"""Switching the interpreter on: late, twice, without Triton, and under a Triton that it was not written for."""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import interpreter
from labkit.interpreter import canary, switch
from labkit.spec import record

ROOT = Path(__file__).resolve().parents[2]

LATE = """
import os
os.environ.pop("TRITON_INTERPRET", None)
FIRST
import torch, triton, triton.language as tl
from triton.language.extra.libdevice import tanh

@triton.jit
def double(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, n: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, n))
    tl.store(out_ptr, double(x).sum(axis=0) + tl.max(tanh(x), axis=0))

from labkit import interpreter
assert interpreter.changed() == [], interpreter.changed()
assert not interpreter.enabled()
assert interpreter.enable() and interpreter.enable() and interpreter.enabled()
x, out = torch.arange(16.0), torch.zeros(1)
kernel[(1,)](x, out, 16)
print(out.item())
"""

CHANGED = """
import triton.runtime.interpreter as stock
def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
    return None
stock.InterpreterBuilder.create_dot = create_dot
from labkit import interpreter
interpreter.enable()
"""


def run(tmp_path: Path, source: str) -> subprocess.CompletedProcess:
    """In a process of its own: what is tested is what it imported first."""
    script = tmp_path / "script.py"
    script.write_text(source)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100, env=env)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "needed"),
    [
        pytest.param("", "triton", id="triton"),
        pytest.param(
            "import torch._inductor.runtime.triton_heuristics, torch._inductor.codegen.triton",
            "torch._inductor",
            id="inductor",
            marks=pytest.mark.full("kernels"),
        ),
        pytest.param(
            "from transformers import LlamaForCausalLM, MixtralForCausalLM",
            "transformers",
            id="transformers",
            marks=pytest.mark.full("kernels"),
        ),
    ],
)
def test_late_after_triton_and_kernels(tmp_path: Path, first: str, needed: str) -> None:
    pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed; what is tested is that it was imported before")
    done = run(tmp_path, LATE.replace("FIRST", first))
    assert done.stdout == "241.0\n", done.stderr
    assert done.stderr == ""


def test_a_class_is_cut_from_its_file_as_inspect_does_it() -> None:
    """With its decorators; a function, and a class that stands elsewhere, as well."""
    found = [one for one in vars(record).values() if inspect.isclass(one) and one.__module__ == record.__name__]
    assert len(found) == 4
    for one in (*found, record.CaseRun.memo, Path):
        assert canary._source(one, record) == inspect.getsource(one)


@pytest.mark.slow
def test_the_canary_says_what_changed(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")
    done = run(tmp_path, CHANGED)
    assert (
        f"RuntimeWarning: Triton {triton.__version__} is not one that labkit.interpreter was written for "
        "(3.6 to 3.9): interpreter.InterpreterBuilder.create_dot changed, so values on the CPU may be wrong. "
        "Install triton==3.9.0 or 3.6.0."
    ) in done.stderr


def test_nothing_is_patched_where_there_is_a_gpu(monkeypatch) -> None:
    pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")
    monkeypatch.setattr(switch, "has_gpu", lambda: True)
    assert interpreter.enable() is False


def test_without_triton(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(interpreter.TritonMissing) as error:
        interpreter.enable()
    assert str(error.value) == switch.how_to_get_triton(sys.platform)


@pytest.mark.parametrize(
    ("platform", "text"),
    [
        ("linux", "Triton is not installed: python -m pip install triton"),
        ("darwin", "Triton has no builds for macOS. Do this lab on Linux: in Google Colab, in a container"),
        ("win32", "Triton has no builds for Windows. Do this lab on Linux: in Google Colab, in a container"),
    ],
)
def test_what_to_do_without_triton(platform: str, text: str) -> None:
    assert switch.how_to_get_triton(platform).startswith(text)
