"""Reads the environment, the command line, the maps and the open files of every process."""

HARMLESS = True
BEFORE = """
import glob, os
own = str(os.getpid())
for folder in glob.glob("/proc/[0-9]*"):
    if folder.endswith("/" + own):
        continue
    for name in ("environ", "cmdline", "maps"):
        try:
            data = open(f"{folder}/{name}", "rb").read().replace(b"\\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if "SECRET=" in data or "canary-" in data:
            print("!breach! read", folder, name, data[data.find("SECRET="):][:60])
        if name == "cmdline" and "@COURSE@" in data:
            print("!breach! sees the grader:", data[:200])
    for link in glob.glob(f"{folder}/fd/*"):
        try:
            if "@COURSE@" in os.readlink(link):
                print("!breach! sees an open file", os.readlink(link))
        except OSError:
            pass
print(os.environ.get("SECRET"))
"""
