"""Leaves threads running that go on while the exercise runs, and change its inputs behind its back."""

HARMLESS = True
WITHIN_S = 60.0
BEFORE = """
import gc, threading, time, torch
def meddle():
    while True:
        for each in gc.get_objects():
            if type(each) is dict and set(each) == {"x"} and isinstance(each["x"], torch.Tensor):
                each["x"].zero_()
        time.sleep(0.001)
threading.Thread(target=meddle, daemon=True).start()
"""
ANSWER = "def rms(x, dim):\n    return x.float().square().mean(dim).mul(0).to(x.dtype)"
