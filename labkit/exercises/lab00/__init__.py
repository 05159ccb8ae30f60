"""Lab 00, start here: what is asked, fed and run."""

ORDER = ("warm-up",)
