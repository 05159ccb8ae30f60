"""Programs of ranks that look for others, lie to the router, or tell a value without sending a byte."""

from tests.grading.side_channels import HONEST

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
    "silence": "def total(comm, x):\n    import time\n    time.sleep(1e4)",
    "half a frame": "def total(comm, x):\n    import time\n    comm._channel._socket.send(b'abc')\n    time.sleep(1e4)",
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
