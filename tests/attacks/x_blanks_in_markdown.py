"""A million blanks where a link's address would stand, for whatever looks for links by an expression that looks back."""

HARMLESS = True
STOCK = False
DAMAGE = ("grader",)


def change(notebook):
    from nbformat.v4 import new_markdown_cell

    notebook.cells.append(new_markdown_cell("[a](" + " " * 10**6, id="mine-blanks"))
