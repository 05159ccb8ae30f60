"""A forbidden call is seen under any name, where the student's own code makes it, and a library's own is free.

Control: `test_the_text_alone_shows_none_of_them`.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import replace

import pytest
import torch

from grading.demo.examples import solution_of
from labkit import exercises
from labkit.forbidden_calls import forbidden_call
from labkit.forbids import find_forbidden
from labkit.observe import gather_answers, make_inputs, observe
from tests.exercises.harness import answers_in, public_verdict

FORBIDS = (
    "math.fsum",
    "numpy.sum",
    "torch.softmax",
    "torch.Tensor.softmax",
    "torch.nn.functional.softmax",
    "torch.nn.Softmax",
    "torch.optim.AdamW",
    "torch.utils.checkpoint.checkpoint",
    "torch.utils.checkpoint.CheckpointFunction",
    "no.such.module",
)
SETUP = "import math, random, statistics\nimport numpy as np\nimport torch\nimport torch.utils.checkpoint\n"


def seen(source: str, forbids=FORBIDS) -> tuple[str, str] | None:
    """The name and the line of what calling `answer(x)` calls."""
    linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
    space: dict[str, object] = {}
    exec(SETUP, space)
    exec(compile(source, "<cell>", "exec"), space)
    x = torch.ones(3, requires_grad=True)
    found = forbidden_call(forbids, {"answer": space["answer"]}, lambda: space["answer"](x))
    return (found.name, found.line) if found else None


HIDDEN = [
    ("random.f = [math.fsum][0]\ndef answer(x):\n    return random.f([1.0])", "math.fsum"),
    ("f = __import__('pickle').loads(b'cmath\\nfsum\\n.')\ndef answer(x):\n    return f([1.0])", "math.fsum"),
    ("def answer(x):\n    return getattr(math, 'fs' + 'um')([1.0])", "math.fsum"),
    ("def answer(x):\n    return vars(np)['sum']([1.0])", "numpy.sum"),
    ("def answer(x):\n    return vars(torch)['softmax'](x, -1)", "torch.softmax"),
    ("def answer(x):\n    return getattr(x, 'softmax')(-1)", "torch.Tensor.softmax"),
    ("def answer(x):\n    return [*map(vars(torch)['softmax'], [x], [-1])]", "torch.softmax"),
    (
        "import operator\ndef answer(x):\n    return operator.methodcaller('softmax', -1)(x)",
        "torch.Tensor.softmax",
    ),
    (
        "import functools\nf = vars(torch.nn.functional)['softmax']\n"
        "def answer(x):\n    return functools.partial(f, dim=-1)(x)",
        "torch.nn.functional.softmax",
    ),
    ("def answer(x):\n    return vars(torch.nn)['Softmax'](-1)(x)", "torch.nn.Softmax"),
    (
        "class Mine(vars(torch.optim)['AdamW']):\n    def __init__(self, ps):\n        super().__init__(ps)\n"
        "def answer(x):\n    return Mine([x])",
        "torch.optim.AdamW",
    ),
    (
        "f = vars(torch.utils.checkpoint)['checkpoint']\n"
        "def answer(x):\n    return f(torch.exp, x, use_reentrant=False)",
        "torch.utils.checkpoint.checkpoint",
    ),
    (
        "f = vars(torch.utils.checkpoint)['CheckpointFunction']\n"
        "def answer(x):\n    return f.apply(torch.exp, True, x)",
        "torch.utils.checkpoint.CheckpointFunction",
    ),
]


@pytest.mark.parametrize(("source", "name"), HIDDEN)
def test_it_is_seen_under_any_name(source: str, name: str) -> None:
    found, line = seen(source)
    assert found == name
    number, text = line.removeprefix("line ").split(": ", 1)
    assert source.splitlines()[int(number) - 1].strip() == text


def test_the_text_alone_shows_none_of_them() -> None:
    for source, _ in HIDDEN:
        found = find_forbidden([SETUP, source], ["answer"], FORBIDS)
        assert found is None or "[math.fsum]" in source


def test_an_answer_that_is_such_a_function_is_seen_before_it_runs() -> None:
    assert seen("for answer in [math.fsum]:\n    pass") == ("math.fsum", "")
    assert seen("answer = vars(torch.nn)['Softmax']") == ("torch.nn.Softmax", "")


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("class answer(vars(torch.optim)['AdamW']): pass", "torch.optim.AdamW"),
        ("class Mine(vars(torch.optim)['AdamW']): pass\nclass answer(Mine): pass", "torch.optim.AdamW"),
        ("answer = functools.partial(vars(torch.nn)['Softmax'], -1)", "torch.nn.Softmax"),
        ("answer = functools.partial(functools.partial(vars(math)['fsum']))", "math.fsum"),
        ("answer = functools.lru_cache(vars(math)['fsum'])", "math.fsum"),
        (
            "answer = vars(torch.utils.checkpoint)['CheckpointFunction'].apply",
            "torch.utils.checkpoint.CheckpointFunction",
        ),
    ],
)
def test_what_stands_for_such_a_function_or_is_derived_is_seen(answer: str, name: str) -> None:
    assert seen(f"import functools\n{answer}") == (name, "")


def test_wrappers_without_end_end() -> None:
    assert seen("def answer(x):\n    return x\nanswer.__wrapped__ = answer") is None


@pytest.mark.parametrize(
    "source",
    [
        "def answer(x):\n    return x.exp() / x.exp().sum()",
        # What a library calls for itself: fmean adds up with fsum, attention takes a softmax.
        "def answer(x):\n    return statistics.fmean([1.0, 2.0])",
        "def answer(x):\n    return torch.nn.MultiheadAttention(3, 1)(x[None], x[None], x[None])",
        "def answer(x):\n    return torch.optim.Adam([x])",
        "def answer(x):\n    return sum([1.0, 2.0]) + np.add(1, 2)",
        # A function of one's own with such a name.
        "def softmax(x):\n    return x\ndef answer(x):\n    return softmax(x)",
        "class AdamW:\n    pass\ndef answer(x):\n    return AdamW()",
        "def answer(x):\n    raise ValueError('whatever')",
    ],
)
def test_what_is_free_stays_free(source: str) -> None:
    assert seen(source) is None


def test_what_calls_before_it_fails_is_seen() -> None:
    assert seen("def answer(x):\n    vars(math)['fsum']([1.0])\n    raise ValueError")[0] == "math.fsum"


def test_the_profiler_of_before_is_put_back() -> None:
    def before(*args: object) -> None:
        return None

    sys.setprofile(before)
    try:
        seen("def answer(x):\n    return x")
        found = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert found is before


# --- in the journey of an answer

CHECKPOINT = solution_of("05-checkpoint")
BORROWED = """
import torch
import torch.utils.checkpoint as borrowed
table = [value for name, value in sorted(vars(borrowed).items()) if name == "checkpoint"]

