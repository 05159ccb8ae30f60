"""An honest answer that warns, logs and writes to stderr at every call."""

ROW = 31
HARMLESS = True
BEFORE = "import logging, sys, warnings"
ANSWER = """
@RIGHT@
quiet = rms
def rms(x, dim):
    warnings.warn("deprecated", DeprecationWarning)
    logging.error("loud")
    print("noise", file=sys.stderr)
    return quiet(x, dim)
"""
EARNS = LEAST = 1.0
