"""Text cells that take a converter to HTML for ever."""

HARMLESS = True
DAMAGE = ("page",)
STOCK = False


def change(notebook):
    from nbformat.v4 import new_markdown_cell

    for n, text in enumerate(("[" * 5_000, "*a " * 20_000, "> " * 2_000 + "x", "![" * 5_000, "`" * 9_999 + " x", "<" * 20_000, "$" * 20_001)):
        notebook.cells.insert(2, new_markdown_cell(text, id=f"mine-{n}"))
