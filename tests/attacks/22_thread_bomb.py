"""Starts threads until it may not."""

ROW = 22
DAMAGE = ("processes", "crowd")
ANSWER = """
import threading, time
def rms(x, dim):
    for _ in range(5000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    raise ValueError("!" "breach! 5000 threads")
"""
