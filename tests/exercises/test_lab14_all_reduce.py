"""Lab 14's all-reduces: the solutions send what is stored of each algorithm, and what goes wrong is told and judged."""

from __future__ import annotations

import os
import random

import pytest
import torch

from grading.demo.examples import example
from grading.hidden.lab14.four_all_reduces import groups
from labkit import exercises
from labkit.check.judge import run_of
from labkit.check.text import as_text
from labkit.exercises.lab14.group import PUBLIC, Group
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab14.counts import COUNTED, Cost, cost
from labkit.ranks import UNIT, Cluster, Comm, Wire, measure_ranks, run_ranks
from labkit.spec import CANNOT_TELL
from tests.exercises.harness import answers_in, hidden_verdict, public_verdict, solution_of

WAYS = ("naive", "tree", "butterfly", "ring")
IDS = (*(f"14-{way}" for way in WAYS), "14-reduce-scatter")
ABSURD = {
    "None": "None",
    "a word": "'sum'",
    "a number": "3.5",
    "a list": "[x, x]",
    "another shape": "x[..., None].expand(*x.shape, 2)",
    "a scalar": "x.sum()",
    "no numbers": "x * float('nan') if x.is_floating_point() else x * 0",
    "complex": "x.to(torch.complex64)",
    "booleans": "x > 0",
}


def answer(name: str):
    """A function of the solutions, by its name."""
    exercise_id = next(one for one in IDS if name in [each.name for each in exercises.find(one).answers])
    return answers_in(exercise_id, solution_of(exercise_id))[name]


@pytest.mark.parametrize("way", WAYS)
def test_the_solution_sends_what_is_stored(way: str) -> None:
    all_reduce = answer(f"{way}_all_reduce")
    for n in range(1, 9):
        for size in (0, 3, 37, 8 * n):
            case, x = Group(n, (size,), "bfloat16"), torch.arange(size).to(torch.bfloat16)
            _, traffic = measure_ranks(lambda comm, x=x: all_reduce(comm, x), n, cluster=UNIT)
            sent = max(traffic.bytes_sent), max(traffic.messages), sum(traffic.bytes_sent), round(traffic.seconds)
            assert Cost(*sent) == cost(way, case), (n, size)
            assert (sent[1], sum(traffic.messages), sent[3]) == COUNTED[way][n - 1], n


