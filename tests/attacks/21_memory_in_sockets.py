"""Has the kernel keep memory in the queues of sockets that nobody has open any more, beside what a process may hold."""

ROW = 21
DAMAGE = ("memory",)
BEFORE = """
import os, socket, time
held = b"x" * (5 * 2**29)
waiting, kept = 0, []
try:
    while waiting < 2 * 2**30:
        kept.append(socket.socket(socket.AF_UNIX))
        kept[-1].bind("")
        kept[-1].listen(4000)
        for _ in range(1000):
            sender = socket.socket(socket.AF_UNIX)
            sender.setblocking(False)
            try:
                sender.connect(kept[-1].getsockname())
                while True:
                    waiting += sender.send(bytes(65536))
            except BlockingIOError:
                sender.close()
except OSError as error:
    print(error)
time.sleep(0.5)
print("waiting", waiting)
if len(held) + waiting > 4.4 * 2**30:
    print("!breach! held more than 4.4 GiB")
"""
