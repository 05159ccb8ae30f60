"""Metadata of forty-nine megabytes that ask for gigabytes of memory once they are read: empty objects in a list."""

HARMLESS = True
STOCK = False
OUTCOMES = ("unreadable",)
DAMAGE = ("memory", "grader")


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    text = notebook.read_text()
    at = text.rindex('"metadata": {') + len('"metadata": {')
    notebook.write_text(text[:at] + '"many": [' + "{}," * (49 * 2**20 // 3) + "{}]," + text[at:])
