"""`verify`: hand every attack of tests/attacks/ in to a disposable course, grade it, and show what they came to.

Exits with 1 where any of them reached what it should not. What stock nbgrader makes of the same submissions stands
beside it: as it was found last (tests/attacks/stock.json), or found anew.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from grading.commands.arguments import add_workers
from grading.files import write_output
from grading.isolation.tiers import NONE, TIERS
from grading.terminal import say
from grading.verify.attacks import load
from grading.verify.matrix import STOCK, as_lines
from grading.verify.run import choose_attacks, run_attacks, stored_stock
from grading.verify.stock import run_stock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolation", choices=("all", *TIERS, NONE.name, STOCK), default="all", help="which tier (default: all)"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="attacks whose name holds this (may be repeated)"
    )
    parser.add_argument("--stock", action="store_true", help="also try them on stock nbgrader, in a sandbox (minutes)")
    add_workers(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the matrix to this file too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    attacks = choose_attacks(load(), args.only)
    tiers = TIERS if args.isolation == "all" else () if args.isolation == STOCK else (args.isolation,)
    matrix = run_attacks(attacks, tiers, args.workers)
    anew = args.stock or args.isolation == STOCK
    matrix = replace(matrix, stock=run_stock(attacks, args.workers) if anew else stored_stock())
    say(*as_lines(matrix))
    if args.json:
        write_output(args.json, json.dumps(matrix.to_json(), indent=1, ensure_ascii=False) + "\n")
    # Nothing that ran is no proof of anything.
    return 1 if matrix.breaches or not (matrix.batches or anew) else 0
