"""The set-up script: what it says when something is missing, what it keeps, what it makes anew.

The environment is given through arguments. No test installs anything or reaches the network.
"""

import ast
import collections
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".make" / "setup.py"
spec = importlib.util.spec_from_file_location("labs_setup_script", SCRIPT)
setup = importlib.util.module_from_spec(spec)
# Where Python looks first when it runs the script.
sys.path.insert(0, str(SCRIPT.parent))
try:
    spec.loader.exec_module(setup)
    from setup_environment import STATE
finally:
    sys.path.remove(str(SCRIPT.parent))

Usage = collections.namedtuple("Usage", "total used free")


@pytest.fixture
def said():
    return []


@pytest.fixture
def say(said):
    return lambda text="", end="\n", flush=False: said.append(text + end)


def empty_venv(path: Path, state: str = "", pip: bool = True) -> Path:
    """What `state_of` looks at: a Python that starts, perhaps pip, perhaps a state file."""
    (path / "bin").mkdir(parents=True)
    if pip:
        (path / "bin" / "python").symlink_to(sys.executable)
    else:
        program = path / "bin" / "python"
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    if state:
        (path / STATE).write_text(f"{state}\n{path.resolve()}\n")
    return path


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 9), (3, 13, 1)])
def test_supported_pythons_pass(version):
    setup.check_python(version, find=lambda name: None)


def test_an_old_python_is_refused_and_a_fitting_one_named():
    found = {"python3.12": "/usr/bin/python3.12", "python3.11": "/usr/bin/python3.11"}
    with pytest.raises(setup.Trouble) as trouble:
        setup.check_python((3, 10, 4), find=found.get)
    assert str(trouble.value) == ("Python 3.10 is too old (3.11 to 3.13 will do). Fix: make setup PYTHON=python3.12")


def test_a_new_python_is_refused_and_the_way_out_said():
    with pytest.raises(setup.Trouble) as trouble:
        setup.check_python((3, 14, 0), find=lambda name: None)
    assert str(trouble.value) == (
        "Python 3.14 is too new (3.11 to 3.13 will do). Fix: install Python 3.12, then make setup PYTHON=python3.12"
    )


def test_a_missing_venv_module_names_the_debian_package():
    setup.check_venv_module((3, 11), importable=lambda name: True)
    with pytest.raises(setup.Trouble) as trouble:
        setup.check_venv_module((3, 11), importable=lambda name: name != "ensurepip")
    assert "no ensurepip module" in str(trouble.value)
    assert "sudo apt install python3-venv (or python3.11-venv)" in str(trouble.value)
    assert "\n" not in str(trouble.value)


def test_a_full_disk_is_said_before_anything_is_made():
    setup.check_disk("/", 4, usage=lambda path: Usage(0, 0, 5e9))
    with pytest.raises(setup.Trouble) as trouble:
        setup.check_disk("/home", 4, usage=lambda path: Usage(0, 0, 1.24e9))
    message = str(trouble.value)
    assert message.startswith("1.2 GB free in /home, about 4 GB needed. Fix: free some space")
    assert "LABS_MIN_DISK_GB=0" in message and "\n" not in message


def test_a_gpu_counts_only_when_the_driver_lists_one():
    def driver(code, out):
        return lambda *args, **kwargs: subprocess.CompletedProcess(args, code, stdout=out)

    def absent(*args, **kwargs):
        raise FileNotFoundError

    def hangs(*args, **kwargs):
        raise subprocess.TimeoutExpired("nvidia-smi", 20)

    assert setup.has_gpu(run=driver(0, b"GPU 0: NVIDIA H100 (UUID: ...)\n"))
    assert not setup.has_gpu(run=driver(0, b"No devices found.\n"))
    assert not setup.has_gpu(run=driver(9, b"couldn't communicate with the NVIDIA driver"))
    assert not setup.has_gpu(run=absent)
    assert not setup.has_gpu(run=hangs)


def test_torch_for_the_cpu_has_two_fallbacks():
    labels, told = zip(*setup.torch_choices("", gpu=False, system="Linux"), strict=True)
    assert told == (
        ["torch==2.13.0+cpu"],
        ["torch==2.13.0+cpu", "--index-url", "https://download.pytorch.org/whl/cpu"],
        ["torch>=2.11"],
    )
    assert "no build for the CPU was found" in labels[-1]


