"""Metadata nested just deep enough for one program to read and another to fall over."""

HARMLESS = True
OUTCOMES = ("failed", "unreadable")


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    text = notebook.read_text()
    at = text.rindex('"metadata": {') + len('"metadata": {')
    notebook.write_text(text[:at] + '"deep": ' + "[" * 900 + "]" * 900 + "," + text[at:])
