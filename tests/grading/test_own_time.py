"""What a submission makes the supervisor itself work on has an end, also where Python cannot stop it."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

import grading.supervisor.run as runs
import grading.supervisor.verdicts as verdicts
from grading.isolation.tiers import NONE
from grading.supervisor import own_time
from grading.supervisor.cases import CaseSet
from grading.supervisor.transcript import Transcript
from labkit import exercises
from labkit.check.verdict import Verdict


def spin(*_args: object, **_options: object) -> None:
    while True:
        try:
            sum(range(1000))
        except Exception:
            continue


def verdict_of(judge, monkeypatch) -> Verdict:
    monkeypatch.setattr(verdicts, "judge", judge)
    exercise = exercises.find("00-warm-up")
    return verdicts.judge_hidden(exercise, Transcript(exercises={exercise.id: []}), CaseSet(()))


def test_a_verdict_that_takes_too_long_is_a_persons_to_make(monkeypatch) -> None:
    monkeypatch.setattr(own_time, "VERDICT_S", 0.2)
    found = verdict_of(spin, monkeypatch)
    assert (found.outcome, found.score) == ("suspected", 0.0)
    assert found.rows == (("problem", "judging what came back took more than 0.2 s of cpu time"),)


def test_what_a_verdict_quotes_is_cut(monkeypatch) -> None:
    long = Verdict("00-warm-up", "failed", 0.0, "no", (("got", "x" * 10**6),))
    ((_, text),) = verdict_of(lambda *_args, **_options: long, monkeypatch).rows
    assert text == "x" * verdicts.MAX_ROW + " ..."


def test_so_does_all_work_on_one_submission(monkeypatch) -> None:
    closed = []
    monkeypatch.setattr(own_time, "SUBMISSION_S", 0.2)
    monkeypatch.setattr(runs, "_graded", spin)
    monkeypatch.setattr(runs, "close_sandboxes", lambda: closed.append(True))
    with pytest.raises(own_time.TookTooLong, match=r"took more than 0\.2 s of cpu time") as caught:
        runs.run(SimpleNamespace(), NONE)
    assert closed == [True], "what it was stopped at would meet the next submission"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("thread", [False, True])
def test_where_python_cannot_stop_it_the_process_ends(thread: bool) -> None:
    """A regular expression hands control back when it is done, which this one would be in a thousand years."""
    work = "re.match('(a+)+$', 'a' * 60 + 'b')"
    if thread:
        work = f"it = threading.Thread(target=lambda: {work}); it.start(); it.join()"
    code = f"import re, threading; from grading.supervisor.own_time import *\nwith process_limit(0.2): {work}"
    ended = subprocess.run([sys.executable, "-c", code], timeout=280)
    assert ended.returncode == -signal.SIGVTALRM


def test_and_else_it_goes_on() -> None:
    with own_time.process_limit(0.2):
        pass
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
