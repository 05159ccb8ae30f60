"""Makes a user namespace in which it is root, and mounts, traces and opens the network from there."""

STOCK = False
BEFORE = """
import os, subprocess
for command in (["unshare", "-Ur", "mount", "-t", "tmpfs", "none", "/tmp"], ["unshare", "-Urn", "true"], ["unshare", "-Urpf", "true"],
                ["bwrap", "--ro-bind", "/", "/", "true"]):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except OSError as error:
        print(error)
        continue
    print(command, done.returncode, done.stderr.strip())
    if done.returncode == 0:
        print("!breach! ran", command)
"""