def test_what_is_stored_is_what_the_text_says() -> None:
    eight = Group(8, (64,))
    size = eight.n_bytes
    assert cost("naive", eight) == Cost(7 * size, 7, 14 * size, 14)
    assert cost("tree", eight) == Cost(3 * size, 3, 14 * size, 6)
    assert cost("butterfly", eight) == Cost(3 * size, 3, 24 * size, 3)
    assert cost("ring", eight) == Cost(7 * size // 4, 14, 14 * size, 14)
    assert [cost(way, Group(5, (60,))).rounds for way in WAYS] == [8, 6, 4, 8]


def test_no_case_has_more_ranks_than_are_stored() -> None:
    cases = [case for seed in range(50) for case in groups(random.Random(seed))]
    assert max(case.n_ranks for case in (*PUBLIC, *cases)) == len(COUNTED["ring"])


def test_a_managers_tree_takes_eight_rounds_for_eight_ranks() -> None:
    """Eight where those who are ready first are heard first, and those with more below them told first."""

    def up_and_down(comm: Comm) -> None:
        x, reports = torch.ones(1), [r for r in (2 * comm.rank + 1, 2 * comm.rank + 2) if r < comm.world_size]
        for report in reversed(reports):
            comm.recv(torch.empty(1), report)
        if comm.rank:
            comm.send(x, (comm.rank - 1) // 2)
            comm.recv(x, (comm.rank - 1) // 2)
        for report in reports:
            comm.send(x, report)

    assert measure_ranks(up_and_down, 8, cluster=UNIT)[1].seconds == 8


def test_each_rank_of_the_ring_leaves_out_two_chunks() -> None:
    x = torch.arange(14.0)
    _, traffic = measure_ranks(lambda comm: answer("ring_all_reduce")(comm, x), 4)
    chunks = [part.nbytes for part in x.tensor_split(4)]
    assert traffic.bytes_sent == tuple(2 * x.nbytes - chunks[(r + 1) % 4] - chunks[(r + 2) % 4] for r in range(4))


def test_the_question_at_the_start() -> None:
    """16 GB on 16 ranks at 25 GB/s: 19.2 s through one rank, 1.2 s in a ring, whose time hardly grows any more."""
    network = Cluster(ranks_per_node=1, across=Wire(alpha_s=0.0, bytes_per_s=25e4))
    x = torch.ones(80_000, dtype=torch.bfloat16)
    seconds = {
        way: measure_ranks(lambda comm, way=way: answer(f"{way}_all_reduce")(comm, x), 16, cluster=network)[1].seconds
        for way in WAYS
    }
    assert seconds == pytest.approx({"naive": 19.2, "tree": 5.12, "butterfly": 2.56, "ring": 1.2})
    assert round(2 * 999 / 1000 * 16 / 25, 2) == 1.28


BLOCKED = {
    "naive": "def naive_all_reduce(comm, x):\n    comm.send(x, (comm.rank + 1) % comm.world_size)\n    return x\n",
    "butterfly": """
def butterfly_all_reduce(comm, x):
    total, got = x.clone(), torch.empty_like(x)
    comm.send(total, comm.rank ^ 1)
    comm.recv(got, comm.rank ^ 1)
    return total + got
""",
    "ring": """
def ring_all_reduce(comm, x):
    n, chunks = comm.world_size, list(x.clone().tensor_split(comm.world_size))
    comm.send(chunks[comm.rank], (comm.rank + 1) % n)
    comm.recv(chunks[comm.rank - 1], (comm.rank - 1) % n)
    return torch.cat(chunks)
""",
}


@pytest.mark.parametrize("way", BLOCKED)
def test_a_deadlock_is_told(way: str) -> None:
    verdict = public_verdict(f"14-{way}", BLOCKED[way])
    assert "deadlock: rank 0 waits for rank 1 to receive, rank 1 waits for rank" in dict(verdict.rows)["problem"]


@pytest.mark.parametrize(
    ("way", "wait", "instead"),
    [
        ("butterfly", "work.wait()\n        total += got", "total += got\n        work.wait()"),
        ("butterfly", "work.wait()\n", "\n"),
        ("ring", "work.wait()\n", "\n"),
    ],
)
def test_a_tensor_that_changes_while_it_is_sent_is_told(way: str, wait: str, instead: str) -> None:
    """The simulator's values are right, and on a real network it is a race."""
    source = solution_of(f"14-{way}").replace(wait, instead)
    assert source != solution_of(f"14-{way}")
    for verdict in (public_verdict(f"14-{way}", source), hidden_verdict(f"14-{way}", source)):
        assert verdict.score == 0
        assert "changed the tensor that it was sending to rank" in dict(verdict.rows)["problem"]


NO_WAIT = {
    "butterfly": (
        "work = comm.isend(total, rank ^ distance)\n        comm.recv(got, rank ^ distance)\n        work.wait()\n",
        "comm.isend(total.clone(), rank ^ distance)\n        comm.recv(got, rank ^ distance)\n",
    ),
    "ring": (
        "work = comm.isend(chunks[(rank - step) % n], (rank + 1) % n)\n        comm.recv(got, (rank - 1) % n)\n"
        "        work.wait()\n",
        "comm.isend(chunks[(rank - step) % n].clone(), (rank + 1) % n)\n        comm.recv(got, (rank - 1) % n)\n",
    ),
}


@pytest.mark.parametrize("way", NO_WAIT)
def test_a_message_that_nobody_waits_for_is_told(way: str) -> None:
    """The simulator's values are right, and real ranks hang: gloo drops a message with its Work."""
    source = solution_of(f"14-{way}").replace(*NO_WAIT[way])
    assert source != solution_of(f"14-{way}")
    for verdict in (public_verdict(f"14-{way}", source), hidden_verdict(f"14-{way}", source)):
        assert verdict.score == 0
        problem = dict(verdict.rows)["problem"]
        assert "started to send to rank" in problem and problem.endswith("and never called wait()")


@pytest.mark.parametrize("call", ["comm.recv(got, other)", "comm.recv()"])
def test_a_received_tensor_that_is_asked_of_recv_is_told(call: str) -> None:
    source = solution_of("14-naive").replace("comm.recv(got, other)\n        total += got", f"total += {call}")
    assert source != solution_of("14-naive")
    assert "comm.recv returns nothing: it writes" in dict(public_verdict("14-naive", source).rows)["problem"]


def test_an_all_reduce_is_made_from_the_two_halves() -> None:
    """By the ring of the exercise before it sends the same messages; by way of a helper it is right."""
    halves, _, whole = solution_of("14-reduce-scatter").partition("def all_reduce")
    by_ring = f"{solution_of('14-ring')}\n\n{halves}def all_reduce(comm, x):\n    return ring_all_reduce(comm, x)\n"
    problem = dict(public_verdict("14-reduce-scatter", by_ring).rows)["problem"]
    assert "all_reduce never called reduce_scatter and all_gather: it is to be made from these two" in problem
    helped = f"{halves}def helper{whole}\n\ndef all_reduce(comm, x):\n    return helper(comm, x)\n"
    assert public_verdict("14-reduce-scatter", helped).passed
    assert hidden_verdict("14-reduce-scatter", by_ring).score == 0


def test_a_message_of_another_shape_is_told() -> None:
    source = solution_of("14-ring").replace("got = torch.empty_like(mine)", "got = torch.empty_like(x)")
    assert source != solution_of("14-ring")
    problem = dict(public_verdict("14-ring", source).rows)["problem"]
    assert problem == "rank 0 sends float32 of shape (6,) and rank 1 receives it into float32 of shape (24,)"


@pytest.mark.parametrize("exercise_id", IDS)
@pytest.mark.parametrize("what", ABSURD)
def test_absurd_results_are_wrong_and_no_more(exercise_id: str, what: str) -> None:
    names = [one.name for one in exercises.find(exercise_id).answers]
    lines = [
        f"def {name}(comm, x, *_):\n    x = x if hasattr(x, 'sum') else x[0]\n    return {ABSURD[what]}\n"
        for name in names
    ]
    verdict = public_verdict(exercise_id, "\n\n".join(lines))
    assert verdict.outcome == "failed", as_text(verdict)


@pytest.mark.parametrize("exercise_id", IDS)
def test_hints_take_no_result_for_what_it_is_not(exercise_id: str) -> None:
    """On a right result none of the hints that look at values holds: what a budget says would be lost behind it."""
    exercise, oracle = exercises.find(exercise_id), oracle_of(exercise_id)
    found = gather_answers(exercise, answers_in(exercise_id, solution_of(exercise_id)))
    for case in exercise.public:
        run = run_of(oracle, observe(exercise, found, case, make_inputs(exercise, case, 5)))
        for hint in oracle.diagnose:
            try:
                answer = hint.when(run)
                holds = answer is not CANNOT_TELL and bool(answer)
            except Exception:
                holds = False
            assert not holds, (case, hint.text)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_on_gloo_the_values_are_those_of_torch_distributed(n: int) -> None:
    ways = {way: answer(f"{way}_all_reduce") for way in WAYS} | {"halves": answer("all_reduce")}
    forms = [(dtype, size) for dtype in (torch.float32, torch.bfloat16, torch.int64) for size in (0, 3, 50)]

    def fn(comm: Comm) -> dict[str, list[torch.Tensor]]:
        import torch.distributed as dist

        found: dict[str, list[torch.Tensor]] = {name: [] for name in ("torch", *ways)}
        for dtype, size in forms:
            x = (torch.arange(size) % 13 + comm.rank + 0.125).to(dtype)
            found["torch"].append(x.clone())
            if size:
                dist.all_reduce(found["torch"][-1])
            for name, way in ways.items():
                found[name].append(way(comm, x))
        return found

    results = run_ranks(fn, n, backend="gloo")
    for name in ways:
        for at, (dtype, _) in enumerate(forms):
            mine, torchs = results[0][name][at], results[0]["torch"][at]
            rtol = n * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
            torch.testing.assert_close(mine, torchs, rtol=rtol, atol=0.0)
            for other in results[1:]:
                assert torch.equal(mine.view(torch.uint8), other[name][at].view(torch.uint8))


def test_rounds_that_the_clock_counts_are_called_rounds() -> None:
    rows = dict(public_verdict("14-butterfly", example("wrong", "14-butterfly/one_after_the_other").source).rows)
    assert rows["problem"] == "over budget: rounds" and rows["measured"].endswith("rounds")
