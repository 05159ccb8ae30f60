"""The declaration holds every kind of exercise that the course needs: one tiny exercise of each, right and wrong."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from itertools import islice

import torch

from labkit.check import Verdict, examine, inputs_untouched
from labkit.check.text import as_text
from labkit.ranks import Cluster
from labkit.spec import Answer, Budget, Case, Exercise, Hint, KiB, Oracle, Run, Tolerance
from tests.exercises.small import cell


@dataclass(frozen=True)
class Size(Case):
    n: int = 4
    seed: int = 0


def declare(slug: str, answer: Answer, drive, cases: tuple[Case, ...] = (Size(),), inputs=None, **rest) -> Exercise:
    return Exercise(
        id=f"91-{slug}",
        title=slug,
        points=1,
        minutes=1,
        difficulty=1,
        answers=(answer,),
        public=cases,
        inputs=inputs or (lambda case, gen: {"x": torch.randn(case.n, generator=gen)}),
        drive=drive,
        **rest,
    )


def run(exercise: Exercise, oracle: Oracle, source: str) -> Verdict:
    return examine(exercise, oracle, cell(source), [source])


def passes(exercise: Exercise, oracle: Oracle, source: str) -> None:
    verdict = run(exercise, oracle, source)
    assert verdict.passed, as_text(verdict)


def fails(exercise: Exercise, oracle: Oracle, source: str, *parts: str) -> None:
    verdict = run(exercise, oracle, source)
    text = as_text(verdict)
    assert verdict.score == 0, text
    for part in parts:
        assert part in text, text


def test_an_autograd_function() -> None:
    def drive(ans, case, tree, stage):
        x = tree["x"].requires_grad_()
        out = ans.Square.apply(x)
        out.sum().backward()
        return {"out": out, "grad": x.grad}

    exercise = declare("square", Answer("Square"), drive)
    oracle = Oracle(exercise.id, expect=lambda case, tree: {"out": tree["x"] ** 2, "grad": 2 * tree["x"]})
    source = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad
"""
    passes(exercise, oracle, source)
    fails(exercise, oracle, source.replace("2 * x * grad", "x * grad"), "wrong value at grad[0]")
    fails(exercise, oracle, source.replace("return 2 * x * grad", "raise NotImplementedError"), "not answered yet")


def test_an_optimizer() -> None:
    def train(tree, optimizer_class):
        weight = torch.nn.Parameter(tree["w"].clone())
        optimizer = optimizer_class([weight], lr=0.1, momentum=0.9)
        seen = []
        for _ in range(5):
            optimizer.zero_grad()
            (weight - tree["target"]).square().sum().backward()
            optimizer.step()
            seen.append(weight.detach().clone())
        return {"weights": seen}

    exercise = declare(
        "sgd",
        Answer("SGD"),
        lambda ans, case, tree, stage: train(tree, ans.SGD),
        inputs=lambda case, gen: {name: torch.randn(case.n, generator=gen) for name in ("w", "target")},
    )
    oracle = Oracle(
        exercise.id,
        expect=lambda case, tree: train(tree, torch.optim.SGD),
        tolerance=Tolerance(rtol=1e-5, atol=1e-7),
    )
    source = """
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                buffer = self.state[p].setdefault("buffer", torch.zeros_like(p))
                buffer.mul_(group["momentum"]).add_(p.grad)
                p.sub_(group["lr"] * buffer)
"""
    passes(exercise, oracle, source)
    # The first step is the same without momentum; the second is not.
    fails(exercise, oracle, source.replace('group["momentum"]', "0.0"), "wrong value at weights.1[0]")


