"""HTML wherever a notebook's metadata are shown: title, language, kernel, tags, comments."""

ROW = 26
HARMLESS = True
DAMAGE = ("page",)


def change(notebook):
    evil = "</title><script>'etl-attack-metadata'</script>"
    notebook.metadata.update(
        title=evil,
        authors=[{"name": evil}],
        language_info={"name": evil, "pygments_lexer": evil, "mimetype": evil, "file_extension": "/../../x"},
        kernelspec={"name": "../../evil", "display_name": evil, "language": evil, "argv": ["touch", "/tmp/evil"]},
        widgets={"application/vnd.jupyter.widget-state+json": {"state": {"x": evil}}},
    )
    for cell in notebook.cells:
        cell.metadata["tags"] = [evil, "remove_cell", "hide_input"]
        cell.metadata["slideshow"] = {"slide_type": evil}
