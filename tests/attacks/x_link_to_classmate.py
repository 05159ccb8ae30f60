"""The notebook is a symbolic link to a classmate's."""

HARMLESS = True
OUTCOMES = ("unreadable",)


def folder(path, places):
    import os
    from pathlib import Path

    notebook = next(path.glob("*.ipynb"))
    notebook.unlink()
    os.symlink(Path(places["COURSE"], "submitted", "mmm-middle", places["LAB"], f"{places['LAB']}.ipynb"), notebook)
