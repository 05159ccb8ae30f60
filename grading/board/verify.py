"""Work the scores of a board out again: each submission runs as when it was graded, in the sandbox that grading uses.

The same hidden cases are drawn. A score is made of counts, so it comes out the same to the last digit on one set of
versions; the loss is a sum of floats, and another processor may round it otherwise. No grade changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from grading.board.entries import EXERCISE, JUDGED_ON, Candidate, entry_in
from grading.course import Course
from grading.files import Unreadable
from grading.isolation import Tier
from grading.pipeline.failure import ungraded_by
from grading.pipeline.stream import JobStream, run_all
from grading.submissions import Prepared, prepare_archived
from grading.supervisor.job import Job
from grading.supervisor.result import SubmissionResult
from grading.worker.protocol.steps import ServeExercise
from labkit.capstone import Entry

EXACT = (
    "machine",
    "virtual_hours",
    "declared_steps",
    "step_ms",
    "setup_ms",
    "peak_bytes",
    "digest",
    "changed",
    "fits",
    "reached",
)
"""What has to come out as it was stored."""


@dataclass(frozen=True)
class Verified:
    """One entry worked out again. problems: in words; empty where everything is as it was stored.

    loss_differs_by: in nats, the most of any seed; None where nothing came out. judged_on: the processor of this run.
    """

    candidate: Candidate
    problems: tuple[str, ...] = ()
    loss_differs_by: float | None = None
    judged_on: str = ""


def verify(course: Course, candidates: Sequence[Candidate], tier: Tier, workers: int = 1) -> list[Verified]:
    """Each candidate's entry, worked out again from what was handed in; in their order."""
    lab = course.lab(EXERCISE[:2])
    found: dict[str, Verified] = {}
    asked: dict[str, Candidate] = {}
    prepared = []
    for candidate in candidates:
        try:
            one = prepare_archived(course, lab, candidate.student, candidate.attempt)
        except Unreadable as error:
            found[_key(candidate)] = Verified(candidate, (f"its submission cannot be read: {error}",))
            continue
        one = replace(one, job=_with_the_contest_alone(one.job))
        asked[one.job.key] = candidate
        prepared.append(one)

    def on_result(ran: Prepared, outcome: dict | BaseException) -> None:
        candidate = asked[ran.job.key]
        found[_key(candidate)] = _compared(candidate, outcome)

    stream = JobStream(workers, None, tier.name, tier, on_result, lambda: None, lambda: False)
    run_all(stream, iter(prepared))
    return [found[_key(candidate)] for candidate in candidates]


def differences(stored: Entry, again: Entry) -> tuple[str, ...]:
    """What of an entry does not come out as it was stored, in words."""
    return tuple(
        f"{name} is {_shown(getattr(stored, name))} as stored, and {_shown(getattr(again, name))} from the script"
        for name in EXACT
        if getattr(stored, name) != getattr(again, name)
    )


def _compared(candidate: Candidate, outcome: dict | BaseException) -> Verified:
    if isinstance(outcome, BaseException):
        failed = ungraded_by(candidate.student, outcome)
        return Verified(candidate, (f"it could not be run ({failed.outcome}: {failed.reason})",))
    result = SubmissionResult.from_json(outcome)
    verdict = result.exercises[EXERCISE].deciding
    again = entry_in(verdict.record)
    if again is None:
        return Verified(candidate, (f"it earns no entry any more: {verdict.headline}",))
    stored = candidate.entry
    seeds = set(stored.losses) | set(again.losses)
    if set(stored.losses) != set(again.losses):
        return Verified(candidate, (*differences(stored, again), f"it was trained on other seeds: {len(seeds)} in all"))
    apart = max((abs(stored.losses[seed] - again.losses[seed]) for seed in seeds), default=0.0)
    return Verified(candidate, differences(stored, again), apart, str(verdict.record.get(JUDGED_ON, "")))


def _with_the_contest_alone(job: Job) -> Job:
    steps = tuple(step for step in job.steps if not isinstance(step, ServeExercise) or step.exercise_id == EXERCISE)
    return replace(job, steps=steps)


def _key(candidate: Candidate) -> str:
    return f"{candidate.student}/{candidate.attempt}"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {size:,}" for name, size in sorted(value.items()))
    return f'"{value}"' if isinstance(value, str) else str(value)


def summary(verified: Iterable[Verified], versions: Mapping[str, str], lock: str) -> list[str]:
    """Sentences that name nobody: how many scores came out, with which versions, on which processor."""
    rows = list(verified)
    good = [row for row in rows if not row.problems]
    lines = [f"{len(good)} of {len(rows)} scores come out exactly when the scripts are played again."]
    if not good:
        return lines
    packages = ", ".join(f"{name} {versions[name]}" for name in ("Python", "torch", "numpy") if name in versions)
    lines.append(f"Played again with {packages}; {lock}.")
    here = sorted({row.judged_on for row in good if row.judged_on}) or ["a processor that is not known"]
    there = sorted({row.candidate.judged_on for row in good if row.candidate.judged_on}) or here
    lines.append(f"The losses were judged on {'; '.join(there)}, and this time on {'; '.join(here)}.")
    most = max(row.loss_differs_by or 0.0 for row in good)
    lines.append(
        "Every loss agrees to the last bit."
        if most == 0
        else f"The losses differ by {most:.2g} nats per token at most, and each is on the same side of the target."
    )
    return lines
