"""Writes into its own memory through /proc, where pages are read-only."""

HARMLESS = True
STOCK = False
EARNS = 1.0
BEFORE = """
import ctypes
text = ctypes.c_char_p(b"constant")
address = ctypes.cast(text, ctypes.c_void_p).value
with open("/proc/self/mem", "r+b", buffering=0) as file:
    file.seek(address)
    file.write(b"CONSTANT")
print(text.value)
"""
ANSWER = "@RIGHT@"
