"""Writes until nothing more fits."""

ROW = 25
DAMAGE = ("files", "leftovers")
BEFORE = """
import os, tempfile
part, total, names = b"x" * 2**22, 0, []
for number in range(40):
    name = os.path.join(tempfile.gettempdir(), f"@TOKEN@-{number}")
    try:
        with open(name, "wb", buffering=0) as file:
            names.append(name)
            for _ in range(32):
                total += file.write(part)
    except OSError as error:
        print(error)
        if error.errno == 28 or number > 20:
            break
print("wrote", total)
for name in names:
    os.unlink(name)
if total > 3 * 2**30:
    print("!breach! wrote more than 3 GiB")
"""