def test_a_schedule_from_a_generator() -> None:
    exercise = declare(
        "schedule",
        Answer("schedule"),
        lambda ans, case, tree, stage: {"events": list(islice(ans.schedule(tree["n_micro"]), 100))},
        inputs=lambda case, gen: {"n_micro": case.n},
    )
    oracle = Oracle(
        exercise.id,
        expect=lambda case, tree: {"events": [(kind, i) for kind in "FB" for i in range(case.n)]},
        diagnose=(Hint(lambda case, tree, got: len(got["events"]) == 100, "The schedule never ends."),),
    )
    right = "def schedule(n):\n    yield from (('F', i) for i in range(n))\n    yield from (('B', i) for i in range(n))"
    passes(exercise, oracle, right)
    fails(exercise, oracle, right.replace("'B'", "'W'"), "wrong value at events.4.0", "expected  'B'", "got       'W'")
    endless = "def schedule(n):\n    while True:\n        yield ('F', 0)"
    fails(exercise, oracle, endless, "expected  8 items", "got       100 items", "The schedule never ends.")


def test_a_value() -> None:
    exercise = declare("largest", Answer("largest", kind="value"), lambda ans, case, tree, stage: {"out": ans.largest})
    oracle = Oracle(exercise.id, expect=lambda case, tree: {"out": 65504.0})
    passes(exercise, oracle, "largest = 65504")
    fails(exercise, oracle, "largest = 65536", "expected  65504.0", "got       65536")
    fails(exercise, oracle, "largest = '65504'", "wrong type", "a string ('65504')")
    fails(exercise, oracle, "largest = None", "not answered yet")
    fails(exercise, oracle, "", "there is no `largest`")


def test_a_text() -> None:
    def drive(ans, case, tree, stage):
        script = stage.tmp / "script.py"
        script.write_text(ans.script)
        return {"total": runpy.run_path(str(script))["total"], "n_lines": len(ans.script.splitlines())}

    exercise = declare("script", Answer("script", kind="text", cell="91-script-cell"), drive)
    oracle = Oracle(exercise.id, expect=lambda case, tree: {"total": 6, "n_lines": 1})
    passes(exercise, oracle, "script = 'total = 1 + 2 + 3'")
    fails(exercise, oracle, "script = 'total = 5'", "wrong value at total")
    fails(exercise, oracle, "script = 'total = '", "SyntaxError")
    fails(exercise, oracle, "script = ' '", "not answered yet")
    fails(exercise, oracle, "script = 'raise NotImplementedError(\"Write your answer here.\")'", "not answered yet")
    fails(exercise, oracle, "def script(): ...", "should be the text of a cell")


def test_a_property_over_all_runs() -> None:
    def seeds_matter(runs):
        first, *others = [run.got["out"] for run in runs]
        if any(torch.equal(first, other) for other in others):
            return "two seeds gave the same noise"
        return None

    exercise = declare(
        "noise",
        Answer("noise"),
        lambda ans, case, tree, stage: {"out": ans.noise(case.n, case.seed)},
        cases=(Size(seed=1), Size(seed=2), Size(seed=3)),
    )
    oracle = Oracle(exercise.id, judge_all=(seeds_matter,))
    right = "def noise(n, seed):\n    return torch.randn(n, generator=torch.Generator().manual_seed(seed))"
    passes(exercise, oracle, right)
    fails(exercise, oracle, right.replace("(seed)", "(0)"), "not right yet", "two seeds gave the same noise")
    fails(exercise, oracle, "noise = lambda n, seed: 1 / (seed - 3)", "2 of 3 cases pass", "ZeroDivisionError")


def test_a_partial_score() -> None:
    exercise = declare("fewer", Answer("fewer"), lambda ans, case, tree, stage: {"n": ans.fewer()})
    oracle = Oracle(
        exercise.id,
        score=lambda runs: 4 / runs[0].got["n"],
        diagnose=(Hint(lambda case, tree, got: got["n"] > 4, "Four are enough."),),
    )
    passes(exercise, oracle, "fewer = lambda: 4")
    verdict = run(exercise, oracle, "fewer = lambda: 8")
    assert (verdict.outcome, verdict.score, verdict.hint) == ("partial", 0.5, "Four are enough.")