def test_torch_with_a_gpu_on_other_systems_and_as_asked():
    assert [told for _, told in setup.torch_choices("", True, "Linux")] == [["torch>=2.11"]]
    assert [told for _, told in setup.torch_choices("", False, "Darwin")] == [["torch>=2.11"]]
    wanted = "torch==2.12.0 --index-url https://example.org/whl"
    assert [told for _, told in setup.torch_choices(wanted, True, "Linux")] == [
        ["torch==2.12.0", "--index-url", "https://example.org/whl"]
    ]


def test_states_of_the_folder(tmp_path):
    assert setup.state_of(str(tmp_path / "absent")) == "none"
    (tmp_path / "empty").mkdir()
    assert setup.state_of(str(tmp_path / "empty")) == "none"
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()
    assert setup.state_of(str(tmp_path / "thesis")) == "other"
    assert setup.state_of(str(empty_venv(tmp_path / "theirs"))) == "foreign"
    assert setup.state_of(str(empty_venv(tmp_path / "killed", "doing"))) == "unfinished"
    assert setup.state_of(str(empty_venv(tmp_path / "failed", "done"))) == "ours"
    assert setup.state_of(str(empty_venv(tmp_path / "broken", "done", pip=False))) == "unfinished"
    ready = empty_venv(tmp_path / "ready", "done")
    (ready / setup.STAMP).touch()
    assert setup.state_of(str(ready)) == "ready"
    ready.rename(tmp_path / "moved")
    assert setup.state_of(str(tmp_path / "moved")) == "unfinished"


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path, say):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(setup.Trouble, match="exists and is no Python environment"):
        setup.set_up(str(tmp_path), str(tmp_path / "thesis"), say=say)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_somebody_elses_environment_never_gets_our_mark(tmp_path, say):
    venv = empty_venv(tmp_path / "theirs")
    steps = setup.Steps(str(venv), say, ours=False)
    steps.run("a step", [sys.executable, "-c", "print('hello')"])
    assert not (venv / STATE).exists()
    assert "hello" in (venv / setup.LOG).read_text()
    assert setup.state_of(str(venv)) == "foreign"


def test_a_failed_step_shows_the_end_of_its_log(tmp_path, said, say):
    venv = empty_venv(tmp_path / "env")
    steps = setup.Steps(str(venv), say)
    with pytest.raises(setup.Trouble, match=r"the labs failed; the lines above end .*setup\.log\. Fix: "):
        steps.run("the labs", [sys.executable, "-c", "for i in range(40): print('line', i)\nraise SystemExit(1)"])
    shown = said[-1].splitlines()
    assert len(shown) == 15
    assert shown[0].strip() == "line 25" and shown[-1].strip() == "line 39"
    assert setup.state_of(str(venv)) == "ours"  # failed cleanly: the next run goes on from here


def test_a_step_that_may_fail_says_so_and_goes_on(tmp_path, said, say):
    venv = empty_venv(tmp_path / "env")
    assert not setup.Steps(str(venv), say).run("torch", [sys.executable, "-c", "exit(1)"], may_fail=True)
    assert said == ["  torch ...", " not found\n"]


def test_a_killed_step_leaves_the_environment_unfinished(tmp_path, say):
    venv = empty_venv(tmp_path / "env")
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(setup.Trouble, match="killed by signal 9"):
        setup.Steps(str(venv), say).run("torch", [sys.executable, "-c", kill])
    assert setup.state_of(str(venv)) == "unfinished"


def test_an_unfinished_environment_is_made_anew(tmp_path, said, say):
    venv = empty_venv(tmp_path / "env", "doing")
    (venv / "half a torch").touch()
    made = []

    class Recorded(setup.Steps):
        def run(self, label, command, may_fail=False):
            made.append(command)

    setup.make_venv(str(venv), Recorded(str(venv), say), "unfinished")
    assert made == [[setup.outer_python(), "-m", "venv", str(venv)]]
    assert not (venv / "half a torch").exists()
    assert "making it anew" in said[0]


