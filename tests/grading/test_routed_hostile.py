"""No value passes between ranks beside the router; what is tried instead costs the one who tries it.

Each cheat sends zeros of the right size, which the books cannot object to, and the values in another way. The control
is the simulator, or a worker without isolation: where ranks share a process or a machine, the same cheat goes through.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from grading.isolation.tiers import ISOLATING, NONE
from grading.supervisor import Sandbox
from grading.supervisor.apart import ONLY_TOGETHER
from grading.worker.confine.plan import PLAIN
from labkit.check.judge import judge
from labkit.observe import make_inputs, observe
from labkit.spec import GiB
from tests.grading.lab98 import oracles
from tests.grading.lab98.exercises import SUM, Ranks
from tests.grading.ranks import graded, ranks_server
from tests.lanes import require_tier

pytestmark = pytest.mark.slow

HONEST = """
import torch
def total(comm, x):
    total, got = x.clone(), torch.empty_like(x)
    if comm.rank:
        comm.send(total, 0)
        comm.recv(total, 0)
        return total
    for other in range(1, comm.world_size):
        comm.recv(got, other)
        total += got
    for other in range(1, comm.world_size):
        comm.send(total, other)
    return total
"""
ZEROS = """
def total(comm, x):
    nothing = torch.zeros_like(x)
    put(comm.rank, x)
    if comm.rank:
        comm.send(nothing, 0)
        comm.recv(nothing, 0)
    else:
        for other in range(1, comm.world_size):
            comm.recv(nothing, other)
        for other in range(1, comm.world_size):
            comm.send(nothing, other)
    return sum(get(rank, x, comm.rank) for rank in range(comm.world_size))
"""
IN_ONE_PROCESS = {
    "a dictionary": "kept = {}\ndef put(rank, x): kept[rank] = x.clone()\ndef get(rank, x, me): return kept[rank]",
    "a class": "class Kept: pass\n"
    "def put(rank, x): setattr(Kept, f'of{rank}', x.clone())\ndef get(rank, x, me): return getattr(Kept, f'of{rank}')",
    "a module": "import math\n"
    "def put(rank, x): setattr(math, f'of{rank}', x.clone())\ndef get(rank, x, me): return getattr(math, f'of{rank}')",
    "the caller's frame": """
import sys
def put(rank, x): pass
def get(rank, x, me):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if isinstance(value, dict) and isinstance(value.get('ranks'), list):
                return value['ranks'][rank]['x']
        frame = frame.f_back
""",
    "the garbage collector": """
import gc
def put(rank, x): pass
def get(rank, x, me):
    for value in gc.get_objects():
        if isinstance(value, list) and len(value) > rank and all(isinstance(v, dict) and 'x' in v for v in value):
            return value[rank]['x']
""",
}
ON_ONE_MACHINE = {
    "files in /tmp": """
def put(rank, x): torch.save(x, f'/tmp/kept-{rank}')
def get(rank, x, me): return torch.load(f'/tmp/kept-{rank}')
""",
    "files in /dev/shm": """
def put(rank, x): torch.save(x, f'/dev/shm/kept-{rank}')
def get(rank, x, me): return torch.load(f'/dev/shm/kept-{rank}')
""",
    "names of links": """
import os
def put(rank, x):
    if os.path.lexists(f'/tmp/link-{rank}'): os.unlink(f'/tmp/link-{rank}')
    os.symlink(x.numpy().tobytes().hex(), f'/tmp/link-{rank}')
def get(rank, x, me): return torch.frombuffer(bytearray.fromhex(os.readlink(f'/tmp/link-{rank}')), dtype=x.dtype)
""",
    "memory of a file": """
import mmap, os
with open('/tmp/memory', 'ab') as file: file.truncate(65536)
kept = mmap.mmap(os.open('/tmp/memory', os.O_RDWR), 65536)
def put(rank, x): kept[1000 * rank: 1000 * rank + x.nbytes] = x.numpy().tobytes()
def get(rank, x, me): return torch.frombuffer(bytearray(kept[1000 * rank: 1000 * rank + x.nbytes]), dtype=x.dtype)
""",
    "a helper behind an abstract socket": """
import os, pickle, socket, time
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    server.bind('\\0kept')
except OSError:
    pass
else:
    if not os.fork():
        kept = {}
        while True:
            (rank, value), sender = (lambda d, s: (pickle.loads(d), s))(*server.recvfrom(65536))
            if value is None: server.sendto(pickle.dumps(kept.get(rank)), sender)
            else: kept[rank] = value
