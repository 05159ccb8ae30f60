"""Has the kernel keep tables for it that no limit counts: of waiting threads, of what is watched, of blocks in pipes."""

ROW = 21
DAMAGE = ("memory",)
BEFORE = """
import ctypes, os, select, socket
libc = ctypes.CDLL(None, use_errno=True)

def told(what, done):
    if done:
        print("!breach! the kernel keeps", what)

PR_FUTEX_HASH, SET_SLOTS = 78, 1
for _ in range(3):
    if os.fork() == 0:
        # A gigabyte of empty places for futexes, once for each process.
        done = libc.prctl(PR_FUTEX_HASH, SET_SLOTS, ctypes.c_ulong(2**24), 0, 0)
        os._exit(done == 0)
told("futexes", any([os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)]))

watched = 0
try:
    watchers, events = [select.epoll() for _ in range(50)], [os.eventfd(0) for _ in range(50)]
    for event in events:
        for number in range(max(events) + 1, 250):
            os.dup2(event, number)
            for watcher in watchers:
                watcher.register(number, select.EPOLLIN)
                watched += 1
            os.close(number)
except OSError as error:
    print("watched", watched, error)
told("what is watched", watched > 100_000)

moved = 0
try:
    near, far = socket.socketpair()
    for _ in range(30):
        read, write = os.pipe()
        for _ in range(16):
            near.sendall(bytes(2**15))
            # One byte, with the block that it lies in.
            moved += os.splice(far.fileno(), write, 1)
            left = 2**15 - 1
            while left:
                left -= len(far.recv(left))
except OSError as error:
    print("moved", moved, error)
told("blocks in pipes", moved > 400)
"""
