"""Where the notebook should be, there is a folder."""

HARMLESS = True
OUTCOMES = ("unreadable",)


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    notebook.unlink()
    notebook.mkdir()
    (notebook / "x.ipynb").write_text("{}")
