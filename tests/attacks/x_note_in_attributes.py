"""Leaves a note in the times, the modes and the attributes of folders and devices that it may only read."""

TWICE = True
DAMAGE = ("leftovers",)
BEFORE = """
import contextlib, os, stat
mark_s = 1_000_000 + @IPC_KEY@ % 1_000_000
def places():
    for top, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(top, name) not in ("/proc", "/sys", "/tmp", os.getcwd())]
        yield top
        if top.startswith("/dev"):
            yield from (os.path.join(top, name) for name in files)
        if top.count("/") > 2:
            folders.clear()
for path in places():
    with contextlib.suppress(OSError):
        if os.stat(path).st_mtime == mark_s:
            print("!breach! found a time of", path)
        if os.getxattr(path, "user.@TOKEN@"):
            print("!breach! found an attribute of", path)
    for leave in (
        lambda: os.utime(path, (mark_s, mark_s)),
        lambda: os.setxattr(path, "user.@TOKEN@", b"x" * 1000),
        lambda: os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) ^ stat.S_ISVTX),
    ):
        try:
            leave()
            if path.startswith(("/dev", "/usr", "/etc", "/lib")) and path != "/dev/shm":
                print("!breach! marked", path)
        except OSError:
            pass
print("looked everywhere")
"""
