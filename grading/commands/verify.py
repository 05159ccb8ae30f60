"""`verify`: hand every attack of tests/attacks/ in to a disposable course, grade it, and show what they came to.

Exits with 1 where any of them reached what it should not. What stock nbgrader makes of the same submissions stands
beside it: as it was found last (tests/attacks/stock.json), or found anew.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from grading.errors import UserError
from grading.files import write_output
from grading.isolation import isolates, select_tier
from grading.isolation.tiers import NONE, TIERS
from grading.terminal import say
from grading.verify.attacks import FOLDER, Attack, load
from grading.verify.batch import run_batch
from grading.verify.matrix import STOCK, Matrix, as_text
from grading.verify.stock import run_stock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolation", choices=("all", *TIERS, NONE.name, STOCK), default="all", help="which tier (default: all)"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="attacks whose name holds this (may be repeated)"
    )
    parser.add_argument("--stock", action="store_true", help="also try them on stock nbgrader, in a sandbox (minutes)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="submissions graded at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the matrix to this file too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    attacks = chosen(load(), args.only)
    tiers = TIERS if args.isolation == "all" else () if args.isolation == STOCK else (args.isolation,)
    matrix = verify(attacks, tiers, args.workers)
    anew = args.stock or args.isolation == STOCK
    matrix = replace(matrix, stock=run_stock(attacks, args.workers) if anew else stored_stock())
    say(as_text(matrix))
    if args.json:
        write_output(args.json, json.dumps(matrix.to_json(), indent=1, ensure_ascii=False) + "\n")
    # Nothing that ran is no proof of anything.
    return 1 if matrix.breaches or not (matrix.batches or anew) else 0


def stored_stock() -> dict[str, str]:
    """What stock nbgrader made of the attacks when that was last tried; nothing where it was not."""
    path = FOLDER / "stock.json"
    return json.loads(path.read_text(encoding="utf-8"))["stock"] if path.is_file() else {}


def chosen(attacks: list[Attack], only: list[str] | None) -> tuple[Attack, ...]:
    """The attacks whose name holds one of these. Raises UserError where there is none."""
    found = tuple(attack for attack in attacks if not only or any(name in attack.name for name in only))
    if not found:
        raise UserError(f"no attack has {' or '.join(only or [])} in its name", "ls tests/attacks")
    return found


def verify(attacks: tuple[Attack, ...], tiers: tuple[str, ...], workers: int) -> Matrix:
    """Run the attacks under each tier that works here. Without isolation, only those that harm no machine run."""
    batches, not_run = {}, {}
    for tier in tiers:
        try:
            select_tier(tier)
        except UserError as error:
            not_run[tier] = str(error)
            continue
        safe = [attack for attack in attacks if isolates(tier) or attack.harmless]
        if len(safe) < len(attacks):
            not_run[tier] = f"{len(attacks) - len(safe)} attacks would harm this machine without isolation"
        if safe:
            with tempfile.TemporaryDirectory(prefix="grading-verify-", ignore_cleanup_errors=True) as root:
                # The one who is confined is another user, who has to get through to what is there for everybody.
                os.chmod(root, 0o755)
                batches[tier] = run_batch(safe, tier, Path(root), workers)
    return Matrix(attacks, batches, not_run)
