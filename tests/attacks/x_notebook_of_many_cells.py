"""Ten thousand cells."""

HARMLESS = True
STOCK = False
OUTCOMES = ("unreadable",)


def change(notebook):
    from nbformat.v4 import new_code_cell

    notebook.cells += [new_code_cell("1", id=f"mine-{n}") for n in range(10_000)]
