"""A file of the submission is a second name of a file of the grader's."""

HARMLESS = True


def folder(path, places):
    import os

    os.link(f"{places['HOME']}/.bashrc", path / "notes.txt")
    os.link(f"{places['COURSE']}/nbgrader_config.py", path / "config.txt")
