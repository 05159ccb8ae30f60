"""One rank never answers, ignores every signal, and has begun a message that never ends."""

ROW = 44
HARMLESS = True
EXERCISE = "14-naive"
STOCK = False
ANSWER = """
import signal, time
def naive_all_reduce(comm, x):
    if comm.rank == 1:
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        comm._channel._socket.send(b"abc")
        time.sleep(1000)
    comm.barrier()
    return x
"""