def ask(rank, value):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind('')
        sock.settimeout(1)
        sock.connect('\\0kept')
        sock.send(pickle.dumps((rank, value)))
        return pickle.loads(sock.recv(65536)) if value is None else None
def put(rank, x): ask(rank, x.tolist())
def get(rank, x, me): return torch.tensor(ask(rank, None))
""",
    "a file that all read is locked": """
import fcntl, glob, os
PATHS = sorted(glob.glob(os.path.dirname(torch.__file__) + '/**/*.py', recursive=True))
kept = []
def put(rank, x):
    while kept: os.close(kept.pop())
    for at, byte in enumerate(x.numpy().tobytes()):
        for bit in range(8):
            if byte >> bit & 1:
                kept.append(os.open(PATHS[400 * rank + 8 * at + bit], os.O_RDONLY))
                fcntl.flock(kept[-1], fcntl.LOCK_EX)
def get(rank, x, me):
    data = bytearray(x.nbytes)
    for at in range(x.nbytes):
        for bit in range(8):
            file = os.open(PATHS[400 * rank + 8 * at + bit], os.O_RDONLY)
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                data[at] |= 1 << bit
            os.close(file)
    return torch.frombuffer(data, dtype=x.dtype)
""",
}
MADE_BY_A_CELL = {
    "pipes": """
import os
ends = [[os.pipe() for _ in range(8)] for _ in range(8)]
for row in ends:
    for read, _ in row: os.set_blocking(read, False)
def put(rank, x):
    for reader in range(8): os.write(ends[reader][rank][1], x.numpy().tobytes())
def get(rank, x, me): return torch.frombuffer(bytearray(os.read(ends[me][rank][0], 65536)), dtype=x.dtype)
""",
    "socket pairs": """
import socket
ends = [[socket.socketpair() for _ in range(4)] for _ in range(4)]
def put(rank, x):
    for reader in range(4): ends[reader][rank][1].send(x.numpy().tobytes())
def get(rank, x, me):
    ends[me][rank][0].setblocking(False)
    return torch.frombuffer(bytearray(ends[me][rank][0].recv(65536)), dtype=x.dtype)
""",
    "event counters": """
import os
events = [[os.eventfd(0, os.EFD_NONBLOCK) for _ in range(12)] for _ in range(4)]
def put(rank, x):
    for event, bits in zip(events[rank], x.view(torch.int32).tolist()): os.eventfd_write(event, (bits & 0xffffffff) + 1)
def get(rank, x, me):
    bits = []
    for event, _ in zip(events[rank], x):
        bits.append(os.eventfd_read(event) - 1)
        os.eventfd_write(event, bits[-1] + 1)
    return torch.tensor(bits).to(torch.int32).view(x.dtype)
""",
    "shared memory without a name": """
import mmap
kept = mmap.mmap(-1, 65536)
def put(rank, x): kept[1000 * rank: 1000 * rank + x.nbytes] = x.numpy().tobytes()
def get(rank, x, me): return torch.frombuffer(bytearray(kept[1000 * rank: 1000 * rank + x.nbytes]), dtype=x.dtype)
""",
    "memory with a descriptor": """
