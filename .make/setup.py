"""Makes the environment that the Makefile's targets run in, and says in one line what is missing.

Run by the system's Python with the standard library only (`make setup`): creates the virtual
environment, chooses a build of torch, installs the project into it, and leaves a stamp. Python, the
venv module and disk space are looked at first, so that nothing fails halfway for a reason that could
have been known. An environment that this script made and could not finish is made anew; one that
somebody else made gets what it lacks and is never deleted. It does not upgrade what is installed already.

The syntax is kept old on purpose: a Python that is too old must be able to read this file and its
modules, `setup_*.py`, to say so.
"""

import argparse
import contextlib
import os
import platform
import shlex
import shutil
import subprocess
import sys

from setup_checks import Trouble, check_disk, check_python, check_venv_module, has_gpu
from setup_environment import (
    LOG,
    STAMP,
    extras_for,
    fingerprint,
    one_at_a_time,
    python_of,
    read,
    runs_code,
    state_of,
    version_of,
    write,
)
from setup_steps import Steps

CPU_TORCH = "torch==2.13.0+cpu"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_DISK_GB, GPU_DISK_GB = 4.0, 12.0
HAS_TORCH = """
from importlib.metadata import version
assert [int(part) for part in version("torch").split(".")[:2]] >= [2, 11]
"""


def torch_choices(wanted, gpu, system):
    """The builds to try in order, each as (what to say, what pip is told)."""
    if wanted:
        return [("torch, as asked: {}".format(wanted), shlex.split(wanted))]
    if gpu:
        return [("torch for the NVIDIA GPU", ["torch>=2.11"])]
    if system != "Linux":
        return [("torch", ["torch>=2.11"])]
    return [
        ("torch for the CPU", [CPU_TORCH]),
        ("torch for the CPU, from PyTorch's own index", [CPU_TORCH, "--index-url", CPU_INDEX]),
        ("torch as it comes, with CUDA (no build for the CPU was found)", ["torch>=2.11"]),
    ]


def make_venv(venv, steps, state):
    """An empty environment, in the place of one that was never finished."""
    if state == "unfinished":
        steps.say("  {} is unfinished, moved or of another Python: making it anew".format(venv))
        shutil.rmtree(venv)
    os.makedirs(venv, exist_ok=True)
    label = "an environment with Python {}.{}.{} in {}".format(*sys.version_info[:3], venv)
    steps.run(label, [outer_python(), "-m", "venv", venv])


def outer_python():
    """This Python, but never that of an environment: it may be the very one that was just deleted."""
    return getattr(sys, "_base_executable", None) or sys.executable


def install(venv, project, steps, wanted, pip_args, gpu, extras):
    """torch first, so that nothing else pulls in another build of it; then the project and its tools."""
    pip = [python_of(venv), "-m", "pip", "install", *shlex.split(pip_args)]
    if wanted or not runs_code([python_of(venv)], HAS_TORCH):
        choices = torch_choices(wanted, gpu, platform.system())
        for nth, (label, wanted_by_pip) in enumerate(choices):
            if steps.run(label, pip + wanted_by_pip, may_fail=nth < len(choices) - 1):
                break
    steps.run("the labs and their tools", [*pip, "-e", "{}[{}]".format(project, extras)])


def locked(project, lock):
    """What pip is told so that it installs the versions of a lock file, "cpu" or "cuda"; nothing without one."""
    if not lock:
        return ""
    folder = os.path.join(project, ".make", "locks")
    path = os.path.join(folder, lock + ".txt")
    if not os.path.isfile(path):
        there = sorted(name[: -len(".txt")] for name in (os.listdir(folder) if os.path.isdir(folder) else []))
        fix = " or ".join("LOCK={}".format(name) for name in there) or "make lock, where the labs are installed"
        raise Trouble("There is no lock file {}.".format(path), fix)
    return " --constraint {}".format(shlex.quote(path))


def set_up(project, venv, wanted="", pip_args="", this_python=False, say=print, lock=""):
    """Bring the environment up to date; quick when it is.

    An environment of another supported Python is kept, unless the user asked for `this_python`.
    lock: the name of a lock file, which also says whether torch is built for a GPU.
    """
    project, venv = os.path.abspath(project), os.path.abspath(venv)
    pip_args += locked(project, lock)
    folder = os.path.dirname(venv)
    if not os.path.lexists(venv):
        check_python(sys.version_info)  # before a folder is made
    os.makedirs(folder, exist_ok=True)
    with one_at_a_time(folder, say):
        state, extras = state_of(venv), extras_for(project)
        # The project's folder is the last line, where the Makefile looks whether it was moved.
        mark, stamp = fingerprint(project, venv, extras) + "\n" + project, os.path.join(venv, STAMP)
        if this_python and state in ("ready", "ours") and version_of(venv) != sys.version_info[:2]:
            state = "unfinished"
        if state in ("ready", "foreign") and read(stamp) == mark and not wanted and not pip_args:
            write(stamp, mark)
            return
        if state == "other":
            raise Trouble(
                "{} exists and is no Python environment.".format(venv),
                "move it away, or make setup VENV=/another/path",
            )
        if state == "foreign":
            check_python(version_of(venv))
            if not runs_code([python_of(venv)], "import pip"):
                raise Trouble("{} has no pip.".format(venv), "{} -m ensurepip --upgrade".format(python_of(venv)))
        begin = "setup: installing into {} (log: {})".format(venv, os.path.join(venv, LOG))
        steps, gpu = Steps(venv, say, ours=state != "foreign"), lock == "cuda" if lock else has_gpu()
        if state in ("none", "unfinished"):
            check_python(sys.version_info)
            check_venv_module(sys.version_info)
            need = GPU_DISK_GB if gpu and not wanted else CPU_DISK_GB
            check_disk(folder, float(os.environ.get("LABS_MIN_DISK_GB") or need))
            say(begin)
            make_venv(venv, steps, state)
        else:
            say(begin)
        with contextlib.suppress(OSError):
            os.remove(stamp)
        install(venv, project, steps, wanted, pip_args, gpu, extras)
        write(stamp, mark)
        say("setup: ready, torch {}".format(torch_version(venv)))


def torch_version(venv):
    code = "from importlib.metadata import version; print(version('torch'))"
    return subprocess.check_output([python_of(venv), "-c", code]).decode().strip()


def main(argv=None):
    parser = argparse.ArgumentParser(description="Make the environment that the Makefile's targets run in.")
    parser.add_argument("--venv", default=".venv", help="where it is made (default: %(default)s)")
    parser.add_argument("--torch", default="", help="what pip installs as torch, options included")
    parser.add_argument("--pip-args", default="", help="options for every pip install")
    parser.add_argument("--lock", default="", help="install the versions of .make/locks/LOCK.txt: cpu or cuda")
    parser.add_argument(
        "--this-python", action="store_true", help="make it anew if it is of another Python than this one"
    )
    args = parser.parse_args(argv)
    try:
        project = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        set_up(project, args.venv, args.torch, args.pip_args, args.this_python, lock=args.lock)
    except Trouble as trouble:
        print("setup: {}".format(trouble), file=sys.stderr)
        return 1
    except OSError as error:
        print("setup: {} Fix: make that possible, or make setup VENV=/another/path".format(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; the next run begins anew", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
