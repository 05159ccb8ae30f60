"""Jobs on a store that the supervisor keeps come to what they come to in a notebook, call for call; and nothing of a
job reaches the next but through the store."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from grading.isolation.tiers import NONE
from grading.supervisor import Sandbox
from grading.supervisor.apart import ONLY_REMEMBERED, run_all, runs_apart, without_apart
from grading.supervisor.cases import CaseInputs, CaseSet, public_cases
from grading.supervisor.store import port
from grading.supervisor.store.run import run_with_store
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.observe import make_inputs, observe
from labkit.spec import Observation, Run
from labkit.store import books
from labkit.tree import same
from tests.grading.hostile_jobs import FORGES, LOOKS, REMEMBERED, REMEMBERS
from tests.grading.lab96.exercises import PROGRAM, SUM, Files, Sum
from tests.grading.lab98 import exercises as lab98
from tests.grading.ranks import graded, ranks_server
from tests.grading.steps import count_cpu
from tests.lanes import EVERY_TIER, require_tier

HONEST = """
import json
def total(store, n):
    done, total = json.loads(store.read("state")) if "state" in store.list() else (0, 0)
    for index in range(done, n):
        total += sum(store.read(f"data/{index}"))
        store.write("state.tmp", json.dumps([index + 1, total]).encode())
        store.rename("state.tmp", "state")
    return total
"""
PROGRAMS = {
    "nothing at all": "return 3",
    "everything": """
store.write("a/b", bytes(range(100)))
store.rename("a/b", "c")
parts = [list(store.read("c", 90)), list(store.read("data/1", 5, 7)), list(store.read("c", 200))]
return [store.list(), store.list("data/"), parts]
""",
    "nothing in a file": 'store.write("empty", b"")\nreturn [len(store.read("empty")), store.list()]',
    "an error that is caught": """
try:
    store.read("nothing")
except FileNotFoundError as error:
    return str(error)
""",
    "an error that is not": 'store.read("data/0")\nreturn store.rename("nothing", "b")',
    "a name that is none": 'return store.read("")',
    "changed inputs": "store.list()\nx.add_(1)\nreturn store.list()",
    "a step at a time": """
done = store.list("done/")
for index in range(len(done), 4):
    store.write(f"done/{index}", b"12345678")
return store.list("done/")
""",
    "threads": """
import threading
def work(index):
    for _ in range(20): store.write(f"of {index}", bytes(index))
threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
return [len(store.read(name)) for name in store.list("of ")]
""",
}


def program(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"def program(store, x):\n{lines}"


def simulated(source: str, case: Files) -> Observation:
    # As a notebook's cell, so that the line of an error is found.
    name = "<ipython-input-96>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict = {}
    exec(compile(source, name, "exec"), namespace)
    return observe(PROGRAM, SimpleNamespace(program=namespace["program"]), case, make_inputs(PROGRAM, case, 1))


def kept(server: Sandbox, source: str, *cases: Files) -> list[Observation]:
    steps = [RunCode("a", source), ServeExercise("b", PROGRAM.id)]
    case_set = CaseSet(tuple(CaseInputs(case, make_inputs(PROGRAM, case, 1)) for case in cases))
    return run_with_store(server, steps, PROGRAM, case_set).runs


def differences(one: Observation, other: Observation) -> list[str]:
    parts = [name for name in ("tree", "got", "back") if not same(getattr(one, name), getattr(other, name))]
    return parts + [
        name for name in ("measured", "held", "trouble", "books") if getattr(one, name) != getattr(other, name)
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with ranks_server() as found:
        yield found


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "threads"])
def test_a_run_is_what_it_is_in_a_notebook(server, name: str) -> None:
    cases = (Files(), Files(2, (2,)), Files(2, (1, 3)))
    for case in cases:
        (run,) = kept(server, program(PROGRAMS[name]), case)
        assert differences(run, simulated(program(PROGRAMS[name]), case)) == []


def test_threads_of_an_answer_have_their_turns_at_the_store(server) -> None:
    (run,) = kept(server, program(PROGRAMS["threads"]), Files())
    assert run.got["jobs"][0]["out"] == [0, 1, 2, 3] and run.measured["opens"] == 84


def test_a_store_is_new_for_every_case(server) -> None:
    runs = kept(server, program("store.write('a', b'1')\nreturn store.list()"), Files(1), Files(1))
    assert [run.got["jobs"][0]["out"] for run in runs] == [["a", "data/0"]] * 2


@pytest.mark.parametrize("tier", EVERY_TIER)
def test_an_answer_that_goes_on_where_it_was_passes(tier: str) -> None:
    with ranks_server(require_tier(tier)) as server:
        found = graded(server, "import torch", HONEST, name="96-sum").exercises["96-sum"]
    assert found.hidden.outcome == "passed", found
    assert [row[0] for row in found.hidden.budgets] == ["read_bytes"]


def test_one_that_begins_again_is_over_its_budget(server) -> None:
    again = HONEST.replace('json.loads(store.read("state")) if "state" in store.list() else (0, 0)', "(0, 0)")
    found = graded(server, again, name="96-sum").exercises["96-sum"].public
    assert found.outcome == "failed" and found.hint == "Read each file once."
    assert dict(found.rows)["problem"] == "over budget: read bytes"


def test_a_state_that_is_written_in_place_is_torn(server) -> None:
    torn = HONEST.replace('"state.tmp", json', '"state", json').replace(
        '        store.rename("state.tmp", "state")\n', ""
    )
    found = graded(server, torn, name="96-sum").exercises["96-sum"].public
    assert found.outcome == "failed" and "JSONDecodeError" in dict(found.rows)["problem"]


@pytest.mark.slow
@pytest.mark.parametrize("tier", EVERY_TIER)
@pytest.mark.parametrize("name", REMEMBERED)
def test_nothing_but_the_store_is_left_of_a_job(tier: str, name: str) -> None:
    cheat = "import json\n" + REMEMBERED[name] + REMEMBERS
    with ranks_server(require_tier(tier)) as server:
        found = graded(server, cheat, name="96-sum").exercises["96-sum"].public
    assert found.outcome == "failed"
    if name in ("a dictionary", "a module"):
        assert found.hint == ONLY_REMEMBERED


@pytest.mark.slow
def test_without_isolation_a_file_does_it(tmp_path) -> None:
    """Control of the test above."""
    cheat = "import json\n" + REMEMBERED["a file in /tmp"].replace("/tmp/kept", str(tmp_path / "kept")) + REMEMBERS
    with ranks_server(NONE) as server:
        assert graded(server, cheat, name="96-sum").exercises["96-sum"].outcome == "passed"


def test_what_has_no_witness_with_a_store_is_refused(server) -> None:
    cases = CaseSet((CaseInputs(Sum(), {}, memory_limit_bytes=1.0),))
    with pytest.raises(ValueError, match="96-sum: with a store neither memory nor what a probe bears out"):
        run_with_store(server, [ServeExercise("b", "96-sum")], SUM, cases)
    with pytest.raises(ValueError, match="an exercise has ranks or a store"):
        Run(ranks=2, store=True)


@pytest.mark.slow
def test_a_job_finds_neither_files_nor_the_call_that_it_is_killed_at(server) -> None:
    found = graded(server, LOOKS, name="96-sum").exercises["96-sum"].public
    assert dict(found.rows)["problem"] == "ValueError: []", found.rows


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGES)
def test_a_frame_that_makes_no_sense_costs_the_exercise_alone(server, name: str) -> None:
    forged = (
        f"import torch\ndef total(store, n):\n    channel = store._channel\n    {FORGES[name].strip()}\n    return 0"
    )
    result = graded(server, "y = 1", forged, name="96-sum")
    found = result.exercises["96-sum"].public
    assert found.outcome in ("failed", "limit") and found.score == 0
    assert graded(server, HONEST, name="96-sum").exercises["96-sum"].score == 1


def test_figures_that_a_job_claims_do_not_count(server) -> None:
    claims = HONEST.replace(
        "    return total",
        """    import sys
    frame = sys._getframe()
    while frame:
        if "own" in frame.f_locals: frame.f_locals["own"].measured["read_bytes"] = 0.0
        frame = frame.f_back
    for index in range(n): store.read(f"data/{index}")
    return total""",
    )
    found = graded(server, claims, name="96-sum").exercises["96-sum"].public
    assert found.outcome == "failed" and found.hint == "Read each file once."


def test_calls_without_end_and_a_store_without_end_are_limits(server, monkeypatch) -> None:
    monkeypatch.setattr(port, "MAX_CALLS", 100)
    (run,) = kept(server, program("while True: store.list()"), Files(1))
    assert run.trouble.kind == "wall" and run.trouble.text == "it called its store more than 100 times"
    monkeypatch.setattr(books, "MAX_BYTES", 10_000)
    (run,) = kept(server, program("for index in range(99): store.write(str(index), bytes(1000))"), Files(1))
    assert run.trouble.kind == "memory" and run.trouble.text.startswith("the store holds ")


@pytest.mark.slow
def test_jobs_that_never_end_share_the_exercises_time(server, monkeypatch) -> None:
    counted_s = count_cpu(server, monkeypatch)
    found = graded(server, "def total(store, n):\n    while True: pass", name="96-sum").exercises["96-sum"].public
    # Fewer on a busy machine: the limit is on wall time.
    assert found.outcome == "limit" and 0 < sum(counted_s) < 1.5 * SUM.run.wall_s


def test_a_job_that_takes_too_much_memory_says_so(server) -> None:
    (run,) = kept(server, program("import torch\nkept = torch.ones(2**33)"), Files(1))
    assert run.trouble.kind == "memory"


def test_the_steps_are_taken_apart_and_a_second_look_runs_them(server) -> None:
    assert runs_apart(SUM) and runs_apart(lab98.SUM)
    steps = [RunCode("96-sum", HONEST), ServeExercise("96-sum-check", "96-sum")]
    assert [step.cell_id for step in without_apart(steps)] == ["96-sum"]
    found = run_all(server, steps, {"96-sum": public_cases(SUM)})
    assert [run.got["jobs"][0] for run in found.exercises["96-sum"]] == [None, None] and found.cpu_s > 0


def test_an_answer_that_fails_is_run_again_after_all_cells(server) -> None:
    hidden_need = HONEST.replace("def total(", "def total_of(")
    found = graded(
        server, hidden_need, "def total(store, n):\n    return globals()['total' + '_of'](store, n)", name="96-sum"
    )
    assert found.exercises["96-sum"].hidden.outcome == "passed"
