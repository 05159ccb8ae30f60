"""Every frame arrives as it was sent, and whatever else comes is a WireError that says what was due."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from dataclasses import fields

import pytest
import torch

from grading.worker.protocol import control, job, ranks, rerun, steps, store
from grading.worker.protocol.steps import RunCode, RunTest, ServeExercise, step_from_tree, step_to_tree
from grading.worker.seal import Seal
from grading.worker.wire.frames import Channel
from grading.worker.wire.typed import Frame, WireError
from labkit.spec import Case, Observation, Trouble
from labkit.tree import same

X = torch.arange(6.0)
PACKED = {"shape": [2], "dtype": "float32", "bytes": torch.zeros(8, dtype=torch.uint8)}
STEPS = (RunCode("a", "x = 1"), RunTest("t", "x"), ServeExercise("e-check", "e", {"script": "pass"}))
FRAMES: list[Frame] = [
    *(job.StartJob(STEPS, True), job.Begins(), job.Go(), job.At("a"), job.Ready(), job.ThreadsAreRunning()),
    *(job.CellEnded(True, None, "3\n", None), job.CellEnded(False, "NameError: no", "", "1.0")),
    *(
        job.RunCase({"n_rows": 4}, {"x": X}, False),
        job.RunCase({}, None, True, 1, 2),
        job.RunCase({}, None, False, job=1),
    ),
    job.Observed({"out": X}, {"peak_bytes": 64.0}, None),
    job.Observed(None, {}, Trouble("raised", "ValueError: no", "line 3"), {"x": X}, {"entries": []}),
    job.Observed({"out": X}, {"peak_bytes": 64.0}, None, held={"peak_bytes": ["24 B: 6 float32", "y = x + 1"]}),
    *(job.Probe("ops", 37), job.Probed({"flops": 74.0}), job.Done(), job.ExerciseOver("SIGSEGV"), job.JobOver()),
    *(ranks.Send(1, PACKED), ranks.Receive(0), ranks.Compute(0.25), ranks.WaitSent(1, 0), ranks.Barrier()),
    ranks.WaitReceived(0, 0, {"shape": [2], "dtype": "float32"}),
    *(
        ranks.Barrier([0, 2]),
        ranks.Enter("all_reduce", [PACKED], "sum", None, None, [0, 2]),
        ranks.WaitCollective(0),
        ranks.Now(),
    ),
    *(ranks.Mark("between layers", 4096), ranks.Mark("before")),
    *(ranks.Answer(0.75), ranks.Answer([PACKED]), ranks.Answer(), ranks.Refused("no"), ranks.Over()),
    *(store.Write("a", torch.zeros(8, dtype=torch.uint8)), store.Rename("a", "b"), store.Read("b", 2, None)),
    *(store.ListFiles("b"), store.Stored(["b"]), store.Stored(), store.NotThere("there is no file 'a' in the store")),
    rerun.RerunKernels("x = 1", (("add", "3f", "add_1"),), (80, 90)),
    *(rerun.Started(), rerun.Loaded(), rerun.RerunCase({"entries": []}, {"x": X}), rerun.Failed("no", "UnusableLog")),
    rerun.Repeated({"out": X}, {"x": X}, {"load_bytes": 64.0}, ("sort",)),
]
DATAGRAMS: list[Frame] = [
    control.Start((control.JobPlace("/tmp/job-1", 7), control.JobPlace("/tmp/job-2", None)), ("files",), {"port": 1}),
    *(control.Start((control.JobPlace("/tmp/job-1", None),)), control.SealJob(Seal(cpu_s=2.0), 3), control.Kill()),
    *(control.ServerReady(), control.ServerFailed("no"), control.JobStarted(4711), control.JobSealed()),
    *(control.JobSealed("no"), control.JobEnded(), control.JobEnded("memory", 3.25)),
]
MODULES = (job, ranks, store, rerun, control)


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    left, right = map(Channel, socket.socketpair())
    yield left, right
    left.close()
    right.close()


def soon() -> float:
    return time.monotonic() + 20


def as_sent(frame: Frame) -> dict:
    return {item.name: getattr(frame, item.name) for item in fields(frame)}


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_a_frame_arrives_as_it_was_sent(ends, frame: Frame) -> None:
    left, right = ends
    # What is lent goes as memory, which only a worker takes.
    left.send(frame.kind, frame.to_parts(), soon())
    arrived = right.expect(type(frame), soon())
    assert type(arrived) is type(frame)
    assert same(_plain(as_sent(arrived)), _plain(as_sent(frame)))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, torch.Tensor | str | int | float) else repr(value)


@pytest.mark.parametrize("frame", DATAGRAMS, ids=lambda frame: type(frame).__name__)
def test_a_datagram_arrives_as_it_was_sent(frame: Frame) -> None:
    due = control.COMMANDS if isinstance(frame, control.COMMANDS) else control.EVENTS
    assert control.from_datagram(control.to_datagram(frame), due) == frame


def test_every_frame_is_tried_here_and_shows_a_literal() -> None:
    declared = {
        found
        for module in MODULES
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Frame) and found is not Frame
    }
    assert declared == {type(frame) for frame in (*FRAMES, *DATAGRAMS)}
    for found in (*declared, RunCode, RunTest, ServeExercise):
        assert re.search(rf"`{found.__name__}\(", found.__doc__), f"{found.__name__} shows no literal"
    for module in MODULES:
        kinds = [found.kind for found in declared if found.__module__ == module.__name__]
        assert len(kinds) == len(set(kinds)), f"{module.__name__} names two frames alike"


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_a_step_comes_back_from_its_tree(step: steps.Step) -> None:
    assert step_from_tree(step_to_tree(step)) == step


@pytest.mark.parametrize(
    ("kind", "parts", "problem"),
    [
        ("verdict", {"score": 1.0}, '"verdict" where "observed" or "exercise over" was due'),
        ("x" * 500, {}, f'"{"x" * 40}" where "observed" or "exercise over" was due'),
        ("observed", {"got": 1, "measured": {}}, '"observed" without all its parts'),
        ("observed", {"got": 1, "measured": 3, "trouble": None}, '"observed" whose parts make no sense'),
        ("observed", {"got": 1, "measured": {}, "trouble": 3}, '"observed" whose parts make no sense'),
        (
            "observed",
            {"got": 1, "measured": {}, "trouble": None, "held": ["x"]},
            '"observed" whose parts make no sense',
        ),
        ("exercise over", {}, '"exercise over" without all its parts'),
    ],
)
def test_what_was_not_due_is_refused(ends, kind: str, parts: dict, problem: str) -> None:
    left, right = ends
    left.send(kind, parts, soon())
    with pytest.raises(WireError) as refused:
        right.expect((job.Observed, job.ExerciseOver), soon())
    assert str(refused.value) == problem


def test_what_a_worker_claims_is_cut_and_cleaned(ends) -> None:
    left, right = ends
    figures = {"flops": float("nan"), "peak_bytes": -1.0, "launches": True, "dispatches": 3}
    trouble = {"kind": "k" * 99, "text": "t" * 9_999 + "\ud800", "where": "w" * 999, "score": 1.0}
    left.send("observed", {"got": None, "measured": figures, "trouble": trouble, "passed": True}, soon())
    observed = right.expect(job.Observed, soon())
    assert observed.measured == {"dispatches": 3.0}
    assert observed.trouble == Trouble("k" * 20, "t" * 400, "w" * 200)
    left.send("cell", {"ok": 1, "error": "e" * 999, "printed": "\ud800" * 2, "value": "v" * 999}, soon())
    assert right.expect(job.CellEnded, soon()) == job.CellEnded(False, "e" * 400, "??", "v" * 100)


def test_what_figures_are_said_to_consist_of_is_cut_and_cleaned(ends) -> None:
    left, right = ends
    held = {
        "peak_bytes": ["h" * 999, "\ud800", X, 3] * 99,
        "no measure": ["x"],
        **{f"frames, {n}": [] for n in range(99)},
    }
    left.send("observed", {"got": None, "measured": {}, "trouble": None, "held": held}, soon())
    observed = right.expect(job.Observed, soon())
    assert observed.held["peak_bytes"] == ["h" * 200, "?", "<Tensor>", "3"] * 50
    assert "no measure" not in observed.held and len(observed.held) == 64


def test_what_is_no_text_is_not_written_out(ends) -> None:
    """A frame has room for 400,000 mentions of one tensor, each of which PyTorch takes a millisecond to write out."""
    left, right = ends
    mentions = [torch.ones(3)] * 2
    left.send("cell", {"ok": True, "error": {"x": mentions}, "printed": mentions, "value": 3}, soon())
    assert right.expect(job.CellEnded, soon()) == job.CellEnded(True, "<dict>", "<list>", "3")
    left.send("observed", {"got": 1, "measured": {}, "trouble": {"kind": mentions, "text": X, "where": True}}, soon())
    assert right.expect(job.Observed, soon()).trouble == Trouble("<list>", "<Tensor>", "True")


def test_inputs_that_were_not_changed_do_not_go_back() -> None:
    unchanged = Observation(Case(), {"x": X}, got=1, back={"x": X.clone()})
    assert "back" not in job.Observed.of(unchanged).to_parts()
    assert same(job.Observed.of(unchanged).back_of({"x": X}, lent=False), {"x": X})
    changed = job.Observed.of(Observation(Case(), {"x": X}, got=1, back={"x": X + 1}))
    assert same(changed.as_observation(Case(), {"x": X}, lent=False).back, {"x": X + 1})
    # What was lent is not looked at, whatever a worker claims of it.
    assert same(changed.as_observation(Case(), {"x": X}, lent=True).back, {"x": X})
