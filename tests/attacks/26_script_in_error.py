"""HTML in an exception's text, its type's name and the line that raised it."""

ROW = 26
HARMLESS = True
DAMAGE = ("page",)
BEFORE = """
Evil = type("<img src=x onerror=alert('@TOKEN@')>", (Exception,), {})
raise Evil("</pre></div><script>alert('@TOKEN@')</script>")
"""
ANSWER = """
def rms(x, dim):
    raise ValueError("</pre></div><svg onload=alert('@TOKEN@')><script>alert('@TOKEN@')</script>")
"""
