"""Makes as many files as it can."""

ROW = 25
DAMAGE = ("files", "leftovers")
BEFORE = """
import os, tempfile
folder = tempfile.mkdtemp()
count = 0
try:
    for count in range(200_000):
        os.close(os.open(f"{folder}/{count}", os.O_CREAT | os.O_WRONLY))
except OSError as error:
    print(error)
print("made", count)
if count > 150_000:
    print("!breach! no limit on files")
"""
