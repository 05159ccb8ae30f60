"""`python -m grading COMMAND`: build the notebooks, run a course, grade it, report."""

from __future__ import annotations

import argparse
import errno
import sys

import grading.build.cli
from grading.commands import (
    audit,
    bundle,
    collect,
    course,
    demo,
    doctor,
    explain,
    export,
    feedback,
    grade,
    report,
    verify,
)
from grading.commands.shared import say
from grading.errors import UserError

COMMANDS = (
    grading.build.cli,
    bundle,
    course,
    collect,
    grade,
    feedback,
    export,
    report,
    audit,
    explain,
    doctor,
    verify,
    demo,
)

DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grading", description="The instructor's side of the labs.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(subparsers)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except UserError as error:
        print(f"grading: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in DISK_TROUBLE:
            raise
        where = f" ({error.filename})" if error.filename else ""
        print(f"grading: {error.strerror}{where}: mend that and run the same command again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        say("interrupted: nothing that was finished is lost; run the same command again to go on")
        return 130


if __name__ == "__main__":
    sys.exit(main())
