"""Every cell is there twice, as when a notebook is pasted into itself; the answer is right."""

ROW = 27
HARMLESS = True
ANSWER = "@RIGHT@"
EARNS = LEAST = 1.0


def change(notebook):
    from copy import deepcopy

    notebook.cells = [each for cell in notebook.cells for each in (cell, deepcopy(cell))]
