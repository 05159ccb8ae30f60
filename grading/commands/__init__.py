"""The command line, one module a command: `add_arguments(parser)` declares it, `run(args)` does it. A command's
name and its line of help stand in `grading/__main__.py`, which imports only the one it runs.

Exit codes: 0 all done; 1 the course is fine but something in it needs a person; 2 a request that cannot be done,
with what to do instead; 130 interrupted, and a rerun goes on from there.
"""
