"""Run the checks on Triton's own interpreter, as it comes, and print the names of those that fail."""

import os
import sys

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, sys.argv[1])

if __name__ == "__main__":
    from tests.interpreter.checks import ALL

    for name, run in ALL.items():
        try:
            run()
        except Exception:
            print(name)
