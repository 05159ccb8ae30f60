"""Source that takes a parser, a formatter or a regular expression for ever."""

HARMLESS = True
WITHIN_S = 60.0
BEFORE = "x = " + "(" * 90 + "1" + ")" * 90
OUTCOMES = ("failed", "unreadable", "limit")


def change(notebook):
    from nbformat.v4 import new_code_cell

    texts = ("x = " + "-" * 5_000 + "1", "x = " + "a." * 20_000 + "a", "f'" + "{" * 3_000 + "'", "[" * 5_000,
             "lambda: " * 3_000 + "0", "%%bash\n" + "$(" * 2_000, "1" * 5_000, "x = '" + "\\\\" * 100_000 + "'",
             "# " + "<" * 50_000, "\n" * 100_000 + "x")
    for n, text in enumerate(texts):
        notebook.cells.insert(2, new_code_cell(text, id=f"mine-{n}"))
