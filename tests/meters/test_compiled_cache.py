"""A report from the folder is the report that the compiler gives, and whatever it depends on has one of its own."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import interpreter
from labkit.meters.compiled import CompileReport, build, cache, compile_report

interpreter.enable()

SOURCE = """
import triton
import triton.language as tl

FACTOR: tl.constexpr = tl.constexpr(2.0)


@triton.jit
def twice(x):
    return x * FACTOR


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, twice(tl.load(x_ptr + at, mask=at < n)), mask=at < n)
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that went through the compiler, with a cache of this test's own."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    through: list[str] = []
    real = build._compiled

    def counted(launch, arch):
        through.append(launch.name)
        return real(launch, arch)

    monkeypatch.setattr(build, "_compiled", counted)
    return through


def report(source: str = SOURCE, file: str = "<kept>", n: int = 64, arch: int = 80, block: int = 64, **options):
    """Of functions that are made anew each time, as in another process."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict = {"__name__": "cell"}
    exec(compile(source, file, "exec"), names)
    x = torch.zeros(64)
    return compile_report(names["copy_kernel"], x, x, n, BLOCK=block, arch=arch, **options)


def test_a_hit_is_the_same_report_and_compiles_nothing(compiled: list[str]) -> None:
    first = report()
    again = report()
    assert compiled == ["copy_kernel"]
    assert again == first and isinstance(again, CompileReport)
    assert str(again) == str(first) and again.figures() == first.figures() and again.sass == first.sass


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"source": SOURCE.replace("at < n", "at < n - 1")},
        {"source": SOURCE.replace("x * FACTOR", "x + FACTOR")},
        {"source": SOURCE.replace("constexpr(2.0)", "constexpr(3.0)")},
        {"source": "\n" + SOURCE},
        {"file": "<another>"},
        {"n": 63},
        {"block": 128},
        {"arch": 90},
        {"num_warps": 8},
    ],
    ids=["source", "called", "constant", "line", "file", "argument", "constexpr", "chip", "option"],
)
def test_what_a_report_depends_on_is_compiled_anew(compiled: list[str], change: dict) -> None:
    report()
    changed = report(**change)
    assert len(compiled) == 2
    assert report(**change) == changed and len(compiled) == 2


def test_another_triton_is_asked_anew(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    report()
    monkeypatch.setattr("triton.runtime.cache.triton_key", lambda: "another version")
    report()
    assert len(compiled) == 2


@pytest.mark.parametrize("spoil", [lambda whole: b"", lambda whole: whole[:100], lambda whole: b"x" * 100])
def test_an_entry_that_cannot_be_read_is_made_anew(compiled: list[str], tmp_path: Path, spoil) -> None:
    first = report()
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_bytes(spoil(entry.read_bytes()))
    assert report() == first and len(compiled) == 2
    assert report() == first and len(compiled) == 2


def test_without_a_folder_nothing_is_kept(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE)
    assert report() == report() and len(compiled) == 2
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("no folder")
    assert report() == report() and len(compiled) == 4
    assert not (tmp_path / "cache").exists()
