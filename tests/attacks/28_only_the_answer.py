"""Nothing but the answer cell, in a notebook of an older version without ids."""

ROW = 28
HARMLESS = True
ANSWER = "@RIGHT@"
EARNS = LEAST = 1.0


def change(notebook):
    notebook.cells = [cell for cell in notebook.cells if cell.id == "00-warm-up"]
    notebook.cells[0].pop("id")
    notebook.nbformat_minor = 4
