"""A gigabyte of nothing beside the notebook, which a careless copy would write out."""

HARMLESS = True
STOCK = False
OUTCOMES = ("failed", "unreadable")


def folder(path, places):
    import os

    with (path / "data.bin").open("wb") as file:
        os.truncate(file.fileno(), 2**30)
