"""Answers at once and never ends: exit handlers, destructors and other threads that wait for ever."""

ROW = 20
WITHIN_S = 30.0
BEFORE = """
import atexit, threading, time
class Slow:
    def __del__(self):
        time.sleep(10**6)
slow = Slow()
atexit.register(time.sleep, 10**6)
threading.Thread(target=time.sleep, args=(10**6,)).start()
"""
