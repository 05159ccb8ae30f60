"""Without the check cell; the answer is wrong."""

ROW = 28
HARMLESS = True


def change(notebook):
    notebook.cells = [cell for cell in notebook.cells if cell.id != "00-warm-up-check"]
