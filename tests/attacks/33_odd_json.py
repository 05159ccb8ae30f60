"""Headers with NaN, infinity, doubled and missing keys, huge numbers and halves of characters."""

ROW = 33
ANSWER = """
import itertools, os, stat, struct
HEADERS = (
    b'{"kind": "observed", "parts": {"d": {"got": NaN, "back": Infinity, "measured": {"d": {"peak_bytes": NaN}}, "trouble": null}}}',
    b'{"kind": "observed", "parts": {"d": {"got": 1e999, "back": 1, "measured": null, "trouble": 7}}}',
    b'{"kind": "observed", "kind": "end", "parts": {"d": {}}}',
    b'{"kind": ["observed"], "parts": [[]]}',
    b'{"kind": "observed", "parts": {"d": {"got": ' + b"9" * 100_000 + b', "back": null, "measured": {"d": {}}, "trouble": null}}}',
    b'{"kind": "\\\\ud800", "parts": {"o": ["\\\\ud800", 3]}}',
    b"\\xff\\xfe{}", b"", b"null",
)
turn = itertools.count()
def rms(x, dim):
    header = HEADERS[next(turn) % len(HEADERS)]
    for number in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, struct.pack("<IQ", len(header), 0) + header)
        except OSError:
            pass
    return x.abs().mean(dim)
"""
