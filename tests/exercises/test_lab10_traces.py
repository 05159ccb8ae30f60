"""Lab 10: what the oracle says of a trace is what the executor finds when the trace is run as CUDA C++."""

from __future__ import annotations

import re

import pytest
import torch

from grading.demo.examples import example
from labkit.check.html import as_html
from labkit.check.text import MAX_LINES, WIDTH
from labkit.check.text import as_text as verdict_text
from labkit.exercises.lab10.communicate import COMMUNICATE, Traces
from labkit.exercises.lab10.traces import BARRIER, PROGRAMS, Op, Trace, as_text, of_text, random_trace
from labkit.oracles.lab10.communicate import Rules, label
from labkit.simt import Fault, compile_cuda
from tests.exercises.harness import public_verdict
from tests.simt.harness import require_nvrtc

pytestmark = pytest.mark.lab("10")
N_WORDS = 64
KINDS = {"barrier": "deadlock", "race": "race", "race between blocks": "race"}


def as_cuda(trace: Trace) -> str:
    """A kernel for each launch; what all threads of a block do between two barriers stands in branches of their own."""
    return "\n".join(_kernel(number, launch) for number, launch in enumerate(trace))


def _kernel(number: int, launch: list[list[list[Op]]]) -> str:
    lines = [f"__global__ void k{number}(int* g, int* sink) {{", f"  __shared__ int s[{N_WORDS}];"]
    lines += [f"  for (int i = threadIdx.x; i < {N_WORDS}; i += blockDim.x) s[i] = 0;", "  __syncthreads();"]
    lines += ["  int me = blockIdx.x * 32 + threadIdx.x, seen = 0;"]
    for b, block in enumerate(launch):
        pieces = [_pieces(thread) for thread in block]
        for epoch in range(max(map(len, pieces))):
            for t, thread in enumerate(pieces):
                body = " ".join(_statement(op) for op in (thread[epoch] if epoch < len(thread) else []))
                lines.append(f"  if (blockIdx.x == {b} && threadIdx.x == {t}) {{ {body} }}")
            comes = " || ".join(f"threadIdx.x == {t}" for t, thread in enumerate(pieces) if epoch + 1 < len(thread))
            if comes:
                lines.append(f"  if (blockIdx.x == {b} && ({comes})) __syncthreads();")
    return "\n".join([*lines, "  sink[me] = seen;", "}"])


def _pieces(thread: list[Op]) -> list[list[Op]]:
    """What it does before, between and after its barriers."""
    pieces: list[list[Op]] = [[]]
    for op in thread:
        if op == BARRIER:
            pieces.append([])
        else:
            pieces[-1].append(op)
    return pieces


def _statement(op: Op) -> str:
    # Of shared memory every access is kept as it is written; a volatile read of global memory would be no race.
    place = f"((volatile int*)s)[{op.place}]" if op.space == "shared" else f"g[{op.place}]"
    if op.kind == "read":
        return f"seen += {place};"
    if op.kind == "write":
        return f"{place} = me + 1;"
    return f"atomicAdd(&{op.space[0]}[{op.place}], me + 1);"


def executed(trace: Trace) -> str:
    """The executor's word for it."""
    kernels, g = compile_cuda(as_cuda(trace)), torch.zeros(N_WORDS, dtype=torch.int32)
    faults: list[Fault] = []
    for number, launch in enumerate(trace):
        sink = torch.zeros(32 * len(launch), dtype=torch.int32)
        faults += kernels[f"k{number}"].launch(len(launch), len(launch[0]), g, sink, check=False).faults
    found = {KINDS[fault.kind] for fault in faults}
    return "deadlock" if "deadlock" in found else "race" if found else "right"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_executor_agrees_on_every_program(name: str) -> None:
    require_nvrtc()
    trace = PROGRAMS[name](2, 3)
    assert executed(trace) == label(trace, Rules()), as_cuda(trace)


def test_a_trace_comes_back_from_its_text() -> None:
    for seed in range(20):
        trace = random_trace(2, 3, seed)
        assert of_text(as_text(trace)) == trace


def test_each_rule_decides_some_program() -> None:
    """A hint on a rule that no program depends on could never be shown."""
    from dataclasses import fields, replace

    traces = [program(2, 3) for program in PROGRAMS.values()]
    truth = [label(trace, Rules()) for trace in traces]
    played = {
        field.name: [label(trace, replace(Rules(), **{field.name: not field.default})) for trace in traces]
        for field in fields(Rules)
    }
    assert [name for name, labels in played.items() if labels == truth] == []
    assert len({tuple(labels) for labels in played.values()}) == len(played), "two mistakes look the same"
    assert {*truth} == {"right", "race", "deadlock"}


@pytest.mark.parametrize(
    ("mistake", "right"),
    [("two_writes_are_fine", "race"), ("all_launches_are_one", "right"), ("sees_no_deadlock", "deadlock")],
)
def test_the_verdict_shows_the_first_wrong_trace_as_a_call_and_whole(mistake: str, right: str) -> None:
    verdict = public_verdict("10-communicate", example("wrong", f"10-communicate/{mistake}").source)
    rows, lines = dict(verdict.rows), verdict_text(verdict).splitlines()
    assert len(lines) <= MAX_LINES and max(map(len, lines)) <= WIDTH
    call, *threads = rows["input"].split("\n")
    shown = [line for line in lines if line.startswith("  input")]
    assert call.split("  #")[0] in shown[0], "the call stands on one line, to be pasted"
    assert not any(line.endswith(" ...") for line in lines)
    named: dict[str, object] = {"PROGRAMS": PROGRAMS, "random_trace": random_trace, "classify": lambda trace: trace}
    trace = eval(call, named)
    assert rows["problem"] == "wrong label" and rows["expected"] == repr(right) == repr(label(trace, Rules()))
    told = [[] if "nothing" in line else line.split(": ")[1].split(", ") for line in threads]
    assert [*map(len, told)] == [len(thread) for launch in trace for block in launch for thread in block]
    assert all(re.fullmatch(r"(launch \d, )?\d\.\d: .+", line) for line in threads)
    assert threads[-1] in as_html(verdict)


def test_a_random_trace_is_named_by_its_arguments() -> None:
    assert random_trace(2, 3, seed=7) == random_trace(2, 3, seed=7) != random_trace(2, 3, seed=8)
    made = COMMUNICATE.inputs(Traces(programs=1, random=9), torch.Generator().manual_seed(3))
    named = {"PROGRAMS": PROGRAMS, "random_trace": random_trace}
    assert [as_text(eval(call, named)) for call in made["calls"]] == made["traces"]


def test_an_error_is_told_with_the_trace_that_it_is_about() -> None:
    raises = "def classify(trace):\n    return {1: 'right'}[len(trace)]"
    verdict = public_verdict("10-communicate", raises)
    rows = dict(verdict.rows)
    assert verdict.outcome == "failed"
    called = re.fullmatch(r'classify\(PROGRAMS\["(\w+)"\]\((\d), (\d)\)\): KeyError: 2', rows["problem"])
    assert called, rows
    assert len(PROGRAMS[called[1]](int(called[2]), int(called[3]))) == 2
    blank = 'def classify(trace):\n    raise NotImplementedError("Write your answer here.")'
    assert public_verdict("10-communicate", blank).outcome == "unanswered"
