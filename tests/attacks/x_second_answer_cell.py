"""A look-alike of the answer cell in front of the true one, and the true one's id on a locked cell."""

HARMLESS = True


def change(notebook):
    from copy import deepcopy

    ids = [cell.id for cell in notebook.cells]
    answer = notebook.cells[ids.index("00-warm-up")]
    twin = deepcopy(answer)
    twin.metadata.nbgrader.update(grade=True, points=10**9, solution=False)
    twin.source = "check = lambda *args: 1"
    notebook.cells.insert(0, twin)
