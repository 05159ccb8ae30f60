"""Arguments that several commands have, under one name and with one help each: the course, a lab, a student, isolation.

What a command makes of them is its own business.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from grading.isolation import CHOICES

LAB_HELP = '"02" or "02_float_formats"'


def add_course(parser: argparse.ArgumentParser, text: str = "the course's folder") -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help=text)


def add_lab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lab", metavar="LAB", help=LAB_HELP)


def add_student(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("student", metavar="STUDENT", help="their id in the course")


def add_isolation(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--isolation", choices=CHOICES, default="auto", help=text)


def add_workers(parser: argparse.ArgumentParser, text: str = "submissions graded at a time") -> None:
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help=f"{text} (default: one for each core, here {os.cpu_count() or 1})",
    )


def add_section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--section", action="append", metavar="NAME", help="only this section of roster.csv (may be given again)"
    )