def test_a_nested_tree_of_gradients() -> None:
    def gradients(tree, loss):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        loss(model, tree["x"]).backward()
        by_layer = [dict(layer.named_parameters()) for layer in model]
        return {"layers": [{name: p.grad for name, p in layer.items()} for layer in by_layer]}

    exercise = declare("loss", Answer("loss"), lambda ans, case, tree, stage: gradients(tree, ans.loss))
    oracle = Oracle(exercise.id, expect=lambda case, tree: gradients(tree, lambda model, x: model(x).square().mean()))
    passes(exercise, oracle, "def loss(model, x):\n    return model(x).square().mean()")
    fails(exercise, oracle, "def loss(model, x):\n    return model(x).mean()", "wrong value at layers.")
    fails(exercise, oracle, "def loss(model, x):\n    return x.sum().requires_grad_()", "wrong type at layers.0.weight")


def test_a_driver_with_a_folder_and_meters() -> None:
    def drive(ans, case, tree, stage):
        path = stage.tmp / "x.pt"
        torch.save(tree["x"], path)
        with stage.meter("memory"), stage.meter("ops"):
            out = ans.total(path)
        stage.mark("done")
        return {"out": out, "marks": stage.marks, "n_files": len(list(stage.tmp.iterdir()))}

    exercise = declare(
        "total",
        Answer("total"),
        drive,
        cases=(Size(n=64 * KiB),),
        meters=("memory", "ops"),
        inputs=lambda case, gen: {"x": torch.ones(case.n)},
    )
    oracle = Oracle(
        exercise.id,
        expect=lambda case, tree: {"out": tree["x"].sum(), "marks": ["done"], "n_files": 1},
        budgets=(
            # The file's content, once as bytes and once as a tensor.
            Budget("peak_bytes", lambda case, tree: 2.5 * tree["x"].nbytes, "Keep one copy of the file."),
            Budget("dispatches", 50, "No loop over the elements.", unit="operations"),
        ),
    )
    right = "def total(path):\n    return torch.load(path).sum()"
    passes(exercise, oracle, right)
    copies = "def total(path):\n    x = torch.load(path)\n    return sum(y.sum() for y in [x * 1, x * 1, x * 1]) / 3"
    fails(exercise, oracle, copies, "over budget: peak bytes", "budget    655,360 bytes (640.0 KiB)", "Keep one copy")
    loop = "def total(path):\n    return sum(part.sum() for part in torch.load(path).split(1024))"
    fails(exercise, oracle, loop, "over budget: dispatches", "No loop over the elements.")
    assert dict((name, unit) for name, _, _, unit in run(exercise, oracle, right).budgets) == {
        "peak_bytes": "bytes",
        "dispatches": "operations",
    }


RING = """def all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    parts = [part.clone() for part in x.tensor_split(n)]
    for step in range(2 * n - 2):
        adds = step < n - 1
        mine = parts[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(parts[(rank - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine.copy_(mine + got if adds else got)
    return torch.cat(parts)
"""
NAIVE = """
def all_reduce(comm, x):
    others = [rank for rank in range(comm.world_size) if rank != comm.rank]
    works = [comm.isend(x, rank) for rank in others]
    total, got = x.clone(), torch.empty_like(x)
    for rank in others:
        comm.recv(got, rank)
        total += got
    for work in works:
        work.wait()
    return total
"""


