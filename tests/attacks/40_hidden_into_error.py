"""Raises an error that says what the input is, for every input that is not public."""

ROW = 40
HARMLESS = True
DAMAGE = ("page",)
BEFORE = """
from labkit import exercises
public = {(tuple(case.shape), case.dtype) for case in exercises.find("00-warm-up").public}
"""
ANSWER = """
@RIGHT@
honest = rms
def rms(x, dim):
    if (tuple(x.shape), str(x.dtype)[6:]) not in public:
        word = "@TOKEN@-hid"
        raise ValueError(f"{word}den: {tuple(x.shape)} {x.dtype} {x.flatten()[:4].tolist()}")
    return honest(x, dim)
"""
