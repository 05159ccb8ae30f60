"""The secret of a submission, which nbgrader's exchange knows a feedback page by: who handed it in has the same one.

It is the student's file, so it is looked at before it is believed. What an older nbgrader handed in has none.
"""

from __future__ import annotations

import re

SECRET = "submission_secret.txt"
MOST_BYTES = 200

_AS_NBGRADER_WRITES_IT = re.compile(rb"[0-9a-f]{32,200}")


def parse_secret(data: bytes) -> str:
    """What this file holds; "" where nbgrader has not written it so."""
    return data.decode() if _AS_NBGRADER_WRITES_IT.fullmatch(data) else ""
