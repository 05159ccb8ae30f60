"""Never returns, and swallows every exception that would end it; ignores the signals too."""

ROW = 20
OUTCOMES = ("limit",)
WITHIN_S = 14.0
ANSWER = """
import signal, time
def rms(x, dim):
    while True:
        try:
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while True:
                time.sleep(0.1)
        except BaseException:
            pass
"""
