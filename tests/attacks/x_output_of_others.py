"""Writes to whatever it can find of the terminal that the instructor sees."""

DAMAGE = ("terminal",)
BEFORE = """
@GUARD@
import glob, os
for path in ["/dev/tty", "/dev/console", "/dev/pts/0", *glob.glob("/proc/[0-9]*/fd/[12]")]:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        if not os.readlink(f"/proc/self/fd/{descriptor}").startswith("/dev/null"):
            os.write(descriptor, b"\\x1b]0;@TOKEN@\\x07")
    except OSError:
        pass
"""
