"""Ten thousand cells."""

HARMLESS = True
STOCK = False
OUTCOMES = ("unreadable",)


def change(notebook):
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell

    # Made and checked once, which takes long.
    cell = new_code_cell("1")
    notebook.cells += [NotebookNode(cell, id=f"mine-{n}") for n in range(10_000)]
