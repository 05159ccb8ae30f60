"""A notebook that says it is of version 999, and another member named cells for version 3."""

HARMLESS = True
OUTCOMES = ("failed", "unreadable", "unanswered")


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    notebook.write_text(notebook.read_text().replace('"nbformat": 4', '"worksheets": [{"cells": []}], "nbformat": 999'))
