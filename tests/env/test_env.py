"""The environment page: each line's states, the two renderings, the exit code, and that nothing in it wavers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from labkit.env import EnvFinding, Page, environment, look, machine, memory_bytes, packages
from labkit.env.__main__ import main
from labkit.env.page import as_html, as_text, summary

ROOT = Path(__file__).resolve().parents[2]
OK = EnvFinding("Python", "ok", "3.12.1")
NOTE = EnvFinding("triton", "note", "not installed", "python -m pip install triton")
RED = EnvFinding("Working folder", "red", "<here> & there: cannot be written to", "copy it")


def by_name() -> dict[str, EnvFinding]:
    return {one.name: one for one in look()}


def test_every_line_is_there_and_none_is_red_where_the_tests_run() -> None:
    found = by_name()
    assert list(found) == [
        "Python",
        "Running in",
        "Operating system",
        "CPU cores",
        "Memory",
        "Disk",
        "Working folder",
        "C++ compiler",
        "PyTorch",
        "GPU",
        "triton",
        "NVRTC",
        "matplotlib",
        "jupyterlab",
        "nbgrader",
        "ipywidgets",
        "transformers",
        "peft",
    ]
    assert [one for one in found.values() if one.state == "red"] == []
    assert found["PyTorch"].value.startswith(torch.__version__)
    assert found["Running in"].value == sys.executable


def test_two_looks_see_the_same() -> None:
    assert look() == look()


def test_what_is_not_ok_has_a_fix_where_there_is_one() -> None:
    assert all(one.fix for one in look() if one.state == "red")


def test_a_probe_that_fails_is_a_note() -> None:
    def working_folder() -> EnvFinding:
        raise PermissionError("no")

    assert look([working_folder]) == [
        EnvFinding("working folder", "note", "could not be determined (PermissionError)"),
    ]


@pytest.mark.parametrize(
    ("version", "state"), [((3, 10, 4), "red"), ((3, 11, 0), "ok"), ((3, 13, 5), "ok"), ((3, 14, 0), "note")]
)
def test_python(monkeypatch, version: tuple[int, ...], state: str) -> None:
    monkeypatch.setattr(machine.sys, "version_info", version)
    monkeypatch.setattr(machine.platform, "python_version", lambda: ".".join(map(str, version)))
    assert machine.python().state == state
    assert (machine.python().fix is not None) == (state == "red")


@pytest.mark.parametrize(("gib", "state"), [(1.5, "red"), (3, "note"), (3.8, "ok"), (64, "ok")])
def test_memory(monkeypatch, gib: float, state: str) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: int(gib * 2**30))
    assert machine.memory().state == state
    assert machine.memory().value.startswith(f"{gib:.1f} GiB")


def test_memory_is_what_the_system_has_or_less() -> None:
    assert 2**28 < memory_bytes() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("free_gb", "state", "value"),
    [
        (0.5, "red", "less than 1 GB free"),
        (3.1, "note", "less than 5 GB free"),
        (3.2, "note", "less than 5 GB free"),
        (900, "ok", "more than 5 GB free"),
    ],
)
def test_disk_is_told_as_a_threshold(monkeypatch, free_gb: float, state: str, value: str) -> None:
    usage = type("Usage", (), {"free": int(free_gb * 10**9)})
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage)
    found = machine.disk()
    assert (found.state, found.value) == (state, value)
    assert (found.fix is None) == (state == "ok")


def test_a_folder_that_cannot_be_written_to(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert machine.folder() == EnvFinding("Working folder", "ok", str(tmp_path))
    assert list(tmp_path.iterdir()) == []

    def refuse(**rest):
        raise PermissionError

    monkeypatch.setattr(machine.tempfile, "TemporaryFile", refuse)
    assert machine.folder().state == "red"


def test_the_wrong_kernel(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    found = machine.kernel()
    assert found.state == "note"
    assert str(tmp_path) in found.value
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert machine.kernel().state == "ok"
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "gone"))
    assert machine.kernel().state == "ok"


@pytest.mark.parametrize("system", ["Linux", "Darwin", "Windows", "FreeBSD"])
def test_nobody_without_a_gpu_is_sent_for_a_compiler(monkeypatch, system: str) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    monkeypatch.setattr(machine.platform, "system", lambda: system)
    found = machine.compiler()
    assert (found.state, found.fix) == ("ok", None)
    monkeypatch.setattr(machine.shutil, "which", lambda name: name if name == "nvidia-smi" else None)
    found = machine.compiler()
    assert (found.state, found.fix) == (("note", machine.COMPILER_FIX) if system == "Linux" else ("ok", None))


def test_every_system_has_a_name(monkeypatch) -> None:
    for system in ("Linux", "Darwin", "Windows"):
        monkeypatch.setattr(machine.platform, "system", lambda system=system: system)
        assert machine.operating_system().value


@pytest.mark.parametrize(("version", "state"), [("2.10.1+cu128", "red"), ("2.11.0", "ok"), ("3.0.0a0+git1", "ok")])
def test_torch(monkeypatch, version: str, state: str) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    found = packages.torch_build()
    assert (found.state, found.value.split(",")[0]) == (state, version)
    assert found.fix == (None if state == "ok" else 'python -m pip install "torch>=2.11"')


def test_a_gpu(monkeypatch) -> None:
    card = type("Card", (), {"name": "NVIDIA H100 80GB HBM3", "total_memory": 85_029_158_912})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: card)
    assert packages.gpu() == EnvFinding("GPU", "ok", "NVIDIA H100 80GB HBM3, 79.2 GiB (and 1 more)")


def test_no_gpu(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    assert packages.gpu().state == "ok"
    monkeypatch.setattr(packages.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert packages.gpu().state == "note"
    assert packages.gpu().fix


@pytest.mark.parametrize(
    ("system", "value", "fix"),
    [
        ("Linux", "not installed; later labs, on GPU kernels, need it", "python -m pip install triton"),
        ("Darwin", "Linux only; later labs, on GPU kernels, need it", "for later labs use Google Colab"),
        ("Windows", "Linux only; later labs, on GPU kernels, need it", "for later labs use Google Colab"),
    ],
)
def test_no_triton(monkeypatch, system: str, value: str, fix: str) -> None:
    monkeypatch.setattr(packages, "installed", lambda name: None)
    monkeypatch.setattr(packages.platform, "system", lambda: system)
    found = packages.triton()
    assert (found.state, found.value) == ("note", value)
    assert found.fix.startswith(fix)


def test_a_missing_package_is_red_only_where_nothing_works_without_it(monkeypatch) -> None:
    monkeypatch.setattr(packages, "installed", lambda name: None)
    states = {package.name: packages.probe_of(package)().state for package in packages.PACKAGES}
    assert {name for name, state in states.items() if state == "red"} == {"matplotlib"}
    assert packages.torch_build().state == "red"
    assert packages.probe_of(packages.PACKAGES[0])().fix == "python -m pip install matplotlib"


@pytest.mark.slow
def test_no_package_is_imported_to_find_its_version() -> None:
    code = (
        "import sys; before = set(sys.modules); from labkit.env import look; look()\n"
        "print({'triton', 'transformers', 'peft', 'jupyterlab', 'nbgrader', 'ipywidgets'} & set(sys.modules) - before)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert told.stdout == "set()\n"


def test_the_text() -> None:
    assert as_text([OK, NOTE, RED]) == "\n".join(
        [
            "✓ Python             3.12.1",
            "○ triton             not installed",
            "                     fix: python -m pip install triton",
            "✗ Working folder     <here> & there: cannot be written to",
            "                     fix: copy it",
            "1 line to fix (✗) before you start. 1 note (○): of use later, not needed to begin.",
        ]
    )


def test_the_summary() -> None:
    assert summary([OK]) == "Ready: nothing to fix."
    assert summary([OK, NOTE, NOTE]) == "Ready: nothing to fix. 2 notes (○): of use later, not needed to begin."
    assert summary([RED, RED]) == "2 lines to fix (✗) before you start."


def test_the_table_is_html_with_every_text_escaped() -> None:
    html = as_html([OK, NOTE, RED])
    assert "&lt;here&gt; &amp; there" in html
    assert "<here>" not in html
    assert html.count("<tr") == html.count("</tr>") == 3
    assert html.count("Fix:") == 2


def test_a_page_is_a_table_in_a_notebook_and_text_elsewhere(capsys) -> None:
    page = Page([OK, NOTE])
    assert repr(page) == as_text([OK, NOTE])
    assert page._repr_html_() == as_html([OK, NOTE])
    environment()
    assert capsys.readouterr().out.startswith("✓ Python")


@pytest.mark.parametrize(("findings", "code"), [([OK, NOTE], 0), ([OK, RED], 1)])
def test_the_exit_code(monkeypatch, capsys, findings: list[EnvFinding], code: int) -> None:
    monkeypatch.setattr("labkit.env.__main__.look", lambda: findings)
    assert main() == code
    assert capsys.readouterr().out == as_text(findings) + "\n"


@pytest.mark.slow
def test_a_console_without_check_marks() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "labkit.env"],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert told.returncode == 0, told.stderr
    assert b"? Python" in told.stdout
