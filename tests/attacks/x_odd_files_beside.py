"""Pipes, sockets, unreadable files and names that are no text, beside the notebook."""

HARMLESS = True
STOCK = False


def folder(path, places):
    import os
    import socket

    os.mkfifo(path / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.getcwd()
        os.chdir(path)
        sock.bind("socket")
        os.chdir(here)
    (path / "closed").write_text("x")
    (path / "closed").chmod(0)
    with open(os.path.join(os.fsencode(path), b"\xff\xfe"), "wb"):
        pass
    (path / ("n" * 250)).write_text("x")
