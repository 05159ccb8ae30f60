"""Makes folders within folders, deeper than a path can be long, for whoever has to remove them."""

ROW = 25
DAMAGE = ("leftovers",)
BEFORE = """
import os, tempfile
os.chdir(tempfile.mkdtemp())
for _ in range(3000):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
"""
