"""The check is marked as a solution without a grade; the answer is right."""

ROW = 30
HARMLESS = True
ANSWER = "@RIGHT@"
EARNS = LEAST = 1.0


def change(notebook):
    for cell in notebook.cells:
        if cell.id == "00-warm-up-check":
            cell.metadata.nbgrader.update(solution=True, grade=False, locked=False)
            cell.source = "pass"
