"""HTML, links, pictures, attachments and raw cells in text cells, added and in place of the given ones."""

ROW = 26
HARMLESS = True
DAMAGE = ("page",)


def change(notebook):
    from nbformat.v4 import new_markdown_cell, new_raw_cell

    evil = (
        "<script>'@TOKEN@'</script> <img src=x onerror=\"'@TOKEN@'\"> <svg onload=\"'@TOKEN@'\"></svg>\n\n"
        "[link](javascript:'@TOKEN@') ![image](javascript:'@TOKEN@') <javascript:'@TOKEN@'>\n\n"
        "![seen](https://example.org/@TOKEN@.png) [![seen](http://127.0.0.1:8888/logout?@TOKEN@)](https://example.org)\n\n"
        "<details open ontoggle=\"'@TOKEN@'\"> <a href=\"data:text/html,<script>'@TOKEN@'</script>\">x</a>\n\n"
        "$\\href{javascript:'@TOKEN@'}{x}$ <style>body{display:none} /*@TOKEN@*/</style>\n\n"
        "<\u200bscript>'@TOKEN@'</script> <SCRIPT/x>'@TOKEN@'</SCRIPT> <math><mtext><img src=x onerror=\"'@TOKEN@'\">"
    )
    notebook.cells.insert(1, new_markdown_cell(evil, id="mine-text"))
    raw = new_raw_cell(evil, id="mine-raw")
    raw.metadata["format"] = raw.metadata["raw_mimetype"] = "text/html"
    notebook.cells.insert(2, raw)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = evil + cell.source
            cell.attachments = {"x.svg": {"image/svg+xml": "<svg onload=\"'@TOKEN@'\"/>"}}
