"""Leaves folders without rights, names that are no text, and files that may not be changed."""

ROW = 25
DAMAGE = ("leftovers",)
BEFORE = """
import os, tempfile
top = tempfile.mkdtemp(prefix="@TOKEN@")
os.mkdir(os.path.join(top, "closed"))
open(os.path.join(top, "closed", "file"), "w").close()
os.chmod(os.path.join(top, "closed"), 0)
open(os.path.join(os.fsencode(top), b"\\xff\\xfe\\n"), "w").close()
os.mkfifo(os.path.join(top, "pipe"))
os.system(f"chattr +i {top} 2>/dev/null")
"""