def test_an_environment_is_made_by_a_python_outside_of_any():
    # `make` puts the environment's programs first: python3 may be that of the one about to be deleted.
    outer = subprocess.run(
        [setup.outer_python(), "-c", "import sys; print(sys.prefix == sys.base_prefix)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert outer.stdout.strip() == "True"


def test_tool_settings_do_not_ask_for_an_installation(tmp_path):
    project = tmp_path / "pyproject.toml"

    def mark(text, extras="labs"):
        project.write_text(text)
        return setup.fingerprint(str(tmp_path), str(tmp_path / ".venv"), extras)

    base = mark('[project]\nname = "x"\n[tool.ruff]\nline-length = 100\n')
    assert base == mark('[project]\nname = "x"\n\n[tool.ruff]\nline-length = 110\n[tool.ruff.lint]\nselect = []\n')
    assert base != mark('[project]\nname = "x"\ndependencies = ["numpy"]\n[tool.ruff]\nline-length = 100\n')
    assert base != mark('[project]\nname = "x"\n[tool.ruff]\nline-length = 100\n', extras="labs,dev")


def test_nothing_is_done_when_nothing_changed(tmp_path, said, say):
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    venv = empty_venv(tmp_path / ".venv", "done")
    mark = setup.fingerprint(str(tmp_path), str(venv), setup.extras_for(str(tmp_path)))
    (venv / setup.STAMP).write_text(f"{mark}\n{tmp_path}")
    setup.set_up(str(tmp_path), str(venv), say=say)
    assert said == []


def pip_calls(monkeypatch, project: Path, **options) -> list[list[str]]:
    """What pip would be told by a set-up in a new folder."""
    told = []
    monkeypatch.setattr(setup.Steps, "run", lambda self, label, command, may_fail=False: told.append(command) or True)
    monkeypatch.setattr(setup, "make_venv", lambda venv, *rest: empty_venv(Path(venv)))
    monkeypatch.setattr(setup, "runs_code", lambda python, code: code != setup.HAS_TORCH)
    monkeypatch.setattr(setup, "torch_version", lambda venv: "")
    monkeypatch.setattr(setup.platform, "system", lambda: "Linux")
    monkeypatch.setenv("LABS_MIN_DISK_GB", "0")
    (project / "pyproject.toml").write_text("[project]\n")
    setup.set_up(str(project), str(project / ".venv"), say=lambda *text, **how: None, **options)
    return [command[4:] for command in told]


@pytest.mark.parametrize("has_gpu", [False, True])
@pytest.mark.parametrize("lock, torch", [("cpu", setup.CPU_TORCH), ("cuda", "torch>=2.11")])
def test_a_lock_file_binds_every_version_and_chooses_the_build_of_torch(tmp_path, monkeypatch, lock, torch, has_gpu):
    monkeypatch.setattr(setup, "has_gpu", lambda: has_gpu)
    path = tmp_path / ".make" / "locks" / f"{lock}.txt"
    path.parent.mkdir(parents=True)
    path.write_text("torch==2.13.0\n")
    for_torch, for_the_labs = pip_calls(monkeypatch, tmp_path, lock=lock)
    assert for_torch == ["--constraint", str(path), torch]
    assert for_the_labs == ["--constraint", str(path), "-e", f"{tmp_path}[labs]"]


def test_without_a_lock_file_nothing_is_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "has_gpu", lambda: False)
    assert pip_calls(monkeypatch, tmp_path) == [[setup.CPU_TORCH], ["-e", f"{tmp_path}[labs]"]]


def test_a_lock_file_that_is_not_there_is_named_before_anything_is_made(tmp_path):
    (tmp_path / ".make" / "locks").mkdir(parents=True)
    (tmp_path / ".make" / "locks" / "cpu.txt").touch()
    with pytest.raises(setup.Trouble, match=r"There is no lock file .*rocm\.txt\. Fix: LOCK=cpu"):
        setup.set_up(str(tmp_path), str(tmp_path / ".venv"), lock="rocm")
    assert not (tmp_path / ".venv").exists()


def test_a_students_bundle_needs_the_notebooks_only(tmp_path):
    assert setup.extras_for(str(tmp_path)) == "labs"
    (tmp_path / "grading").mkdir()
    assert setup.extras_for(str(tmp_path)) == "labs,grading,dev,bench"


def test_trouble_is_one_line_and_a_nonzero_exit(tmp_path, capsys):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()
    assert setup.main(["--venv", str(tmp_path / "thesis")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("setup: ") and error.count("\n") == 1 and "Fix: " in error


@pytest.mark.parametrize("path", sorted(SCRIPT.parent.glob("setup*.py")), ids=lambda path: path.name)
def test_an_old_python_can_read_the_script(path):
    # What Python 3.6 does not know: the script and its modules must parse there to say that it is too old.
    text = path.read_text()
    assert "from __future__ import annotations" not in text
    compile(text, str(path), "exec", flags=0)
    ast.parse(text, feature_version=(3, 6))
