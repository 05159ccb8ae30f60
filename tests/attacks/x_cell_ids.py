"""Cells whose ids are paths, markup, empty, very long, doubled, look-alikes of ours, or no text."""

HARMLESS = True


def change(notebook):
    from nbformat.v4 import new_code_cell

    names = ("../../../etc/passwd", "<script>'@TOKEN@'</script>", "", "x" * 10_000, "00-warm-up\u200b", "00\u2010warm-up",
             "00-WARM-UP", "\x1b[2J", "\ud800", "00-warm-up-check ", "constructor")
    for n, name in enumerate(names):
        cell = new_code_cell(f"{n}", id=f"mine-{n}")
        cell.metadata["nbgrader"] = {"grade_id": name, "grade": True, "solution": True, "locked": False, "points": 100,
                                     "schema_version": 3, "task": False}
        notebook.cells.insert(3, cell)
