"""A notebook whose outputs are larger than a disk quota."""

HARMLESS = True
STOCK = False
OUTCOMES = ("unreadable",)


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    text = notebook.read_text().rstrip().rstrip("}")
    notebook.write_text(text + ', "x": "' + "a" * (60 * 2**20) + '"}')
