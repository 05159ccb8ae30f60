"""`site [--out DIR]`: write the course's pages as static HTML."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from grading import own_labs
from grading.errors import UserError
from grading.site.make import OUT, Wish, make_site
from grading.terminal import say

NEEDED = ("sphinx", "myst_nb", "pydata_sphinx_theme", "sphinx_design")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="where the pages go (default: build/site)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="notebooks that run at a time (default: 2)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run no notebook: show what it gave last, or nothing where it has never run",
    )
    parser.add_argument(
        "--own", type=Path, action="append", default=[], metavar="FOLDER", help="also with the labs of this folder"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"{', '.join(missing)} is missing", "make site installs it")
    own_labs.use(args.own)
    n_pages = make_site(Wish(args.out.resolve(), args.quick, args.workers), say)
    say(f"{args.out}: {n_pages} pages; open {args.out / 'index.html'}")
    return 0
