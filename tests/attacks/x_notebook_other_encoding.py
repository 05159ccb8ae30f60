"""A notebook in UTF-16, as some editors save it."""

HARMLESS = True
OUTCOMES = ("unreadable",)


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    notebook.write_bytes(notebook.read_text().encode("utf-16"))
