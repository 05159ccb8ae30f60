"""Gradescope's export ("Download Submissions"): a folder for each submission, and one file that says whose each is.

    assignment_8046601_export/submission_metadata.yml
    assignment_8046601_export/submission_409194023/02_float_formats.ipynb

The file, in YAML with Ruby's names, has for each folder who handed it in (name, e-mail, id) and when. Of it, only this
is read: it also holds what an autograder printed, which a student may have written. Without a roster the student is the
e-mail address. What a group handed in counts for each of its members.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from grading.aside import do_aside
from grading.errors import UserError
from grading.files import Unreadable
from grading.intake.arrived import ArrivedFile, Refusal
from grading.intake.platform import Sender
from grading.intake.timestamp import parse_time

GRADESCOPE = "gradescope"
METADATA = "submission_metadata.yml"
EXPORT = re.compile(r"assignment_[0-9]+_export")
SUBMISSION = re.compile(r"submission_(?P<number>[0-9]{1,18})")


@dataclass(frozen=True)
class Submission:
    """Who handed in one folder, as (name, email, sid), and when, as it stands there.

    Submission((("Ada Lovelace", "ada@example.edu", "1815"),), "2026-04-26 17:34:00.861687000 Z")
    """

    people: tuple[tuple[str, str, str], ...]
    created_at: str


@dataclass(frozen=True)
class Export:
    """An export's top folder, with a "/" at its end where there is one, and its submissions by the folder's name."""

    top: str
    submissions: dict[str, Submission]

    def senders(self, path: str) -> list[Sender]:
        """Who a path is from, one for each member of a group. Raises Refusal where the export does not say."""
        folder, _, rest = path.removeprefix(self.top).partition("/")
        found = self.submissions.get(folder)
        if not path.startswith(self.top) or not rest:
            raise Refusal("it lies in no submission's folder")
        if found is None:
            raise Refusal(f"{METADATA} says nothing of {folder}: download the export again")
        if not found.people:
            raise Refusal(f"{METADATA} names nobody for {folder}: assign the submission to a student in Gradescope")
        name = SUBMISSION.fullmatch(folder)
        attempt, when = int(name["number"]) if name else 0, _when(found.created_at, folder)
        return [_sender(person, rest.rpartition("/")[2], attempt, when) for person in found.people]


def find_metadata(entries: Sequence[ArrivedFile], archive: str) -> ArrivedFile | None:
    """The export's own file of that name; None where this is no such export.

    Deeper in, a file of that name is a student's: a folder around everything has Gradescope's name or the archive's.
    """
    tops = [entry for entry in entries if entry.name == METADATA and _is_top(entry.folder, archive)]
    return tops[0] if len(tops) == 1 else None


def read_export(entries: Sequence[ArrivedFile], archive: str) -> Export:
    """Read what Gradescope says of its export. Raises UserError where it says nothing that can be read."""
    entry = find_metadata(entries, archive)
    if entry is None:
        remedy = "give the export as downloaded (Download Submissions), or --platform plain"
        raise UserError(f"there is no {METADATA} at the top", remedy)
    try:
        submissions = do_aside(entry.path, parse_metadata, entry.read())
    except (Refusal, Unreadable) as error:
        raise UserError(f"{entry.path} cannot be read ({error})", "download the export again") from error
    return Export(f"{entry.folder}/" if entry.folder else "", submissions)


def parse_metadata(data: bytes) -> dict[str, Submission]:
    """The submissions by their folder's name. Raises Unreadable where it is not YAML or not of that form.

    Texts stay texts and no tag is heeded: nothing is made of them that YAML could ask for.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        top = yaml.compose(data, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Unreadable(f"it is not YAML: {' '.join(str(error).split())}"[:200]) from error
    if not isinstance(top, yaml.MappingNode):
        raise Unreadable("it has no submissions")
    return {_text(key): _submission(value) for key, value in top.value if SUBMISSION.fullmatch(_text(key))}


def _submission(node: yaml.Node) -> Submission:
    people = _get(node, "submitters")
    persons = people.value if isinstance(people, yaml.SequenceNode) else []
    created_at = _get(node, "created_at")
    if isinstance(created_at, yaml.MappingNode):
        # Ruby's own class for a time writes it in universal time and in the course's.
        created_at = _get(created_at, "utc")
    who = tuple(tuple(_text(_get(person, name)) for name in ("name", "email", "sid")) for person in persons)
    return Submission(who, _text(created_at))


def _get(node: yaml.Node, name: str) -> yaml.Node | None:
    """What stands under `:name` or `name`."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in pairs if _text(key) in (f":{name}", name)), None)


def _text(node: yaml.Node | None) -> str:
    is_null = node is None or node.tag == "tag:yaml.org,2002:null"
    return node.value.strip() if isinstance(node, yaml.ScalarNode) and not is_null else ""


def _is_top(folder: str, archive: str) -> bool:
    return (
        not folder or EXPORT.fullmatch(folder) is not None or (folder == archive and not SUBMISSION.fullmatch(folder))
    )


def _when(created_at: str, folder: str) -> datetime.datetime | None:
    try:
        return parse_time(created_at.encode(), f"the time of {folder}") if created_at else None
    except Unreadable as error:
        raise Refusal(f"{METADATA}: {error}") from error


def _sender(person: tuple[str, str, str], file: str, attempt: int, when: datetime.datetime | None) -> Sender:
    name, email, sid = person
    return Sender(name, sid, email or sid, file, attempt, email=email, when=when)
