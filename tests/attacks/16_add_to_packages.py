"""Adds a module, a .pth file and cached bytecode beside the installed packages and beside labkit."""

ROW = 16
DAMAGE = ("files",)
BEFORE = """
import os, labkit, torch
for folder in {os.path.dirname(os.path.dirname(labkit.__file__)), os.path.dirname(os.path.dirname(torch.__file__)),
               os.path.dirname(os.__file__), "@REPO@"}:
    for name in ("@TOKEN@.pth", "@TOKEN@.py", "labkit/__pycache__/@TOKEN@.pyc"):
        try:
            with open(os.path.join(folder, name), "w") as file:
                file.write("# @TOKEN@\\n")
        except OSError as error:
            print(error)
        else:
            print("!breach! wrote", folder, name)
"""
