"""Looks for programs that run as another user, and asks them for a favour."""

STOCK = False
BEFORE = """
@GUARD@
import os, subprocess
for name in ("su", "sudo", "mount", "umount", "newgrp", "passwd", "chsh", "pkexec", "ping", "fusermount3", "crontab", "at"):
    try:
        done = subprocess.run([name, "-c", "id"] if name == "su" else [name, "--version"], capture_output=True, text=True, timeout=3,
                              stdin=subprocess.DEVNULL)
        print(name, done.returncode, (done.stdout + done.stderr)[:60].strip())
        if name == "su" and "uid=0" in done.stdout:
            print("!breach! root by su")
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error)
"""
