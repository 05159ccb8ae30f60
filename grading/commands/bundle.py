"""`bundle [--out FILE]`: write the archive that students get."""

from __future__ import annotations

import argparse
from pathlib import Path

from grading import own_labs
from grading.build.bundle import NAME, make_bundle
from grading.terminal import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FILE", default=Path(f"{NAME}.zip"), help=f"the archive (default: {NAME}.zip)"
    )
    parser.add_argument(
        "--own", type=Path, action="append", default=[], metavar="FOLDER", help="also with the labs of this folder"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    own_labs.use(args.own)
    n_files = make_bundle(args.out)
    say(f"{args.out}: {n_files} files for students")
    return 0
