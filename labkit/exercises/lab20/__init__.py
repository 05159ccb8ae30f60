"""Lab 20, the capstone: what is asked, given and run."""

ORDER = ("budget", "ablation", "referee")
