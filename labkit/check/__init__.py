"""Check an answer beside the notebook: run the public cases, judge them, say what is wrong and why.

`api` is what a notebook calls, and needs torch; `verdict` and how it is shown, in `text` and `html`, do not.
"""
