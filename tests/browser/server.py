"""A JupyterLab of our own: a process with its own port, token and home, gone at the end with all that it started.

The user's settings are neither read nor changed. Only what JupyterLab asks on a first visit (may it look for news and
updates) is answered beforehand; everything else is as it comes from pip.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
START_S = 180
SETTINGS = {"notification": {"fetchNews": "false", "checkForUpdates": False}}


@dataclass(frozen=True)
class JupyterLab:
    """A running server that shows the files of the folder `root`."""

    root: Path
    home: Path
    url: str
    token: str
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def stop(self) -> None:
        """End the server, its kernels, and whatever they have started."""
        family = [self.process.pid, *(child.pid for child in _children(self.process.pid))]
        started = {pid: psutil.Process(pid).create_time() for pid in family if psutil.pid_exists(pid)}
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(15)
        for pid, when in started.items():
            try:
                left = psutil.Process(pid)
                if left.create_time() == when:  # not somebody else's process that was given the same number
                    left.kill()
            except psutil.NoSuchProcess:
                pass


def start(root: Path, home: Path) -> JupyterLab:
    """Start JupyterLab on `root` as `jupyter lab` does; its settings and its log go to `home`."""
    answer_the_first_questions(home)
    return start_program([sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}"], root, home)


def answer_the_first_questions(home: Path) -> None:
    settings = home / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    for name, values in SETTINGS.items():
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(values))


def start_program(program: list[str], root: Path, home: Path) -> JupyterLab:
    """Start a program that takes JupyterLab's options; what it shows is in `root`."""
    token = secrets.token_hex(16)
    command = [*program, "--no-browser", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1"]
    command += [f"--IdentityProvider.token={token}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=root, env=environment(home), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    lab = JupyterLab(root, home, "", token, process)
    try:
        return JupyterLab(root, home, _address(lab), token, process)
    except BaseException:
        lab.stop()
        raise


def environment(home: Path) -> dict[str, str]:
    """The environment of a new user of this Python: its programs and kernels first, an empty home, our packages."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY_", "XDG_"))}
    return {
        **kept,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "IPYTHONDIR": str(home / "ipython"),
        "MPLCONFIGDIR": str(home / "matplotlib"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        # Also where the project is not installed into this environment.
        "PYTHONPATH": str(REPOSITORY),
    }


def _address(lab: JupyterLab) -> str:
    """Where the server listens, from the file that it writes once it does."""
    file = lab.home / "runtime" / f"jpserver-{lab.process.pid}.json"
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and lab.process.poll() is None:
        try:
            return json.loads(file.read_text())["url"]
        except (OSError, ValueError):
            time.sleep(0.05)
    raise RuntimeError(f"JupyterLab did not start within {START_S} s:\n{lab.log.read_text()[-3000:]}")


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
