"""A real JupyterHub on the accounts of a campus: the course's own configuration, with two things replaced.

Passwords: everybody has the same one, since the accounts are in a namespace that PAM does not know. Processes: a
server is started as its account, in that namespace. Nothing else differs from docs/jupyterhub_config.py.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.browser.server import REPOSITORY
from tests.grading.campus import UIDS, Campus
from tests.lanes import missing

PASSWORD = "open sesame"
PROXY_RELEASE = "5.3.0"
START_S, FETCH_S = 120, 180
TEACHER = "teacher"

_OVERRIDES = """
import sys

sys.path.insert(0, {repository!r})
from pathlib import Path

from jupyterhub.spawner import SimpleLocalProcessSpawner

from tests.grading.campus import ENVIRONMENT, Campus

load_subconfig({documented!r})
campus = Campus(Path({top!r}))


class AccountSpawner(SimpleLocalProcessSpawner):
    home_dir_template = {top!r} + "/home-{{username}}"

    async def start(self):
        self.cmd = campus.as_account(self.user.name, sys.executable, "-m", "jupyterhub.singleuser")
        return await super().start()

    def user_env(self, env):
        return {{**env, **ENVIRONMENT}}


c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = {password!r}
c.Authenticator.allowed_users = {accounts!r}
c.JupyterHub.spawner_class = AccountSpawner
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.Spawner.start_timeout = c.Spawner.http_timeout = {start_s}
"""


@dataclass(frozen=True)
class Hub:
    url: str
    folder: Path
    process: subprocess.Popen[bytes]
    api_url: str

    @property
    def log(self) -> str:
        return (self.folder / "hub.log").read_text(errors="replace")

    def stop(self) -> None:
        """End the hub, its proxy, and every server that it has started."""
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def servers(self) -> list[str]:
        """The processes on this machine that this hub's servers have started, and these."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("JUPYTERHUB_API_URL", "").startswith(self.api_url):
                    found.append(" ".join(process.cmdline()))
        return found


def start(campus: Campus, folder: Path) -> Hub:
    """Start a hub for the campus's accounts; its files go to `folder`."""
    ports = _free_ports(3)
    text = _OVERRIDES.format(
        repository=str(REPOSITORY),
        documented=str(REPOSITORY / "docs" / "jupyterhub_config.py"),
        top=str(campus.top),
        password=PASSWORD,
        accounts=set(UIDS),
        proxy=str(_proxy()),
        port=ports[0],
        hub_port=ports[1],
        api_port=ports[2],
        start_s=START_S,
    )
    (folder / "config.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with (folder / "hub.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", "config.py"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    hub = Hub(f"http://127.0.0.1:{ports[0]}/", folder, process, f"http://127.0.0.1:{ports[1]}/")
    try:
        _wait(hub)
    except BaseException:
        hub.stop()
        raise
    return hub


def _wait(hub: Hub) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and hub.process.poll() is None:
        try:
            with urllib.request.urlopen(f"{hub.url}hub/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterHub did not start within {START_S} s:\n{hub.log[-3000:]}")


def _free_ports(n: int) -> list[int]:
    """All are held until each has another number."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _proxy() -> Path:
    """configurable-http-proxy, fetched by npm the first time. Where that cannot be done the test is skipped."""
    folder = REPOSITORY / "build" / "configurable-http-proxy"
    program = folder / "node_modules" / ".bin" / "configurable-http-proxy"
    if not program.exists():
        why = "JupyterHub's proxy comes through it"
        npm = shutil.which("npm") or missing("npm", why, "sudo apt install npm")
        folder.mkdir(parents=True, exist_ok=True)
        words = ["install", f"configurable-http-proxy@{PROXY_RELEASE}", "--prefix", str(folder), "--ignore-scripts"]
        words += ["--no-save", "--no-audit", "--no-fund", "--fetch-retries=5"]
        done = subprocess.run([npm, *words], cwd=folder, capture_output=True, text=True, timeout=FETCH_S)
        if done.returncode or not program.exists():
            said = (done.stderr.strip().splitlines() or ["it is not there afterwards"])[-1]
            missing(
                f"configurable-http-proxy {PROXY_RELEASE}", f"{why}: {said}", "look at the network or npm's settings"
            )
    return program
