"""Who is in the sample class, and how each of them does the labs. The names are as odd as real ones.

The order matters: a smaller class is the first so many of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from grading.demo import handins
from grading.demo.answers import LabAnswers
from grading.demo.handins import DemoSubmission

Behaviour = Callable[[LabAnswers, Random], DemoSubmission]


@dataclass(frozen=True)
class DemoStudent:
    """does: what is done in every lab; in_last: what is done in the last lab instead; late by so many days.

    waits: the person who grades by hand has not come to this one yet.
    """

    name: str
    kind: str
    does: Behaviour
    in_last: Behaviour | None = None
    days_late: int = 0
    skips_last: bool = False
    waits: bool = False


PERFECT, BLANK = "all solved", "left blank"
_ROSTER = (
    DemoStudent("ada.lovelace", PERFECT, handins.perfect),
    DemoStudent("Zoë Blank", BLANK, handins.blank),
    DemoStudent("Ñandú Özgür", "partly wrong", handins.partly_wrong),
    DemoStudent("=SUM(A1)", "noisy on stderr", handins.noisy),
    DemoStudent("-rf", "file broke off", handins.perfect, in_last=handins.truncated),
    DemoStudent("O'Brien, Pat", "syntax error", handins.syntax_error),
    DemoStudent("李雷", "partly wrong", handins.partly_wrong),
    DemoStudent("li-wei.chen", "cell pasted twice", handins.duplicated_cell),
    DemoStudent("Łukasz Żak", "endless loop", handins.perfect, in_last=handins.endless_loop),
    DemoStudent("van der Berg, Jo", "two days late", handins.perfect, days_late=2),
    DemoStudent("@grace", "last lab missing", handins.perfect, skips_last=True),
    DemoStudent("María José Núñez", "in their own style", handins.own_style, waits=True),
    DemoStudent("100% Kim", "answer cell renamed", handins.perfect, in_last=handins.renamed_cell),
    DemoStudent("jan & piet", "check cells deleted", handins.deleted_check),
    DemoStudent("Дмитрий", "partly wrong", handins.partly_wrong),
    DemoStudent("kwame <b>", "ends the process", handins.ends_the_process),
    DemoStudent("अदिति", "partly wrong", handins.partly_wrong),
    DemoStudent("emil#3", "partly wrong", handins.partly_wrong),
    DemoStudent("yuki;tanaka", "partly wrong", handins.partly_wrong),
    DemoStudent("Ørsted Å", PERFECT, handins.perfect),
    DemoStudent("עדי כהן", "partly wrong", handins.partly_wrong),
    DemoStudent("bo", BLANK, handins.blank),
    DemoStudent("+49 170", "partly wrong", handins.partly_wrong),
    DemoStudent("sam.o'neill", "partly wrong", handins.partly_wrong),
)
SMALLEST, FULL = 2, len(_ROSTER)


def roster(n_students: int) -> list[DemoStudent]:
    """The first so many; beyond the named ones they are numbered."""
    more = range(FULL + 1, n_students + 1)
    numbered = [DemoStudent(f"student {n:04d}", "partly wrong", handins.partly_wrong) for n in more]
    return [*_ROSTER[:n_students], *numbered]
