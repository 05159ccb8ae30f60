"""The command line, one module a command: `add_parser(subparsers)` declares it, `run(args)` does it. `jobs` and
`shared` serve several.

Exit codes: 0 all done; 1 the course is fine but something in it needs a person; 2 a request that cannot be done,
with what to do instead; 130 interrupted, and a rerun goes on from there.
"""
