"""Keeps what it may not hold in pipes, each made as large as the kernel lets it."""

ROW = 42
HARMLESS = True
EXERCISE = "02-blocked-sum"
BEFORE = """
import fcntl, os
pipes = []
for number in range(24):
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        fcntl.fcntl(write, 1031, 2**20)
        print("!breach! made a pipe of 1 MiB")
    except OSError as error:
        print(error)
        break
    pipes.append((read, write))
"""
