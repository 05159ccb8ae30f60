"""Lab 00, start here: what is asked, given and run."""

ORDER = ("warm-up",)
