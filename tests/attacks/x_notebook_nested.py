"""A notebook whose metadata are nested a hundred thousand deep."""

HARMLESS = True
OUTCOMES = ("unreadable",)


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    notebook.write_text('{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": ' + '{"a": ' * 100_000 + "1" + "}" * 100_001)
