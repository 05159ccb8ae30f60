"""Sends frames that are right in form, without end."""

ROW = 33
OUTCOMES = ("limit", "failed", "suspected")
WITHIN_S = 30.0
BEFORE = """
import json, os, stat, struct, time
header = json.dumps({"kind": "at", "parts": {"d": {"id": "x" * 100_000}}}).encode()
data = (struct.pack("<IQ", len(header), 0) + header) * 10
ends = time.monotonic() + 10
while time.monotonic() < ends:
    for number in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.set_blocking(number, False)
                os.write(number, data)
        except OSError:
            time.sleep(0.001)
"""
