"""Lab 20, the capstone: what is asked, given and run."""

ORDER = ("predict", "budget", "ablation", "referee", "flags")
