"""Prints for as long as it may, beneath Python too."""

ROW = 24
HARMLESS = True
BEFORE = """
import os
for _ in range(200):
    print("line\\n" * 10_000)
    os.write(1, b"x" * 100_000)
    os.write(2, b"x" * 100_000)
!yes | head -c 20000000
"""
ANSWER = "@RIGHT@"
EARNS = LEAST = 1.0
