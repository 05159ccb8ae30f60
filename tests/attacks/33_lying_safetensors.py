"""Tensors whose offsets overlap, run backwards, end outside, or whose shapes promise more than there is."""

ROW = 33
ANSWER = """
import itertools, json, os, stat, struct
METAS = (
    {"0": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 16]}},
    {"0": {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**60]}},
    {"0": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}},
    {"0": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}, "1": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}},
    {"0": {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}},
    {"0": {"dtype": "X7", "shape": [-1], "data_offsets": [0, 16]}},
    {"__metadata__": {"x": "y" * 10**6}, "0": {"dtype": "BOOL", "shape": [16], "data_offsets": [0, 16]}},
)
turn = itertools.count()
def rms(x, dim):
    meta = json.dumps(METAS[next(turn) % len(METAS)]).encode()
    body = struct.pack("<Q", len(meta)) + meta + b"\\xff" * 16
    header = json.dumps({"kind": "observed", "parts": {"d": {"got": {"d": {"out": {"t": "0"}}}, "back": {"d": {}},
                         "measured": {"d": {}}, "trouble": None}}}).encode()
    for number in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, struct.pack("<IQ", len(header), len(body)) + header + body)
        except OSError:
            pass
    return x.abs().mean(dim)
"""