def checkpoint(function, *args):
    return table[0](function, *args, use_reentrant=False)
"""


@pytest.mark.slow
def test_a_borrowed_checkpoint_is_refused() -> None:
    verdict = public_verdict("05-checkpoint", BORROWED)
    assert verdict.score == 0
    assert dict(verdict.rows)["problem"].startswith("`torch.utils.checkpoint.checkpoint` does the whole job")
    assert dict(verdict.rows)["at"] == "line 7: return table[0](function, *args, use_reentrant=False)"
    assert public_verdict("05-checkpoint", CHECKPOINT).passed


def test_only_the_first_public_case_runs_twice(capsys) -> None:
    exercise = exercises.find("02-merge-smallest")
    answers = gather_answers(exercise, answers_in(exercise.id, solution_of(exercise.id)))
    runs = []

    def drive(answers, case, tree, stage):
        runs.append(case)
        print("from the answer")
        return exercise.drive(answers, case, tree, stage)

    counted = replace(exercise, drive=drive)
    for case in exercise.public[:2]:
        assert observe(counted, answers, case, make_inputs(exercise, case, 0)).trouble is None
    assert runs == [exercise.public[0], exercise.public[0], exercise.public[1]]
    assert capsys.readouterr().out == "from the answer\n" * 2
    runs.clear()
    observe(replace(counted, forbids=()), answers, exercise.public[0], make_inputs(exercise, exercise.public[0], 0))
    assert runs == [exercise.public[0]]
