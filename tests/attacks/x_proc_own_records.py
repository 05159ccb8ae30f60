"""Resets the records of its own peak of memory, and makes itself the last to be killed for memory."""

HARMLESS = True
STOCK = False
BEFORE = """
import os
for name, text in (("clear_refs", "5"), ("oom_score_adj", "-1000"), ("oom_score_adj", "-1"), ("timerslack_ns", "1000000000"),
                   ("loginuid", "0"), ("coredump_filter", "0x7f"), ("autogroup", "-20"), ("uid_map", "0 0 1")):
    try:
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    except OSError as error:
        print(name, error)
    else:
        if name not in ("timerslack_ns", "coredump_filter"):
            print("!breach! wrote", name, text)
"""
