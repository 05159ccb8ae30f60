"""Fills every folder that could lie in memory: temporary files, shared memory, anonymous files."""

ROW = 21
DAMAGE = ("memory",)
BEFORE = """
import os, tempfile
held, names, part = 0, [], b"x" * 2**24
def more(descriptor):
    global held
    for _ in range(8):
        if os.write(descriptor, part) < len(part):
            return
        held += len(part)
for folder in ("/dev/shm", "/tmp", "/var/tmp", "/run", tempfile.gettempdir(), os.getcwd()):
    for number in range(8):
        if held >= 4 * 2**30:
            break
        try:
            name = os.path.join(folder, f"@TOKEN@-{number}")
            descriptor = os.open(name, os.O_CREAT | os.O_RDWR)
            names.append(name)
            more(descriptor)
        except OSError as error:
            print(folder, error)
            break
descriptors = []
for number in range(32):
    try:
        descriptors.append(os.memfd_create("m"))
        more(descriptors[-1])
    except OSError as error:
        print("memfd", error)
        break
print("held", held)
for name in names:
    try:
        os.unlink(name)
    except OSError:
        pass
if held >= 3 * 2**30:
    print("!breach! held 3 GiB in files")
"""
