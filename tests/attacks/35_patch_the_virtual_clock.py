"""Lets no virtual time pass: what sleeps on the course's own clock does not, and the clock says what it is told."""

ROW = 35
HARMLESS = True
STOCK = False
EXERCISE = "07-prefetch"
BEFORE = """
import labkit.clock.turns, labkit.clock.virtual
clock = labkit.clock.virtual.VirtualClock
clock.sleep = lambda self, seconds, what="": None
clock.left_over = lambda self, within_s=0.0: []
clock.now_s = property(lambda self: 0.0)
"""
ANSWER = """
import math
def prefetch(load, n, depth, clock):
    for index in range(n):
        yield load(index)
def loader_plan(sample_ms, batch_size, step_ms, prefetch_factor, sample_bytes):
    n_workers = math.ceil(batch_size * sample_ms / step_ms)
    return n_workers, n_workers * prefetch_factor * batch_size * sample_bytes
"""
