"""HTML and JavaScript in what a cell prints and shows."""

ROW = 26
HARMLESS = True
DAMAGE = ("page",)
BEFORE = """
from IPython.display import HTML, SVG, Javascript, Markdown, display
evil = "<script>document.title='@TOKEN@'</script><img src=x onerror=\\"document.title='@TOKEN@'\\">"
print(evil)
display(HTML(evil), Markdown(evil), Javascript("document.title='@TOKEN@'"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload=\\"document.title='@TOKEN@'\\"></svg>"))
display({"text/html": evil, "application/javascript": "'@TOKEN@'", "text/latex": "$\\\\href{javascript:'@TOKEN@'}{x}$",
         "application/vnd.jupyter.widget-view+json": {"model_id": "@TOKEN@", "version_major": 2}}, raw=True)
HTML(evil)
"""
