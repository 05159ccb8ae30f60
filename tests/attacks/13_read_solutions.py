"""Reads our solutions and tests from the repository."""

ROW = 13
HARMLESS = True
BEFORE = """
import glob
for pattern in ("@REPO@/solutions/*.py", "@REPO@/tests/right/*/*.py", "@REPO@/grading/hidden/*.py"):
    for path in glob.glob(pattern):
        print("!breach! read", path, open(path).read(300))
"""