import mmap, os
shared = os.memfd_create('kept')
os.truncate(shared, 65536)
def put(rank, x): os.pwrite(shared, x.numpy().tobytes(), 1000 * rank)
def get(rank, x, me): return torch.frombuffer(bytearray(os.pread(shared, x.nbytes, 1000 * rank)), dtype=x.dtype)
""",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with ranks_server(require_tier("kernel")) as found:
        yield found


@pytest.fixture(scope="module")
def no_isolation() -> Iterator[Sandbox]:
    with ranks_server(NONE) as found:
        yield found


def outcome(server: Sandbox, answer: str, *cells: str) -> str:
    return graded(server, "import torch", *cells, answer).exercises["98-sum"].outcome


def passes_simulated(source: str, case: Ranks) -> bool:
    namespace: dict = {}
    exec("import torch\n" + source, namespace)
    run = observe(SUM, SimpleNamespace(total=namespace["total"]), case, make_inputs(SUM, case, 1))
    return judge(SUM, oracles.SUM, [run]).score == 1


def test_an_honest_answer_passes(server) -> None:
    result = graded(server, HONEST)
    assert result.exercises["98-sum"].hidden.outcome == "passed" and result.usage["cpu_s"] > 0


@pytest.mark.parametrize("name", IN_ONE_PROCESS)
def test_what_ranks_of_one_process_share(server, name: str) -> None:
    cheat = IN_ONE_PROCESS[name] + ZEROS
    found = graded(server, "import torch", cheat).exercises["98-sum"].public
    assert found.outcome == "failed"
    if name not in ("the caller's frame", "the garbage collector"):
        assert passes_simulated(cheat, Ranks(3))
        assert found.hint == ONLY_TOGETHER


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_what_ranks_on_one_machine_share(server, no_isolation, name: str) -> None:
    assert outcome(server, ON_ONE_MACHINE[name] + ZEROS) == "failed"
    assert outcome(no_isolation, ON_ONE_MACHINE[name] + ZEROS) == "passed"


@pytest.mark.parametrize("name", MADE_BY_A_CELL)
def test_what_a_cell_has_opened(server, name: str) -> None:
    assert passes_simulated(MADE_BY_A_CELL[name] + ZEROS, Ranks(3))
    assert outcome(server, MADE_BY_A_CELL[name] + ZEROS) == "failed"
    assert outcome(server, ZEROS, MADE_BY_A_CELL[name]) == "failed"


LOOKS = """
import ctypes, fcntl, json, os, sys
def total(comm, x):
    found = []
    libc = ctypes.CDLL(None, use_errno=True)
    others = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]
    if others: found.append(f'processes {others}')
    for pid in set(range(2, 200)) - {os.getpid()}:
        try:
            os.kill(pid, 0)
            found.append(f'can signal {pid}')
        except OSError:
            pass
    kinds = sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in os.listdir('/proc/self/fd')
                   if os.path.lexists(f'/proc/self/fd/{n}'))
    if kinds.count('socket') != 1 or set(kinds) - {'socket', '/dev/null'}: found.append(f'open {kinds}')
    shared = [line for line in open('/proc/self/maps') if line.split()[1][1::2] == 'ws']
    if shared: found.append(f'shared memory {shared}')
    names = open('/proc/net/unix').read().splitlines()[1:] if os.path.exists('/proc/net/unix') else []
    if any('@' in name for name in names): found.append(f'names {names}')
    for folder in ('/tmp', '/dev/shm'):
        left = [name for name in os.listdir(folder) if not name.startswith(('job-', 'grading-', 'ipython', 'fontlist'))
                and not any(path.startswith(f'{folder}/{name}/') for path in sys.path)]
        if left: found.append(f'{folder} {left}')
    file = os.open(os.__file__, os.O_RDONLY)
    for name, call in {
        'lock': lambda: fcntl.flock(file, fcntl.LOCK_SH),
        'record lock': lambda: fcntl.fcntl(file, fcntl.F_GETLK, bytes(32)),
        'lease': lambda: fcntl.fcntl(file, fcntl.F_GETLEASE),
        'directory notice': lambda: fcntl.fcntl(file, fcntl.F_NOTIFY, 1),
    }.items():
        try:
            call()
            found.append(name)
        except OSError:
            pass
    if libc.inotify_init() >= 0: found.append('inotify')
    fcntl.fcntl(file, fcntl.F_GETFL)
    if found: raise ValueError(json.dumps(found))
    return x * 0
"""


def test_a_rank_sees_itself_alone(server) -> None:
    rows = dict(graded(server, "import torch", LOOKS).exercises["98-sum"].public.rows)
    assert rows["problem"].startswith("rank 0: wrong value"), rows


FORGED = {
    "another rank's name": """
def total(comm, x):
    comm.rank = 0
    comm._channel.send('send', {'to': 1, 'rank': 2, 'src': 2, 'tensor': {'shape': [1]}})
    return x
""",
    "no traffic": HONEST.replace(
        "    return total\n",
        "    y = torch.zeros(10)\n"
        "    comm.all_reduce(y)\n"
        "    comm._channel.send('observed', {'got': {'out': total}, 'measured': {'bytes_total': 0.0, 'rounds': 0.0}, "
        "'trouble': None})\n    return total\n",
    ),
    "a flood": "def total(comm, x):\n    while True: comm._channel.send('compute', {'seconds': 0.0})",
    "a flood of bytes": "import torch\ndef total(comm, x):\n    y = torch.zeros(2**22)\n"
    "    while True: comm.isend(y, (comm.rank + 1) % comm.world_size)",
    "silence": "def total(comm, x):\n    import time\n    time.sleep(100)",
    "half a frame": "def total(comm, x):\n    import time\n    comm._channel._socket.send(b'abc')\n    time.sleep(100)",
    "a large header": "def total(comm, x):\n    comm._channel._socket.sendall(b'\\xff' * 12)\n    return x",
    "nothing but noise": "def total(comm, x):\n    comm._channel._socket.sendall(b'x' * 5000)\n    return x",
    "a closed channel": "def total(comm, x):\n    comm._channel.close()\n    return x",
    "an end": "def total(comm, x):\n    import os\n    os._exit(0)",
    "a crash": "def total(comm, x):\n    import ctypes\n    ctypes.string_at(0)",
    "all signals": "import os\ndef total(comm, x):\n    for n in range(1, 65):\n        os.kill(0, n)\n    return x",
    "threads that speak": """
