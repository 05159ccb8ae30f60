"""What a student's program can and cannot do in each tier, tried from inside of it; and that the tries have teeth."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from grading.isolation.sandbox import Sandbox
from grading.worker.seal import Seal
from tests.grading.cells import Do, cell, doing, run_cell
from tests.grading.shared_sandboxes import small_sandbox
from tests.lanes import EVERY_TIER_SLOW, require_tier


@pytest.fixture(scope="module", params=EVERY_TIER_SLOW)
def server(request) -> Sandbox:
    return small_sandbox(require_tier(request.param))


@pytest.fixture
def do(server: Sandbox) -> Do:
    return doing(server)


# --- what there is to see


def test_nothing_of_ours_is_there(do: Do, tmp_path: Path) -> None:
    secret = tmp_path / "gradebook.db"
    secret.write_text("points")
    root = Path(__file__).resolve().parents[2]
    ours = [str(root / name) for name in ("solutions", "tests", "grading", "labkit", ".git")]
    places = [*ours, str(secret), "/etc/passwd", "/etc/shadow", "/home", "/var", "/mnt"]
    assert do(f"import os, json; print(json.dumps([p for p in {places!r} if os.path.exists(p)]))") == []


@pytest.mark.parametrize("name", ["labkit.oracles", "grading.hidden", "grading.supervisor", "solutions", "tests"])
def test_nothing_of_ours_can_be_imported(do: Do, name: str) -> None:
    assert do(f"import {name}").startswith("ModuleNotFoundError")


def test_the_instructors_variables_are_not_there(do: Do, monkeypatch) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    assert "A_TOKEN" not in do("import os, json; print(json.dumps(dict(os.environ)))")


def test_only_its_own_processes_are_there(do: Do) -> None:
    pids = do("import os, json; print(json.dumps([p for p in os.listdir('/proc') if p.isdigit()]))")
    assert len(pids) <= 2


def test_no_descriptor_but_its_channel_is_open(do: Do) -> None:
    source = "import os, json; print(json.dumps([os.readlink(f'/proc/self/fd/{n}') for n in range(3, 64) "
    source += "if os.path.lexists(f'/proc/self/fd/{n}')]))"
    kinds = {name.split(":")[0].split("/")[1] if name.startswith("/") else name.split(":")[0] for name in do(source)}
    assert kinds <= {"socket", "dev"}


# --- what there is to write


@pytest.mark.parametrize(
    "path", ["/usr/x", "/x", "/etc/x", "/proc/self/clear_refs", "/proc/sys/kernel/core_pattern", "/dev/x", "labkit"]
)
def test_nothing_but_temporary_space_can_be_written(do: Do, path: str) -> None:
    if path == "labkit":
        path = "' + __import__('labkit').__path__[0] + '/x"
    assert do(f"open('{path}', 'w')").startswith(("PermissionError", "OSError", "FileNotFoundError"))


def test_a_job_finds_nothing_of_an_earlier_one(server: Sandbox, do: Do) -> None:
    write = "import os\nfor folder in (os.getcwd(), '/tmp', '/dev/shm'):\n    open(folder + '/left', 'w').write('here')"
    assert do(write) is None
    if server.tier.sandbox_per_submission:
        # A sandbox is for one submission: the next one is another.
        with Sandbox(server.tier, preload=("torch", "grading.worker.job")) as other:
            assert run_cell(other, LEFT) == []
    else:
        assert do(LEFT) == []


LEFT = """
import glob, json
print(json.dumps(glob.glob('/tmp/**/left', recursive=True) + glob.glob('/dev/shm/*')))
"""


def test_a_job_with_room_for_files_is_confined_like_any_other(server: Sandbox, do: Do) -> None:
    grants = ("loopback", "files", "subprocess")
    talk = "import socket, json\nwith socket.create_server(('127.0.0.1', 0)) as a:\n"
    talk += "    b = socket.create_connection(a.getsockname()); print(json.dumps('connected'))"
    assert do(talk, grants) == "connected"
    pids = "import os, json; print(json.dumps([p for p in os.listdir('/proc') if p.isdigit()]))"
    assert len(do(pids, grants)) <= 2
    assert do("open('/x', 'w')", grants).startswith(("PermissionError", "OSError"))
    assert do("import os; os.setuid(0)", grants).startswith("PermissionError")
    assert do("import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): raise OSError", grants).startswith("OSError")
    with cell(server, "import time; time.sleep(60)", grants):
        assert len(server.job_processes()) == 1
        assert server.seal_job(Seal(cpu_s=5.0)) is None
    server.kill_job()
    assert do("for name in ('/tmp/left', '/dev/shm/left'): open(name, 'w').close()", grants) is None
    assert do(LEFT) == []


# --- whom it can reach


def test_no_network(do: Do) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        assert do(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)").startswith("PermissionError")
        granted = do(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)", ("loopback",))
        assert granted.startswith("ConnectionRefusedError")
        with pytest.raises(TimeoutError):
            listener.accept()


def test_loopback_is_granted_by_name(do: Do) -> None:
    talk = "import socket, json\nwith socket.create_server(('127.0.0.1', 0)) as a:\n"
    talk += "    b = socket.create_connection(a.getsockname()); print(json.dumps('connected'))"
    assert do(talk).startswith("PermissionError")
    assert do(talk, ("loopback",)) == "connected"


@pytest.mark.parametrize(
    "source",
    [
        "import os; os.kill({pid}, 0)",
        "import os; os.setuid(0)",
        "import os; os.chroot('/tmp')",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True)\nif l.unshare(0x10000000): raise OSError",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True)\nif l.ptrace(16, {pid}, 0, 0): raise OSError",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True)\nif l.shmget(1, 4096, 0o1666) < 0: raise OSError",
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))",
    ],
)
def test_it_has_no_power_over_others_or_over_its_own_limits(do: Do, source: str) -> None:
    told = do(source.format(pid=os.getpid()))
    assert told is not None and told.split(":")[0] in ("PermissionError", "OSError", "ProcessLookupError", "ValueError")


def test_a_job_is_shown_processes_and_no_figures_of_the_machine(do: Do) -> None:
    """By these, and by the time of a device that all may write to, one job could tell another something."""
    assert do("import os, json; print(json.dumps([n for n in os.listdir('/proc') if not n.isdigit()]))") == [
        "self",
        "thread-self",
    ]
    mark = "import os, json\ntold = []\nfor name in ('null', 'full', 'random', 'urandom'):\n"
    mark += "    open(f'/dev/{name}', 'rb').close()\n    try: os.utime(f'/dev/{name}')\n"
    mark += "    except OSError as error: told.append(error.strerror)\nopen('/dev/null', 'w').write('x')\n"
    assert do(f"{mark}print(json.dumps(told))") == ["Read-only file system"] * 4
    assert do("import os; print(os.sysconf('SC_NPROCESSORS_ONLN'))") == os.sysconf("SC_NPROCESSORS_ONLN")


def test_workers_and_managers_work(do: Do) -> None:
    """They talk over sockets, listen and hold sessions, in ways of their own that the filter has to let pass."""
    source = """
import json, multiprocessing, subprocess, torch
from torch.utils.data import DataLoader, TensorDataset
batches = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=2, num_workers=2)
told = [sum(x.sum().item() for x, in batches)]
context = multiprocessing.get_context("fork")
with context.Manager() as manager, context.Pool(2) as pool:
    shared = manager.dict(a=1)
    told += [pool.map(abs, [-1, -2]), dict(shared)]
done = subprocess.run(["echo", "here"], start_new_session=True, capture_output=True, text=True)
print(json.dumps([*told, done.stdout]))
"""
    assert do(source) == [28.0, [1, 2], {"a": 1}, "here\n"]


def test_asyncio_waits_without_what_a_user_has_in_common(do: Do) -> None:
    assert do("import select; watcher = select.epoll()").startswith("OSError: [Errno 38]")
    source = "import asyncio, json\nasync def later(): await asyncio.sleep(0.01); return 7\n"
    assert do(f"{source}print(json.dumps(asyncio.run(later())))") == 7
    assert do(f"{source}print(json.dumps(await later()))") == 7
    assert do("import select; watcher = select.epoll()", ("loopback",)) is None
