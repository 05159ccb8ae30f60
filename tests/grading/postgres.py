"""A real PostgreSQL server for the tests, from the machine's packages: on a Unix socket, with a password.

It never runs as root and listens to no network. It ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.lanes import missing, require

START_S = 180.0
USER = "teacher"


@dataclass(frozen=True)
class Server:
    """Where it listens, and the file from which the driver reads the password when PGPASSFILE names it."""

    folder: Path
    password: str
    passfile: Path
    process: subprocess.Popen

    def url(self, database: str, user: str = USER) -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def sql(self, statement: str, database: str = "postgres") -> list[tuple]:
        """Run one statement as the server's owner; returns its rows."""
        where = {"host": str(self.folder), "user": USER, "password": self.password, "dbname": database}
        with psycopg.connect(**where, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def create(self, database: str, **options: str) -> str:
        """A new UTF-8 database; returns its URL."""
        told = " ".join(f"{name} '{value}'" for name, value in {"ENCODING": "UTF8", **options}.items())
        self.sql(f"CREATE DATABASE \"{database}\" TEMPLATE template0 LOCALE 'C' {told}")
        return self.url(database)


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """A server with nothing in it; everything of it is gone at the end."""
    programs = _programs()
    # Not under pytest's own folder, which other users may not enter; the path of a socket must be short, too.
    folder = Path(tempfile.mkdtemp(prefix="labs-pg-", dir="/tmp"))
    process = None
    try:
        password = secrets.token_hex(8)
        (folder / "secret").write_text(password)
        as_whom = _unprivileged(folder)
        init = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={folder}/secret", "--no-sync", "--locale=C"]
        _done([*as_whom, str(programs / "initdb"), "-D", str(folder / "data"), "--encoding=UTF8", *init])
        log = (folder / "log").open("wb")
        serve = ["-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        process = subprocess.Popen(
            [*as_whom, str(programs / "postgres"), *serve], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
        )
        log.close()
        passfile = folder / "pgpass"
        passfile.write_text(f"*:*:*:{USER}:{password}\n")
        passfile.chmod(0o600)
        server = Server(folder, password, passfile, process)
        _wait_until_ready(server)
        yield server
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if found or on_path:
        return (found[-1] if found else Path(on_path)).parent
    missing("PostgreSQL", "this test starts a real server", "sudo apt install postgresql")


def _unprivileged(folder: Path) -> list[str]:
    """The server refuses to run as root. It dies with this process in any case."""
    setpriv = require("setpriv", "this test starts a server that must not outlive it", "sudo apt install util-linux")
    command = [setpriv, "--pdeathsig", "QUIT"]
    if os.geteuid() != 0:
        return command
    try:
        account = pwd.getpwnam("postgres")
    except KeyError:
        account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
    os.chown(folder / "secret", account.pw_uid, account.pw_gid)
    return [*command, f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--"]


def _done(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_S, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr


def _wait_until_ready(server: Server) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            server.sql("SELECT 1")
            return
        except psycopg.OperationalError:
            log = (server.folder / "log").read_text(errors="replace")
            assert server.process.poll() is None and time.monotonic() < deadline, log
            time.sleep(0.05)
