"""What a student is called on pages that all students read: a name that nobody can lead back to them without the key.

It is worked out from the course's secret and the student's name, so it is the same on every page of a course and
another one in every other course. Who is told which name is for others to decide.
"""

from __future__ import annotations

import hashlib
import hmac

from grading.course import Course

_ADJECTIVES = """
amber ashen azure brisk bronze calm clear copper coral crimson dusky early fleet gentle golden hazel indigo ivory jade
lively lunar mellow misty noble olive quiet rapid ruby silver sunny violet winter
"""
_ANIMALS = """
badger bear beaver bison crane curlew deer dolphin eagle egret falcon finch fox gannet hare hawk heron ibex kestrel lark
linnet lynx marten martin newt orca osprey otter owl panda petrel pika plover puffin quail raven robin salmon seal
shrike siskin skua snipe sparrow stoat stork swallow swan swift teal tern thrush toad trout turtle vole warbler weasel
whale whelk wolf wombat wren yak
"""
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Without those that are taken for others. Five of them, and the words, are 2**36 names."""
_N_LETTERS = 5


def pseudonym_of(course: Course, student: str) -> str:
    """ "amber-heron-7f3kq". Raises UserError where the course has lost its key."""
    digest = hmac.digest(course.key(), b"pseudonym\0" + student.encode("utf-8", "surrogateescape"), hashlib.sha256)
    number = int.from_bytes(digest)
    parts = []
    for choices, n_drawn in ((_ADJECTIVES.split(), 1), (_ANIMALS.split(), 1), (_LETTERS, _N_LETTERS)):
        drawn = ""
        for _ in range(n_drawn):
            number, place = divmod(number, len(choices))
            drawn += choices[place]
        parts.append(drawn)
    return "-".join(parts)
