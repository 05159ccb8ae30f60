"""Escape sequences where a notebook says of which version it is, for the message that refuses it."""

ROW = 26
HARMLESS = True
OUTCOMES = ("unreadable",)
DAMAGE = ("terminal", "page")


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    notebook.write_text(notebook.read_text().replace('"nbformat": 4', '"nbformat": "\\u001b]0;@TOKEN@\\u0007\\u009b2J"'))
