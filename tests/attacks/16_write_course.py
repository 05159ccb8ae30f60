"""Changes the released and the source notebook, a classmate's submission and the configuration."""

ROW = 16
DAMAGE = ("files",)
BEFORE = """
import glob
wrote = []
for path in glob.glob("@COURSE@/*.py") + glob.glob("@COURSE@/*/*/*.ipynb") + glob.glob("@COURSE@/submitted/mmm-*/*/*"):
    try:
        with open(path, "a") as file:
            file.write(" ")
    except OSError as error:
        print(error)
    else:
        print("!breach! wrote", path)
if not glob.glob("@COURSE@/*"):
    raise FileNotFoundError("there is no course")
"""
