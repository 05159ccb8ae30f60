"""Numbers where texts are due, texts where lists are due, and keys that are there twice."""

HARMLESS = True
OUTCOMES = ("failed", "unreadable", "unanswered")


def folder(path, places):
    notebook = next(path.glob("*.ipynb"))
    text = notebook.read_text()
    text = text.replace('"execution_count": null', '"execution_count": 1e400, "execution_count": "NaN"')
    text = text.replace('"outputs": []', '"outputs": [{"output_type": 7, "data": [3], "text": {"a": 1}}]')
    notebook.write_text(text.replace('"schema_version": 3', '"schema_version": [[]], "schema_version": -1'))
