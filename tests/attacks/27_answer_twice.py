"""The right answer, and a copy of its cell behind the check with a wrong one."""

ROW = 27
HARMLESS = True
ANSWER = "@RIGHT@"
EARNS = LEAST = 1.0


def change(notebook):
    from copy import deepcopy

    ids = [cell.id for cell in notebook.cells]
    copy = deepcopy(notebook.cells[ids.index("00-warm-up")])
    copy.source = "def rms(x, dim):\n    return x"
    notebook.cells.insert(ids.index("00-warm-up-check") + 1, copy)
