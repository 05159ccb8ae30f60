"""The declaration holds every kind of exercise that the course needs: one tiny exercise of each, right and wrong."""

from __future__ import annotations

import runpy
from itertools import islice

import pytest
import torch

from labkit.spec import Answer, Budget, Hint, KiB, Oracle, Tolerance
from tests.exercises.kinds import Size, declare, fails, passes, run


def test_an_autograd_function() -> None:
    def drive(ans, case, tree, stage):
        x = tree["x"].requires_grad_()
        out = ans.Square.apply(x)
        out.sum().backward()
        return {"out": out, "grad": x.grad}

    exercise = declare("square", Answer("Square"), drive)
    oracle = Oracle(exercise.id, expect=lambda run: {"out": run.tree["x"] ** 2, "grad": 2 * run.tree["x"]})
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
    fails(exercise, oracle, source.replace("2 * x * grad", "x * grad"), "wrong grad at [0]")
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
        expect=lambda run: train(run.tree, torch.optim.SGD),
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
    fails(exercise, oracle, source.replace('group["momentum"]', "0.0"), "wrong entry 1 of weights at [0]")


def test_a_schedule_from_a_generator() -> None:
    exercise = declare(
        "schedule",
        Answer("schedule"),
        lambda ans, case, tree, stage: {"events": list(islice(ans.schedule(tree["n_micro"]), 100))},
        inputs=lambda case, gen: {"n_micro": case.n},
    )
    oracle = Oracle(
        exercise.id,
        expect=lambda run: {"events": [(kind, i) for kind in "FB" for i in range(run.case.n)]},
        diagnose=(Hint(lambda run: len(run.got["events"]) == 100, "The schedule never ends."),),
    )
    right = "def schedule(n):\n    yield from (('F', i) for i in range(n))\n    yield from (('B', i) for i in range(n))"
    passes(exercise, oracle, right)
    fails(
        exercise,
        oracle,
        right.replace("'B'", "'W'"),
        "wrong entry 0 of entry 4 of events",
        "expected  'B'",
        "got       'W'",
    )
    endless = "def schedule(n):\n    while True:\n        yield ('F', 0)"
    fails(exercise, oracle, endless, "expected  8 items", "got       100 items", "The schedule never ends.")


def test_a_value() -> None:
    exercise = declare("largest", Answer("largest", kind="value"), lambda ans, case, tree, stage: {"out": ans.largest})
    oracle = Oracle(exercise.id, expect=lambda run: {"out": 65504.0})
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
    oracle = Oracle(exercise.id, expect=lambda run: {"total": 6, "n_lines": 1})
    passes(exercise, oracle, "script = 'total = 1 + 2 + 3'")
    fails(exercise, oracle, "script = 'total = 5'", "wrong total")
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
        diagnose=(Hint(lambda run: run.got["n"] > 4, "Four are enough."),),
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
    oracle = Oracle(exercise.id, expect=lambda run: gradients(run.tree, lambda model, x: model(x).square().mean()))
    passes(exercise, oracle, "def loss(model, x):\n    return model(x).square().mean()")
    fails(exercise, oracle, "def loss(model, x):\n    return model(x).mean()", "of layers")
    fails(
        exercise,
        oracle,
        "def loss(model, x):\n    return x.sum().requires_grad_()",
        "wrong type of weight of entry 0 of layers",
    )


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
        expect=lambda run: {"out": run.tree["x"].sum(), "marks": ["done"], "n_files": 1},
        budgets=(
            # The file's content, once as bytes and once as a tensor.
            Budget("peak_bytes", lambda run: 2.5 * run.tree["x"].nbytes, "Keep one copy of the file."),
            Budget("dispatches", 50, "No loop over the elements."),
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_on_a_virtual_clock() -> None:
    def drive(ans, case, tree, stage):
        def load(index):
            stage.clock.sleep(2.0)
            if index == case.n:
                raise ValueError(f"sample {index} is broken")
            return index

        def steps(n):
            for item in ans.prefetch(stage.clock, load, n):
                stage.clock.sleep(3.0)
                yield item

        found = {"items": list(steps(case.n)), "makespan_s": stage.clock.now_s}
        try:
            list(steps(case.n + 1))
        except ValueError as error:
            found["error"] = str(error)
        return {**found, "left": stage.clock.left_over()}

    exercise = declare("prefetch", Answer("prefetch"), drive)
    oracle = Oracle(
        exercise.id,
        expect=lambda run: {
            "items": list(range(run.case.n)),
            "makespan_s": 2.0 + 3.0 * run.case.n,
            "error": f"sample {run.case.n} is broken",
            "left": [],
        },
    )
    source = """
def prefetch(clock, load, n):
    items = clock.Queue(maxsize=2)

    def work():
        try:
            for index in range(n):
                items.put((load(index), None))
        except Exception as error:
            items.put((None, error))

    loader = clock.Thread(target=work)
    loader.start()
    for _ in range(n):
        item, error = items.get()
        if error is not None:
            loader.join()
            raise error
        yield item
    loader.join()
"""
    passes(exercise, oracle, source)
    in_turn = "def prefetch(clock, load, n):\n    for index in range(n):\n        yield load(index)"
    fails(exercise, oracle, in_turn, "wrong makespan_s")
    swallowed = source.replace("items.put((None, error))", "return")
    fails(exercise, oracle, swallowed, "ThreadsHang: the main thread waits for an item of an empty queue")
    real = source.replace("clock.Thread(", "__import__('threading').Thread(")
    fails(exercise, oracle, real, "ThreadsHang: the main thread waits for an item of an empty queue, so nobody")
