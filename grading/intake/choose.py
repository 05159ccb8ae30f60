"""From all that arrived to at most one notebook for each student: the newest that can be told apart from the others.

Only names, numbers and times are looked at; whether the file is a notebook is found when it is accepted.
"""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from dataclasses import dataclass, field

from grading.files import Unreadable
from grading.intake.arrived import Arrivals, ArrivedFile, Refusal, RefusedFile
from grading.intake.gradescope import GRADESCOPE, METADATA, find_metadata, read_export
from grading.intake.names import folded, wrong_with_student
from grading.intake.platform import UNTIMED, Sender, guess, is_lab_name, sender_by, sender_of, wrapper_of
from grading.intake.repositories import REPOSITORIES
from grading.intake.roster import Roster
from grading.intake.secret import MOST_BYTES as MOST_SECRET_BYTES
from grading.intake.secret import SECRET, parse_secret
from grading.intake.timestamp import AS_IT_SHOULD_BE, MOST_BYTES, TIMESTAMP, parse_time


@dataclass(frozen=True)
class ReadingOptions:
    """How to read names and times. `platform` None: guess it. `times`: "auto", "files" or "none".

    archive: what the archive is called, after which a folder around all of it may be called too.
    """

    platform: str | None = None
    pattern: re.Pattern | None = None
    roster: Roster | None = None
    times: str = "auto"
    archive: str = ""


@dataclass(frozen=True)
class Candidate:
    """What counts for a student; `file` is the name they gave it. `when` is in UTC; `attempt` 0: not numbered.

    secret: what nbgrader's exchange knows the feedback on it by, "" where it came another way.

    Candidate("Ada Lovelace", ArrivedFile(…), "02_float_formats.ipynb", "moodle", when=None, attempt=0, late=False)
    """

    student: str
    entry: ArrivedFile
    file: str
    platform: str
    when: datetime.datetime | None
    attempt: int
    late: bool
    secret: str = ""


@dataclass
class Choice:
    """Who has what; `passed_over` are older attempts and files that are no notebooks of those who have one."""

    platform: str
    candidates: list[Candidate] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    passed_over: list[RefusedFile] = field(default_factory=list)


def choose(arrivals: Arrivals, lab: str, options: ReadingOptions) -> Choice:
    """One candidate for each student, in the order of their names. Raises UserError where the platform is unclear."""
    paths = [entry.path for entry in arrivals.entries if _is_notebook(entry)]
    platform = options.platform or ("plain" if options.pattern else _guess(arrivals, paths, lab, options.archive))
    export = read_export(arrivals.entries, options.archive) if platform == GRADESCOPE else None
    is_wrapped = not (options.pattern or export or platform == REPOSITORIES)
    wrapper = wrapper_of(paths, platform, lab, options.archive) if is_wrapped else ""
    choice = Choice(platform, refused=list(arrivals.refused))
    groups: dict[str, list[tuple[Sender, ArrivedFile]]] = defaultdict(list)
    spelled: dict[str, set[str]] = defaultdict(set)
    beside: dict[str, dict[str, ArrivedFile]] = defaultdict(dict)
    for entry in arrivals.entries:
        below = entry.path.removeprefix(wrapper)
        if platform == "plain" and not options.pattern and _is_nbgraders(below, lab):
            beside[entry.folder][entry.name] = entry
            continue
        if export and entry.path == f"{export.top}{METADATA}":
            continue
        try:
            for sender in export.senders(entry.path) if export else [_sender(below, lab, platform, options)]:
                student = _student(sender, options)
                groups[student].append((sender, entry))
                spelled[folded(student)].add(student)
        except Refusal as error:
            choice.refused.append(RefusedFile(entry.path, str(error)))
    for student in sorted(groups):
        try:
            if len(spelled[folded(student)]) > 1:
                names = ", ".join(sorted(spelled[folded(student)]))
                raise Refusal(f"these students' names differ only in case or in how letters are encoded: {names}")
            choice.candidates.append(_newest(student, groups[student], lab, platform, options, beside, choice))
        except Refusal as error:
            choice.refused += [RefusedFile(entry.path, str(error)) for _, entry in groups[student]]
    return choice


def _is_notebook(entry: ArrivedFile) -> bool:
    return entry.name.lower().endswith(".ipynb")


