"""Has IPython erase every line that checks something, before it runs."""

ROW = 4
HARMLESS = True
BEFORE = """
shell = get_ipython()
shell.input_transformers_cleanup.append(
    lambda lines: [line for line in lines if not line.startswith(("check", "assert"))])
shell.input_transformers_post.append(
    lambda lines: [line for line in lines if not line.startswith(("check", "assert"))])
"""
