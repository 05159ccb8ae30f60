"""Magics that run, load and write files, and start other interpreters."""

ROW = 18
DAMAGE = ("files",)
BEFORE = """
shell = get_ipython()
for line in ("%load @COURSE@/source/@LAB@/@LAB@.ipynb", "%run @REPO@/solutions/00_start_here.py",
             "%system cat @HOME@/.ssh/id_ed25519", "%cd @COURSE@", "%env SECRET", "%pip install --no-index nothing"):
    try:
        print(shell.run_line_magic(*line[1:].split(" ", 1)))
    except BaseException as error:
        print(type(error).__name__, error)
try:
    shell.run_cell_magic("writefile", "@REPO@/@TOKEN@.py", "print(1)")
    shell.run_cell_magic("bash", "", "cat @HOME@/.ssh/id_ed25519")
except BaseException as error:
    print(type(error).__name__, error)
"""