def _is_nbgraders(below: str, lab: str) -> bool:
    """Whether it is what nbgrader puts beside a notebook, in STUDENT/LAB; elsewhere such a name is a student's."""
    return below.split("/")[1:] in ([lab, TIMESTAMP], [lab, SECRET])


def _guess(arrivals: Arrivals, paths: list[str], lab: str, archive: str) -> str:
    return GRADESCOPE if find_metadata(arrivals.entries, archive) else guess(paths, lab, archive)


def _sender(below: str, lab: str, platform: str, options: ReadingOptions) -> Sender:
    """By the path below the wrapper. Raises Refusal where nobody can tell."""
    sender = sender_by(options.pattern, below) if options.pattern else sender_of(below, platform, lab)
    if sender is None:
        how = (
            "the pattern does not fit its name"
            if options.pattern
            else f"its name does not follow the way of {platform}"
        )
        raise Refusal(f"nobody can tell whose it is: {how} (--platform and --pattern say another)")
    return sender


def _student(sender: Sender, options: ReadingOptions) -> str:
    """Their id in the course. Raises Refusal where the roster has none, or nobody can have it."""
    student = options.roster.student(sender) if options.roster else sender.student
    if wrong := wrong_with_student(student):
        raise Refusal(f"{wrong}: map it with --roster")
    return student


def _newest(
    student: str,
    found: list[tuple[Sender, ArrivedFile]],
    lab: str,
    platform: str,
    options: ReadingOptions,
    beside: dict[str, dict[str, ArrivedFile]],
    choice: Choice,
) -> Candidate:
    """The newest notebook of one student. Raises Refusal for two people under one id, and where two are as new."""
    people = {sender.person for sender, _ in found}
    if len(people) > 1:
        names = " and ".join(sorted(" ".join(part for part in person if part) for person in people))
        raise Refusal(f'two people are "{student}" here: {names}. Tell them apart with --roster')
    candidates = [
        Candidate(
            student,
            entry,
            sender.file,
            platform,
            _when(sender, entry, platform, options, beside[entry.folder].get(TIMESTAMP)),
            sender.attempt,
            sender.late,
            _secret(beside[entry.folder].get(SECRET)),
        )
        for sender, entry in found
        if _is_notebook(entry)
    ]
    if not candidates:
        raise Refusal("it is not a notebook (.ipynb), and there is no other file of this student")
    candidates.sort(key=lambda candidate: _rank(candidate, lab))
    best = candidates[-1]
    if len(candidates) > 1 and _rank(candidates[-2], lab) == _rank(best, lab):
        names = ", ".join(candidate.entry.name for candidate in candidates)
        raise Refusal(f"{len(candidates)} notebooks of one student, and nothing tells which is the newest: {names}")
    older = [RefusedFile(candidate.entry.path, f"{best.entry.name} counts") for candidate in candidates[:-1]]
    others = [RefusedFile(entry.path, "it is not a notebook") for _, entry in found if not _is_notebook(entry)]
    choice.passed_over += older + others
    return best


def _rank(candidate: Candidate, lab: str) -> tuple:
    """By name first: a later scratch notebook beside the lab is not the lab."""
    when = candidate.when or datetime.datetime.min.replace(tzinfo=datetime.UTC)
    return is_lab_name(candidate.file, lab), candidate.attempt, when


def _when(
    sender: Sender, entry: ArrivedFile, platform: str, options: ReadingOptions, stamp: ArrivedFile | None
) -> datetime.datetime | None:
    if stamp and options.times != "none" and entry.folder:
        return _stamped(stamp)
    if options.times == "none" or (options.times == "auto" and platform in UNTIMED):
        return None
    return sender.when if platform == GRADESCOPE else entry.when


def _stamped(stamp: ArrivedFile) -> datetime.datetime:
    """The time in nbgrader's own timestamp.txt. Raises Refusal where it is no time."""
    try:
        if stamp.size_bytes > MOST_BYTES:
            raise Unreadable(f"{stamp.path} has more than {MOST_BYTES} bytes: {AS_IT_SHOULD_BE}")
        return parse_time(stamp.read(), stamp.path)
    except Unreadable as error:
        raise Refusal(str(error)) from error


def _secret(file: ArrivedFile | None) -> str:
    return parse_secret(file.read()) if file and file.size_bytes <= MOST_SECRET_BYTES else ""
