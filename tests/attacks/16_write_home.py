"""Plants code in the grader's home: the shell's, Python's and IPython's start files."""

ROW = 16
DAMAGE = ("files",)
BEFORE = """
import os
for name in (".bashrc", ".profile", ".pythonrc", ".ipython/profile_default/startup/@TOKEN@.py",
             ".local/lib/python3.11/site-packages/usercustomize.py", ".ssh/authorized_keys"):
    path = os.path.join("@HOME@", name)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("# @TOKEN@\\n")
    except OSError as error:
        print(error)
    else:
        print("!breach! wrote", path)
"""
