"""What must be there before anything is made: a Python that fits, its venv module, room on the disk.

What is missing is said in one line, with what to do about it. The syntax is as old as setup.py's.
"""

import shutil
import subprocess

from setup_environment import runs_code

OLDEST, NEWEST = (3, 11), (3, 13)


class Trouble(Exception):
    """What is wrong and what to do about it, in one line."""

    def __init__(self, what, fix):
        super().__init__("{} Fix: {}".format(what, fix))


def check_python(version, find=None):
    """Refuse a Python outside the supported range, naming a fitting one if the machine has it."""
    have = tuple(version[:2])
    if OLDEST <= have <= NEWEST:
        return
    fitting = ["python3.{}".format(minor) for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    found = [name for name in fitting if (find or starts)(name)]
    fix = "make setup PYTHON={}".format(found[0]) if found else "install Python 3.12, then make setup PYTHON=python3.12"
    raise Trouble(
        "Python {}.{} is too {} (3.{} to 3.{} will do).".format(
            have[0], have[1], "old" if have < OLDEST else "new", OLDEST[1], NEWEST[1]
        ),
        fix,
    )


def starts(name):
    """Whether this Python is on the machine and works: a pyenv shim may be there without its Python."""
    try:
        return runs_code([name], "import venv, ensurepip")
    except OSError:
        return False


def check_venv_module(version, importable=None):
    """Refuse a Python without venv or ensurepip (Debian and Ubuntu pack them separately)."""
    importable = importable or can_import
    missing = [name for name in ("venv", "ensurepip") if not importable(name)]
    if missing:
        raise Trouble(
            "This Python has no {} module, so it cannot make an environment.".format(missing[0]),
            "sudo apt install python3-venv (or python{}.{}-venv), then the same command again".format(*version[:2]),
        )


def can_import(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def check_disk(folder, need_gb, usage=shutil.disk_usage):
    """Refuse to begin on a disk that the installation would fill."""
    free_gb = usage(folder).free / 1e9
    if free_gb < need_gb:
        raise Trouble(
            "{:.1f} GB free in {}, about {:g} GB needed.".format(free_gb, folder, need_gb),
            "free some space, put the environment elsewhere (make setup VENV=/path), "
            "or go on all the same with LABS_MIN_DISK_GB=0",
        )


def has_gpu(run=subprocess.run):
    """Whether an NVIDIA driver answers and lists a GPU."""
    try:
        told = run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.returncode == 0 and b"GPU" in told.stdout
