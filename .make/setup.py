"""Makes the environment that the Makefile's targets run in, and says in one line what is missing.

Run by the system's Python with the standard library only (`make setup`): creates the virtual
environment, chooses a build of torch, installs the project into it, and leaves a stamp. Python, the
venv module and disk space are looked at first, so that nothing fails halfway for a reason that could
have been known. An environment that this script made and could not finish is made anew; one that
somebody else made gets what it lacks and is never deleted. It does not upgrade what is installed already.

The syntax is kept old on purpose: a Python that is too old must be able to read this file to say so.
"""

import argparse
import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time

OLDEST, NEWEST = (3, 11), (3, 13)
CPU_TORCH = "torch==2.13.0+cpu"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_DISK_GB, GPU_DISK_GB = 4.0, 12.0
HAS_TORCH = """
from importlib.metadata import version
assert [int(part) for part in version("torch").split(".")[:2]] >= [2, 11]
"""
STAMP, STATE, LOG = ".setup-stamp", ".setup-state", "setup.log"


class Trouble(Exception):
    """What is wrong and what to do about it, in one line."""

    def __init__(self, what, fix):
        super().__init__("{} Fix: {}".format(what, fix))


# ---- what must be there before anything is made


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


# ---- which torch


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


# ---- what is in the folder already


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


# ---- doing it


class Steps:
    """Runs commands one line each: output to the log, the state on disk, the end of the log on failure."""

    def __init__(self, venv, say=print, ours=True):
        self.venv, self.say, self.ours, self.log = venv, say, ours, os.path.join(venv, LOG)

    def note(self, state):
        """Remember how far it got; never in somebody else's environment, which must not look like ours."""
        if self.ours:
            write(os.path.join(self.venv, STATE), "{}\n{}\n".format(state, os.path.realpath(self.venv)))

    def run(self, label, command, may_fail=False):
        self.say("  {} ...".format(label), end="", flush=True)
        start = time.time()
        self.note("doing")
        with open(self.log, "ab") as log:
            begin = log.tell()
            log.write("\n$ {}\n".format(" ".join(command)).encode())
            log.flush()
            # A user's pip settings may ask for --user, which an environment refuses.
            env = dict(os.environ, PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
            rc = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        if rc < 0:  # killed: what it left behind cannot be trusted
            self.say(" killed")
            raise Trouble("{} was killed by signal {}.".format(label, -rc), "run the same command again")
        self.note("done")
        seconds = " {:.0f} s".format(time.time() - start)
        self.say(seconds if rc == 0 else " not found" if may_fail else " failed")
        if rc and not may_fail:
            with open(self.log, "rb") as log:
                log.seek(begin)
                tail = log.read().decode("utf-8", "replace").strip().splitlines()[-15:]
            self.say("\n".join("    " + line for line in tail))
            raise Trouble(
                "{} failed; the lines above end {}.".format(label, self.log),
                "see the last line; without a network, point pip at a mirror with "
                'PIP_ARGS="--index-url URL" and run the same command again',
            )
        return rc == 0


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
        for nth, (label, told) in enumerate(choices):
            if steps.run(label, pip + told, may_fail=nth < len(choices) - 1):
                break
    steps.run("the labs and their tools", [*pip, "-e", "{}[{}]".format(project, extras)])


def runs_code(python, code):
    return subprocess.call([*python, "-c", code], stderr=subprocess.DEVNULL) == 0


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


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(argv=None):
    parser = argparse.ArgumentParser(description="Make the environment that the Makefile's targets run in.")
    parser.add_argument("--venv", default=".venv", help="where it is made (default: %(default)s)")
    parser.add_argument("--torch", default="", help="what pip installs as torch, options included")
    parser.add_argument("--pip-args", default="", help="options for every pip install")
    parser.add_argument("--lock", default="", help="install the versions of .make/locks/LOCK.txt: cpu or cuda")
    parser.add_argument(
        "--this-python", action="store_true", help="make it anew if it is of another Python than this one"
    )
    told = parser.parse_args(argv)
    try:
        project = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        set_up(project, told.venv, told.torch, told.pip_args, told.this_python, lock=told.lock)
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