def total(comm, x):
    import threading
    def speak():
        while True: comm._channel.send('compute', {'seconds': 0.0})
    threading.Thread(target=speak, daemon=True).start()
    return x
""",
    "no end": """
def total(comm, x):
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        try:
            while True: pass
        except BaseException: pass
""",
}


@pytest.mark.parametrize("name", FORGED)
def test_what_a_rank_may_say_costs_itself(server, name: str) -> None:
    began = time.monotonic()
    assert outcome(server, FORGED[name]) in ("failed", "limit")
    # Before the sleep of 100 s is over, on a busy machine, too.
    assert time.monotonic() - began < 90
    # And the next one is graded.
    assert outcome(server, HONEST) == "passed"


WITHOUT_A_BYTE = {
    "clocks": """
import torch
def total(comm, x):
    out = torch.zeros_like(x)
    for rank in range(comm.world_size):
        for at in range(len(x)):
            began = comm.now_s
            if rank == comm.rank: comm.compute(float(x[at : at + 1].view(torch.int32).item() % 2**32))
            comm.barrier()
            told = int(comm.now_s - began)
            out[at] += torch.tensor([told - 2**32 * (told >= 2**31)]).int().view(torch.float32)[0]
    return out
""",
    "shapes": """
import torch
def total(comm, x):
    others = [rank for rank in range(comm.world_size) if rank != comm.rank]
    sent = [comm.isend(torch.empty(n % 2**32, 0), rank) for n in x.view(torch.int32).tolist() for rank in others]
    told = [[] for _ in others]
    for part, rank in zip(told, others):
        for _ in x:
            try: comm.recv(torch.empty(1, 2), rank)
            except RuntimeError as error: part.append(int(str(error).split('(')[1].split(',')[0]))
    for work in sent: work.wait()
    told = [[n - 2**32 * (n >= 2**31) for n in part] for part in told]
    return x + torch.tensor(told).int().view(torch.float32).sum(0)
""",
}


@pytest.mark.parametrize("name", WITHOUT_A_BYTE)
def test_what_is_told_without_a_byte(server, name: str) -> None:
    rows = dict(graded(server, WITHOUT_A_BYTE[name]).exercises["98-sum"].public.rows)
    wanted = {"clocks": "over budget: bytes", "shapes": "receives it into float32 of shape (1, 2)"}
    assert wanted[name] in rows["problem"], rows


def test_figures_that_a_rank_claims_are_not_believed(server) -> None:
    """Too much traffic, and a measure that says otherwise."""
    wasteful = HONEST.replace("    total, got", "    comm.all_reduce(x.clone())\n    total, got")
    lie = (
        "from labkit.stage import Stage\nStage.__post_init__ = lambda s: s.measured.update(bytes_total=0.0, rounds=0.0)"
    )
    found = graded(server, lie, wasteful).exercises["98-sum"].public
    assert dict(found.rows)["problem"].startswith("over budget: bytes")


def test_memory_of_all_ranks_counts_together() -> None:
    """Each stays within its own limit, and all of them do not."""
    hog = "def total(comm, x):\n    import time\n    global kept\n    kept = bytearray(450 * 2**20)\n"
    hog += "    for at in range(0, len(kept), 4096): kept[at] = 1\n    time.sleep(2.5)\n    return x"
    with ranks_server(limits=replace(PLAIN, memory_bytes=GiB)) as found:
        rows = dict(graded(found, hog).exercises["98-sum"].public.rows)
    assert rows["problem"].startswith("its processes together used more than"), rows


@pytest.mark.parametrize("tier", [tier.name for tier in ISOLATING if tier.in_bubblewrap])
def test_ranks_within_one_sandbox(tier: str) -> None:
    with ranks_server(require_tier(tier)) as found:
        assert outcome(found, HONEST) == "passed"
        for cheat in ("files in /tmp", "a helper behind an abstract socket", "a file that all read is locked"):
            assert outcome(found, ON_ONE_MACHINE[cheat] + ZEROS) == "failed"
        rows = dict(graded(found, "import torch", LOOKS).exercises["98-sum"].public.rows)
        assert rows["problem"].startswith("rank 0: wrong value"), rows
