"""The benchmark of the kernels: all of it but the timing runs on a CPU, failures are told, a stop keeps the rest."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from benchmarks import _kernels_clock as clock
from benchmarks import _kernels_part as part
from benchmarks import kernels
from benchmarks.__main__ import scripts
from benchmarks._kernels_ops import OPS, Op, Pass
from labkit import has_gpu, interpreter

ROOT = Path(__file__).resolve().parents[2]
interpreter.enable()
on_a_cpu = pytest.mark.skipif(has_gpu(), reason="a dry run is for machines without a GPU")


HALF = [Pass("forward", 2, lambda shape: 0.5), Pass("both", 4, lambda shape: 0.5)]


def op_of(ours) -> Op:
    def inputs(shape, dtype, device):
        return [torch.linspace(-1, 1, math.prod(shape), dtype=dtype, device=device).view(shape)]

    return Op("toy", [(4, 8)], (4, 8), inputs, lambda: ours, torch.exp, HALF)


def rows_of(op: Op, tmp_path: Path) -> list[dict]:
    part.measure(op, tmp_path / "toy.json", quick=False, dry=True)
    return json.loads((tmp_path / "toy.json").read_text())["rows"]


def test_it_is_known_as_a_script_that_needs_a_gpu() -> None:
    assert scripts()["kernels"] is True


@on_a_cpu
def test_a_row_has_times_of_all_ways_and_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda fn, **options: fn)
    forward, both = rows_of(op_of(torch.exp), tmp_path)
    assert set(forward["ms"]) == {"ours", "eager", "compile", "yardstick"}
    assert all(one["n"] == 3 and one["low_ms"] <= one["median_ms"] <= one["high_ms"] for one in forward["ms"].values())
    assert (forward["bytes"], both["bytes"]) == (2 * 4 * 32, 4 * 4 * 32)
    assert forward["right"] and both["right"] and forward["difference"]["ours"] == 0
    assert not forward["errors"] and "aim_met" not in forward


@on_a_cpu
def test_a_way_that_fails_is_told_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fn, **options):
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(torch, "compile", broken)
    forward, both = rows_of(op_of(lambda x: torch.exp(x) + 1), tmp_path)
    assert forward["errors"] == {"compile": "RuntimeError: no compiler here"} and set(forward["ratio"]) == {
        "ours",
        "eager",
    }
    assert not forward["right"] and forward["difference"]["ours"] > 0.5
    assert not both["right"]


@on_a_cpu
@pytest.mark.parametrize(
    ("ours", "told"), [(torch.log, None), (lambda x: 1 / 0, "ZeroDivisionError: division by zero")]
)
def test_what_is_no_number_or_no_result_is_not_right(
    ours, told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda fn, **options: fn)
    forward, _ = rows_of(op_of(ours), tmp_path)
    assert not forward.get("right", False)
    assert forward["errors"].get("ours") == told
    assert kernels.summary({"toy": {"error": None, "rows": [forward]}})[0].endswith(
        f"FAILED, {told}" if told else "WRONG"
    )


def test_ways_take_turns_each_behind_a_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            done.append("event")

        def elapsed_time(self, end: Event) -> float:
            return 1.5

    gpu = SimpleNamespace(Event=Event, synchronize=lambda: done.append("wait"))
    flusher = SimpleNamespace(zero_=lambda: done.append("flush"))
    monkeypatch.setattr(clock, "torch", SimpleNamespace(cuda=gpu, empty=lambda *size, **options: flusher, int8=None))
    monkeypatch.setattr(clock, "WARM_UP_S", 0.0)
    times = clock.in_turns({name: lambda name=name: done.append(name) for name in "abc"}, 4, dry=False)
    assert times == {name: clock.Times(1.5, 1.5, 1.5, 4) for name in "abc"}
    timed = [
        [one for name in turn for one in ("flush", "event", name, "event")] for turn in ("abc", "bca", "cab", "abc")
    ]
    assert done == [one for turn in timed for one in (*turn, "wait")]


def test_the_summary_says_what_is_below_its_aim() -> None:
    row = {
        "pass": "forward",
        "shape": [8, 16],
        "yardstick": "a copy of as many bytes",
        "ratio": {"ours": 0.9, "eager": 0.4},
        "aim": 0.95,
        "aim_met": False,
        "right": True,
        "no_slower_than_compile": False,
    }
    parts = {"toy": {"error": None, "rows": [row]}, "late": {"error": "not begun: 460 s were over", "rows": []}}
    assert kernels.summary(parts) == [
        "toy forward 8×16: 0.90 of a copy of as many bytes (aim 0.95; eager 0.40), BELOW THE AIM, "
        "SLOWER THAN torch.compile",
        "late: not begun: 460 s were over",
    ]


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_least_work_and_aims_are_those_of_each_size(op: Op) -> None:
    for shape in (*op.sizes, op.dry):
        assert len(shape) == len(op.dry)
        for each in op.passes:
            assert 0 < each.aim(shape) < 1 and (each.moved is None) == (op.flops is not None)
    first = op.inputs(op.dry, torch.float32, "cpu")[0]
    if op.flops is None:
        assert first.shape == op.dry
    else:
        assert op.flops(op.dry) > 0


def test_an_operation_that_takes_too_long_or_dies_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    code = {"add": "import time; time.sleep(600)", "softmax": "raise SystemExit('the GPU is gone')", "matmul": ""}
    stock = subprocess.Popen

    def popen(command, **options):
        return stock([sys.executable, "-c", code[command[3]]], **options)

    monkeypatch.setattr(kernels, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))
    (slow,) = kernels.main(["--dry", "--ops", "add", "--part-limit-s", "1"])["parts"].values()
    others = kernels.main(["--dry", "--ops", "softmax,matmul"])["parts"]
    assert slow == {"error": "ended after 1 s", "rows": []}
    assert others == {
        "softmax": {"error": "exit code 1: the GPU is gone", "rows": []},
        "matmul": {"error": None, "rows": []},
    }


def test_time_that_is_over_begins_nothing(tmp_path: Path) -> None:
    result = kernels.main(["--dry", "--ops", "add", "--limit-s", "1", "--out", str(tmp_path / "out.json")])
    assert result["parts"] == {"add": {"error": "not begun: 1 s were over", "rows": []}}
    assert json.loads((tmp_path / "out.json").read_text()) == result


def test_an_unknown_operation_is_refused(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        kernels.main(["--ops", "add,sofmax"])
    assert "no operation sofmax; there are: add, softmax" in capsys.readouterr().err


@pytest.mark.full("kernels")
@on_a_cpu
def test_a_dry_run_takes_every_step_of_every_operation(tmp_path: Path) -> None:
    result = kernels.main(["--dry", "--part-limit-s", "280", "--limit-s", "1500"])
    assert result["dry"] and list(result["parts"]) == list(OPS)
    for name, one in result["parts"].items():
        assert one["error"] is None and len(one["rows"]) == len(OPS[name].passes), (name, one)
        for row in one["rows"]:
            assert row["right"] and not row["errors"] and set(row["ratio"]) >= {"ours", "eager", "compile"}, row
    assert "softmax_kernel" in result["parts"]["softmax"]["configs"]


@pytest.mark.full("kernels")
@on_a_cpu
def test_a_stop_keeps_what_was_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.kernels", "--dry", "--ops", "add,softmax,matmul"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        # The second name is printed when the first operation is done.
        assert [process.stderr.readline().strip() for _ in range(2)] == ["add", "softmax"]
        os.kill(process.pid, signal.SIGTERM)
        told, _ = process.communicate(timeout=100)
    result = json.loads(told)
    assert result["stopped"].startswith("interrupted") and process.returncode == 0
    assert result["parts"]["add"]["error"] is None and len(result["parts"]["add"]["rows"]) == 1
    assert result["parts"]["softmax"]["error"] == "stopped before its end" and "matmul" not in result["parts"]


@pytest.mark.gpu
def test_on_a_gpu_a_quick_run_is_right(tmp_path: Path) -> None:
    result = kernels.main(["--quick", "--ops", "add,rmsnorm"])
    for one in result["parts"].values():
        assert one["error"] is None, one
        for row in one["rows"]:
            assert row["right"] and not row["errors"] and 0.1 < row["ratio"]["ours"] < 2, row
