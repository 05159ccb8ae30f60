"""What a student's program may take in each tier: processes, memory of every kind, disk; and what is left of it."""

from __future__ import annotations

import errno
import json
import time

import pytest

from grading.isolation.sandbox import Sandbox
from grading.worker.confine.plan import Limits, with_grants
from grading.worker.protocol.control import JobEnded
from grading.worker.seal import Seal
from grading.worker.wire.frames import Closed
from tests.grading.cells import WITHIN_S, Do, cell, doing, run_cell
from tests.grading.shared_sandboxes import small_sandbox
from tests.lanes import EVERY_TIER_SLOW, require_tier


@pytest.fixture(scope="module", params=EVERY_TIER_SLOW)
def server(request) -> Sandbox:
    return small_sandbox(require_tier(request.param))


@pytest.fixture
def do(server: Sandbox) -> Do:
    return doing(server)


def test_processes_are_capped_unless_granted(do: Do) -> None:
    start = "import os, time, json\nn = 0\ntry:\n    for n in range(100):\n"
    start += "        if not os.fork(): time.sleep(60)\nexcept OSError: pass\nprint(json.dumps(n))"
    assert do(start) < 64
    assert do(start, ("subprocess",)) == 99


def test_a_fork_bomb_is_gone_when_the_job_is(server: Sandbox) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    with cell(server, bomb):
        while len(server.job_processes()) < 30:
            time.sleep(0.01)
        # The promise is two seconds; a fault is raised after KILL_S.
        server.kill_job()
    assert server.job_processes() == []


def test_what_many_processes_take_together_is_capped(server: Sandbox) -> None:
    hog = (
        "import os, time\nfor n in range(12):\n    if not os.fork():\n        b = bytes(100 * 2**20); time.sleep(60)\n"
    )
    hog = hog.replace("bytes(", "b'x' * (")
    with cell(server, hog + "time.sleep(60)") as channel:
        with pytest.raises(Closed):
            while True:
                channel.receive(time.monotonic() + WITHIN_S)
        assert server.kill_job().over == "memory"


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_what_waits_in_sockets_counts(server: Sandbox, kind: str) -> None:
    """Nobody accepts it, and who sent it has closed: no process has it open."""
    fill = f"""
import socket, time
kept = []
for _ in range(240):
    kept.append(socket.socket(socket.AF_UNIX, socket.{kind}))
    kept[-1].bind("")
    if "{kind}" == "SOCK_STREAM": kept[-1].listen(100)
    for _ in range(100):
        sender = socket.socket(socket.AF_UNIX, socket.{kind})
        sender.setblocking(False)
        try:
            if "{kind}" == "SOCK_STREAM": sender.connect(kept[-1].getsockname())
            while "{kind}" == "SOCK_STREAM": sender.send(bytes(50_000))
            sender.sendto(bytes(150_000), kept[-1].getsockname())
        except OSError: pass
        sender.close()
time.sleep(60)
"""
    with cell(server, fill) as channel, pytest.raises(Closed):
        channel.receive(time.monotonic() + WITHIN_S)
    assert server.kill_job().over == "memory"


@pytest.mark.parametrize("step", ["sender.sendall(bytes(2**15))", "tiny.send(b'x'); drained.send(bytes(2**15 - 300))"])
def test_what_waits_in_the_networks_sockets_counts(server: Sandbox, step: str) -> None:
    """Much of it, or single bytes for each of which the kernel keeps all of the block that it was sent in."""
    fill = f"""
import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0), backlog=900)
def connected():
    made = socket.create_connection(listener.getsockname())
    made.settimeout(0.01)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made
drained = connected()
reader = listener.accept()[0]
drained.settimeout(None)
def drain():
    while reader.recv(2**20): pass
threading.Thread(target=drain, daemon=True).start()
for _ in range(800):
    sender = tiny = connected()
    try:
        for _ in range(5000): {step}
    except TimeoutError: pass
time.sleep(60)
"""
    with cell(server, fill, ("loopback", "subprocess")) as channel, pytest.raises(Closed):
        channel.receive(time.monotonic() + WITHIN_S)
    assert server.kill_job().over == "memory"


def test_memory_that_is_no_processs_cannot_be_had(do: Do) -> None:
    assert do("import mmap; mmap.mmap(-1, 2**26)").startswith("PermissionError")
    zero = "import mmap, os; mmap.mmap(os.open('/dev/zero', os.O_RDWR), 2**26)"
    assert do(zero).startswith(("FileNotFoundError", "OSError: [Errno 19]"))
    raise_ = "import socket; a, b = socket.socketpair(); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**22)"
    assert do(raise_).startswith("PermissionError")
    # A gigabyte of places for futexes, and blocks of which a pipe shows one byte.
    places = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    places += "libc.prctl(78, 1, ctypes.c_ulong(2**24), 0, 0)\nprint(ctypes.get_errno())"
    # An older kernel knows no such option, and says EINVAL: only the filter says this.
    assert do(places) == errno.EPERM
    splice = "import os, socket; a, b = socket.socketpair(); a.send(bytes(9)); os.splice(b.fileno(), os.pipe()[1], 1)"
    assert do(splice).startswith("OSError: [Errno 38]")


def test_temporary_space_is_capped_unless_files_are_granted(do: Do) -> None:
    write = "for n in range(9):\n    open(f'{n}', 'wb').write(bytes(10 * 2**20))"
    assert do(write).startswith("OSError")
    assert "No space" in do(write)
    for grants in (("files",), ("compiler",)):
        assert do(write, grants) is None
        more = with_grants(Limits(), grants)
        free = "import json, os; s = os.statvfs('/tmp'); print(json.dumps([s.f_blocks * s.f_frsize, s.f_files]))"
        assert do(free, grants) == [more.disk_bytes, more.n_files]


def test_a_sealed_job_starts_and_writes_nothing_more(server: Sandbox) -> None:
    wait = "import os, time, json\nwhile resource.getrlimit(resource.RLIMIT_FSIZE)[0]: time.sleep(0.01)\n"
    tries = (
        "f, told = os.open('f', os.O_CREAT | os.O_WRONLY), []\nfor attempt in (os.fork, lambda: os.write(f, b'x')):\n"
    )
    tries += "    try: attempt(); told.append('did')\n    except OSError as e: told.append(type(e).__name__)\n"
    ignore = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    source = f"{ignore}{wait}{tries}print(json.dumps(told))"
    with cell(server, source) as channel:
        assert server.seal_job(Seal(cpu_s=5.0, files=False)) is None
        _, said = channel.receive(time.monotonic() + WITHIN_S)
        assert json.loads(said["printed"]) == ["BlockingIOError", "OSError"]
    assert isinstance(server.kill_job(), JobEnded)


def test_temporary_space_holds_so_many_files(server: Sandbox) -> None:
    make = "import time\nfor n in range(100_000): open(f'{n}', 'w').close()\ntime.sleep(60)"
    assert run_cell(server, make).startswith("OSError: [Errno 28]")
