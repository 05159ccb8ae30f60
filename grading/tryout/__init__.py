"""What becomes of an answer that an author trusts: on the public cases, and on the hidden ones of many draws.

Nothing is isolated and no grade is made here: see `supervisor`.
"""
