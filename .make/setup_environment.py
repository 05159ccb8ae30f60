"""What is in an environment's folder already, and what its installation depends on.

Only an environment with a state file was made by the set-up, and only such a one is ever deleted. Nothing here installs
anything. The syntax is as old as setup.py's.
"""

import contextlib
import hashlib
import os
import subprocess

STAMP, STATE, LOG = ".setup-stamp", ".setup-state", "setup.log"


def state_of(venv):
    """none | ready | ours (a step failed cleanly) | unfinished | foreign | other (not an environment).

    Only an environment with a state file was made here, and only such a one is ever deleted.
    """
    if not os.path.lexists(venv) or (os.path.isdir(venv) and not os.listdir(venv)):
        return "none"
    state = read(os.path.join(venv, STATE)).splitlines()
    if state:
        moved = state[1:] != [os.path.realpath(venv)]  # its programs still name the old place
        if state[0].startswith("doing") or moved or not runs(venv):
            return "unfinished"
        return "ready" if os.path.exists(os.path.join(venv, STAMP)) else "ours"
    return "foreign" if os.path.exists(python_of(venv)) else "other"


def python_of(venv):
    return os.path.join(venv, "bin", "python")


def runs(venv):
    """Whether the environment's Python starts and has pip (not so after an upgrade of the system's)."""
    try:
        return runs_code([python_of(venv)], "import pip")
    except OSError:
        return False


def runs_code(python, code):
    return subprocess.call([*python, "-c", code], stderr=subprocess.DEVNULL) == 0


def version_of(venv):
    told = subprocess.check_output(
        [python_of(venv), "-c", "import sys; print(sys.version_info[0], sys.version_info[1])"]
    )
    return tuple(int(part) for part in told.split())


def fingerprint(project, venv, extras):
    """What the installation depends on: the folders, the extras, and pyproject.toml less its tool settings."""
    kept, section = [], ""
    for line in read(os.path.join(project, "pyproject.toml")).splitlines():
        if line.startswith("["):
            section = line
        if not section.startswith("[tool.") or section.startswith("[tool.setuptools"):
            kept.append(line.split("#")[0].strip())
    parts = [os.path.realpath(project), os.path.realpath(venv), extras, *filter(None, kept)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def extras_for(project):
    """A student's bundle has no grading folder and needs the notebooks only."""
    return "labs,grading,dev,bench" if os.path.isdir(os.path.join(project, "grading")) else "labs"


@contextlib.contextmanager
def one_at_a_time(folder, say):
    """Two terminals that set up the same environment take turns, where the system can do that."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("  another set-up is running here: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
