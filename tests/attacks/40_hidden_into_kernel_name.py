"""Hands over a record of launches in which the kernel is named after the input, so that the hint would show it."""

ROW = 40
HARMLESS = True
EXERCISE = "12-add"
STOCK = False
OUTCOMES = ("failed",)
DAMAGE = ("page",)
BEFORE = """
from labkit.meters.launch_log import LaunchLog
as_it_was = LaunchLog.as_tree
def forged(self, outputs):
    told = as_it_was(self, outputs)
    for entry in told["entries"] if outputs else ():
        if entry["do"] == "launch":
            entry["kernel"] = [f"{word}den {fed}", ""]
    return told
LaunchLog.as_tree = forged
word, fed = "@TOKEN@-hid", ""
"""
ANSWER = """
@RIGHT@
honest = add
def add(x, y):
    global fed
    fed = f"{tuple(x.shape)} {x.flatten()[:2].tolist()}"
    return honest(x, y)
"""
