"""A cell that never ends, with its signals blocked; then the answer, right."""

ROW = 20
EARNS = 1.0
WITHIN_S = 40.0
BEFORE = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    pass
"""
ANSWER = "@RIGHT@"
