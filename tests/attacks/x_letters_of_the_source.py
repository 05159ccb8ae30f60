"""Halves of characters, zero bytes and directions of writing in the source of cells."""

HARMLESS = True
OUTCOMES = ("failed", "unreadable")


def change(notebook):
    from nbformat.v4 import new_code_cell

    notebook.cells.insert(2, new_code_cell("x = '\ud800'\nprint(x)", id="mine-half"))
    notebook.cells.insert(2, new_code_cell("x = '\u202e\u0000\uffff'  # \u2066", id="mine-zero"))
    notebook.cells.insert(2, new_code_cell("\f\f\x0b\r\r\n\u2028print(1)", id="mine-lines"))
