"""The notebook is a symbolic link to the solved one."""

HARMLESS = True
OUTCOMES = ("unreadable",)


def folder(path, places):
    from pathlib import Path

    notebook = next(path.glob("*.ipynb"))
    notebook.unlink()
    notebook.symlink_to(Path(places["COURSE"], "source", places["LAB"], f"{places['LAB']}.ipynb"))
