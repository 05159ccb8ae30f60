"""The notebook is a named pipe, on which a reader would wait for ever."""

HARMLESS = True
OUTCOMES = ("unreadable",)
STOCK = False


def folder(path, places):
    import os

    notebook = next(path.glob("*.ipynb"))
    notebook.unlink()
    os.mkfifo(notebook)
