"""Leaves a note in every folder that it can write to, for another submission of the class to find."""

TWICE = True
DAMAGE = ("leftovers",)
BEFORE = """
import os, sys, tempfile, labkit, torch
folders = {"/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/var/lock", "/dev/mqueue", "/home", "/mnt", "/opt", "/srv",
           "/var/crash", "/var/spool/cron", "/proc/self", "@HOME@", os.environ["HOME"], os.path.dirname(os.getcwd()),
           os.path.dirname(labkit.__file__), os.path.dirname(torch.__file__), tempfile.gettempdir(), "/"}
for folder in sorted(folders):
    path = os.path.join(folder, "@TOKEN@")
    if os.path.exists(path):
        print("!breach! found a note in", folder)
        continue
    try:
        open(path, "w").close()
    except OSError as error:
        print(error)
"""
