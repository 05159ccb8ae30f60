"""Works in a thread, which has no dispatch mode."""

ROW = 42
HARMLESS = True
EXERCISE = "02-blocked-sum"
ANSWER = """
import threading, torch
def blocked_sum(x, dim, block_size):
    out = []
    def work():
        whole = x.float().contiguous().clone()
        out.append(sum(block.sum(dim) for block in whole.split(block_size, dim)))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return out[0]
"""
