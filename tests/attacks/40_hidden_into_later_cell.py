"""Sends what it sees to a later cell by every way out of the exercise's process, and prints it there."""

ROW = 40
HARMLESS = True
DAMAGE = ("page",)
EARNS = 1.0
BEFORE = """
import mmap, os, tempfile
from labkit import exercises
public = {(tuple(case.shape), case.dtype) for case in exercises.find("00-warm-up").public}
read, write = os.pipe()
os.set_blocking(read, False)
shared = mmap.mmap(-1, 4096)
notes = os.path.join(tempfile.gettempdir(), "notes")
"""
ANSWER = """
@RIGHT@
honest = rms
def rms(x, dim):
    if (tuple(x.shape), str(x.dtype)[6:]) not in public:
        said = ("@TOKEN@-hid" + f"den {tuple(x.shape)} {x.dtype}").encode()
        shared[:len(said)] = said
        for deed in (lambda: os.write(write, said), lambda: open(notes, "ab").write(said), lambda: os.write(1, said)):
            try:
                deed()
            except OSError:
                pass
    return honest(x, dim)
"""
AFTER = """
print(shared[:400].strip(b"\\0"))
try:
    print(open(notes).read())
except OSError:
    pass
try:
    print(os.read(read, 4000))
except OSError:
    pass
"""
