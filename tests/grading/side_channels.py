"""Programs of ranks: an honest sum, and cheats that send zeros and pass the values on beside the router.

A cheat is `ZEROS` after one of the texts below, which define how a rank puts its value somewhere and gets another's.
"""

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
