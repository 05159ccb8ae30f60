"""Sends zeros, and passes the values through a process that a cell has left behind a socket without a file."""

ROW = 44
DAMAGE = ("processes",)
EXERCISE = "14-naive"
STOCK = False
BEFORE = """
import os, pickle, socket, torch
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
try: server.bind('\\0@TOKEN@')
except OSError: pass
else:
    if not os.fork():
        kept = {}
        while True:
            data, sender = server.recvfrom(65536)
            rank, value = pickle.loads(data)
            if value is None: server.sendto(pickle.dumps(kept.get(rank)), sender)
            else: kept[rank] = value
def ask(rank, value):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind('')
        sock.settimeout(1)
        sock.connect('\\0@TOKEN@')
        sock.send(pickle.dumps((rank, value)))
        return pickle.loads(sock.recv(65536)) if value is None else None
def put(rank, x): ask(rank, x.tolist())
def get(rank, x): return torch.tensor(ask(rank, None), dtype=x.dtype).view(x.shape)
"""
ANSWER = """
def naive_all_reduce(comm, x):
    nothing = torch.zeros_like(x)
    put(comm.rank, x)
    if comm.rank:
        comm.send(nothing, 0)
        comm.recv(nothing, 0)
        return sum(get(rank, x) for rank in range(comm.world_size))
    for other in range(1, comm.world_size):
        comm.recv(nothing, other)
    for other in range(1, comm.world_size):
        comm.send(nothing, other)
    return sum(get(rank, x) for rank in range(comm.world_size))
"""
