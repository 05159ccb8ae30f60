"""Modules beside the notebook with the names of those that the grader imports, and start files of Python's."""

HARMLESS = True
DAMAGE = ("leftovers",)


def folder(path, places):
    evil = f"import os\nopen('/tmp/{places['TOKEN']}', 'w').close()\nopen('{places['HOME']}/{places['TOKEN']}', 'w').write('{places['TOKEN']}')\n"
    for name in ("torch", "numpy", "nbformat", "sitecustomize", "usercustomize", "grading", "labkit", "json", "nbgrader_config"):
        (path / f"{name}.py").write_text(evil)
    (path / "evil.pth").write_text("import os; os.system('touch /tmp/" + places["TOKEN"] + "')\n")
    (path / "labkit").mkdir()
    (path / "labkit" / "__init__.py").write_text(evil + "def check(*args): pass\n")
    (path / ".nbgrader.log").write_text("x")
    (path / "jupyter_nbconvert_config.py").write_text(evil)
