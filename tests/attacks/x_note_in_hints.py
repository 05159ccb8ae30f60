"""Gives files that all read a hint on how long their data lasts, which the kernel keeps, and looks for such hints."""

TWICE = True
STOCK = False
BEFORE = """
import fcntl, os, struct, labkit, torch
GET, SET = 1035, 1036
for path in (torch.__file__, labkit.__file__, os.__file__, "/usr/bin/env"):
    try:
        file = os.open(path, os.O_RDONLY)
        if struct.unpack("Q", fcntl.fcntl(file, GET, bytes(8)))[0] > 1:
            print("!breach! found a hint with", path)
        fcntl.fcntl(file, SET, struct.pack("Q", 4))
        print("!breach! left a hint with", path)
    except OSError as error:
        print(path, error)
"""