def all_reduce() -> tuple[Exercise, Oracle]:
    """An exercise of four ranks, each with its row, and a budget that only a ring meets."""
    n_ranks = 4

    def drive(ans, case, tree, stage):
        with stage.meter("ops"):
            out = ans.all_reduce(stage.comm, tree["x"][stage.rank])
        return {"out": out, "rank": stage.rank, "world_size": stage.world_size}

    def expect(case, tree):
        out = tree["x"].sum(0)
        return {"ranks": [{"out": out, "rank": rank, "world_size": n_ranks} for rank in range(n_ranks)]}

    exercise = declare(
        "all-reduce",
        Answer("all_reduce"),
        drive,
        cases=(Size(n=16), Size(n=18)),
        inputs=lambda case, gen: {"x": torch.randn(n_ranks, case.n, generator=gen)},
        run=Run(ranks=n_ranks, wall_s=1),
        meters=("ops",),
    )
    oracle = Oracle(
        exercise.id,
        expect=expect,
        judge=(inputs_untouched,),
        tolerance=Tolerance(rtol=1e-5, atol=1e-6),
        budgets=(
            Budget("bytes_sent", lambda case, tree: 2 * 3 * 4 * -(-case.n // 4), "Send one part at a time."),
            Budget("messages", 6, "A ring sends once a round.", unit="messages"),
            Budget("rounds", 6, "A ring takes 2(n-1) rounds.", unit="rounds"),
            Budget("dispatches", 200, "Few operations a rank.", unit="operations"),
        ),
        diagnose=(Hint(lambda case, tree, got: bool((got["ranks"][0]["out"] == 0).all()), "Zeros came back."),),
    )
    return exercise, oracle


def test_several_ranks() -> None:
    exercise, oracle = all_reduce()
    passes(exercise, oracle, RING)
    measured = dict((name, value) for name, value, _, _ in run(exercise, oracle, RING).budgets)
    assert (measured["bytes_sent"], measured["messages"], measured["rounds"]) == (96, 6, 6)
    assert measured["dispatches"] > 10

    fails(exercise, oracle, NAIVE, "over budget: bytes sent", "measured  192 bytes", "Send one part at a time.")
    fails(exercise, oracle, RING.replace("isend(", "isend(0 * "), "none of the 2 cases", "wrong value at ranks.0.out")
    fails(exercise, oracle, RING.replace("+ got", "+ 0 * got"), "wrong value at ranks.0.out")
    fails(exercise, oracle, "def all_reduce(comm, x):\n    return torch.zeros_like(x)", "Zeros came back.")
    fails(exercise, oracle, NAIVE.replace("+= got", "+= got * (rank != 3)"), "wrong value at ranks.0.out")
    fails(exercise, oracle, RING.replace(".clone()", ""), "the input `x` was changed in place on rank 0")


def test_a_case_says_how_many_ranks_it_has_and_on_which_nodes() -> None:
    def drive(ans, case, tree, stage):
        x = tree["x"][stage.rank].clone()
        ans.to_all(stage.comm, x)
        return {"out": x}

    exercise = declare(
        "to-all",
        Answer("to_all"),
        drive,
        cases=(Size(1), Size(2), Size(5)),
        inputs=lambda case, gen: {"x": torch.randn(case.n, 3, generator=gen)},
        run=Run(ranks=lambda case: case.n, cluster=lambda case: Cluster(ranks_per_node=2)),
    )
    oracle = Oracle(
        exercise.id,
        expect=lambda case, tree: {"ranks": [{"out": tree["x"][0]}] * case.n},
        budgets=(Budget("bytes_across", 12, "One message leaves a node."),),
    )
    chain = """def to_all(comm, x):
    if comm.rank > 0:
        comm.recv(x, comm.rank - 1)
    if comm.rank < comm.world_size - 1:
        comm.send(x, comm.rank + 1)
"""
    passes(exercise, oracle, chain)
    star = """def to_all(comm, x):
    for other in range(1, comm.world_size):
        if comm.rank == 0:
            comm.send(x, other)
        elif comm.rank == other:
            comm.recv(x, 0)
"""
    fails(exercise, oracle, star, "measured  36 bytes", "One message leaves a node.")


def test_what_goes_wrong_between_ranks_is_told() -> None:
    exercise, oracle = all_reduce()
    deadlock = "def all_reduce(comm, x):\n    comm.recv(x, (comm.rank - 1) % 4)\n    return x"
    fails(
        exercise,
        oracle,
        deadlock,
        "let one receive while the other sends",
        "problem   deadlock: rank 0 waits for a message from rank 3, ",
        "line 2: comm.recv(x, (comm.rank - 1) % 4)",
    )
    one_raises = "def all_reduce(comm, x):\n    if comm.rank == 2:\n        raise ValueError('no')\n    comm.barrier()"
    fails(exercise, oracle, one_raises, "rank 2: ValueError: no", "line 3: raise ValueError('no')")
    fails(exercise, oracle, "def all_reduce(comm, x):\n    raise NotImplementedError", "not answered yet")
    endless = "def all_reduce(comm, x):\n    comm.barrier()\n    while True:\n        x = x + 1"
    verdict = run(exercise, oracle, endless)
    assert verdict.outcome == "limit"
    assert dict(verdict.rows)["at"].startswith(("line 3:", "line 4:"))
