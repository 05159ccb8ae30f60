"""Forbidden calls are found behind every honest spelling, and only where the answer reaches them."""

from __future__ import annotations

import pytest

from labkit.forbids import find_disguise, find_forbidden, program_of

FORBIDS = ("torch.softmax", "torch.nn.functional.softmax", "torch.Tensor.softmax", "torch.nn.Softmax")
SETUP = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def found(*cells: str, roots=("answer",), forbids=FORBIDS) -> str | None:
    result = find_forbidden([SETUP, *cells], roots, forbids)
    return result.name if result else None


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def answer(x):\n    return torch.softmax(x, -1)", "torch.softmax"),
        ("def answer(x):\n    return F.softmax(x, -1)", "torch.nn.functional.softmax"),
        ("def answer(x):\n    return nn.functional.softmax(x, -1)", "torch.nn.functional.softmax"),
        ("def answer(x):\n    return torch.nn.functional.softmax(x, -1)", "torch.nn.functional.softmax"),
        ("def answer(x):\n    return x.softmax(-1)", "torch.Tensor.softmax"),
        ("def answer(x):\n    return (x - x.max()).softmax(-1)", "torch.Tensor.softmax"),
        ("def answer(x):\n    return nn.Softmax(-1)(x)", "torch.nn.Softmax"),
        ("def answer(x):\n    from torch import softmax as s\n    return s(x, -1)", "torch.softmax"),
        ("def answer(x):\n    import torch as t\n    return t.softmax(x, -1)", "torch.softmax"),
        ("def answer(x):\n    f = torch.nn.functional\n    return f.softmax(x, -1)", "torch.nn.functional.softmax"),
        ("from torch import softmax as s\ndef answer(x):\n    return s(x, -1)", "torch.softmax"),
        ("from torch import *\ndef answer(x):\n    return softmax(x, -1)", "torch.softmax"),
        ("T = torch\ndef answer(x):\n    return T.softmax(x, -1)", "torch.softmax"),
        ("answer = torch.softmax", "torch.softmax"),
        ("answer = lambda x: torch.softmax(x, -1)", "torch.softmax"),
        ("answer: object = torch.softmax", "torch.softmax"),
        ("other, answer = 1, torch.softmax", "torch.softmax"),
        ("fs = {}\nfs['s'] = torch.softmax\ndef answer(x):\n    return fs['s'](x, -1)", "torch.softmax"),
        ("for f in [torch.softmax]:\n    pass\ndef answer(x):\n    return f(x, -1)", "torch.softmax"),
        ("if f := torch.softmax:\n    pass\ndef answer(x):\n    return f(x, -1)", "torch.softmax"),
        ("print(f := torch.softmax)\ndef answer(x):\n    return f(x, -1)", "torch.softmax"),
        ("with wrap(torch.softmax) as f:\n    pass\ndef answer(x):\n    return f(x, -1)", "torch.softmax"),
        ("match [torch.softmax]:\n    case [f]:\n        pass\ndef answer(x):\n    return f(x, -1)", "torch.softmax"),
        ("fs = []\nfs += [torch.softmax]\ndef answer(x):\n    return fs[0](x, -1)", "torch.softmax"),
        ("class answer:\n    def __call__(self, x):\n        return torch.softmax(x, -1)", "torch.softmax"),
        ("def answer(x):\n    return list(map(torch.softmax, [x]))", "torch.softmax"),
    ],
)
def test_every_spelling_is_found(source: str, name: str) -> None:
    assert found(source) == name


def test_a_method_is_forbidden_also_where_it_is_looked_up_alone() -> None:
    assert found("def answer(x):\n    f = x.softmax\n    return f(-1)") == "torch.Tensor.softmax"


def test_helpers_are_followed_through_cells() -> None:
    helper = "def helper(x):\n    return deeper(x)"
    deeper = "class Deeper:\n    def run(self, x):\n        return torch.softmax(x, -1)\ndeeper = Deeper().run"
    assert found(helper, deeper, "def answer(x):\n    return helper(x)") == "torch.softmax"


@pytest.mark.parametrize(
    "source",
    [
        # Used beside the answer, to compare with it.
        "def answer(x):\n    return x.exp()\ntorch.softmax(torch.ones(1), 0)",
        "def answer(x):\n    return x.exp()\ndef compare(x):\n    return torch.softmax(x, -1) - answer(x)",
        # A local name that a cell uses for something else.
        "expected = torch.softmax\ndef answer(x):\n    expected = x.exp()\n    return expected",
        "x = torch.softmax(torch.ones(1), 0)\ndef answer(x):\n    return x.exp()",
        "y = torch.softmax(torch.ones(1), 0)\ndef answer(x):\n    return [y for y in x]",
        # Others of a similar name, and the name in a text.
        "def answer(x):\n    return torch.log_softmax(x, -1)",
        "def answer(x):\n    '''Not torch.softmax.'''\n    return 'torch.softmax'",
        "def softmax(x):\n    return x.exp()\ndef answer(x):\n    return softmax(x)",
        # In a statement that binds a name of the answer's further in.
        "for n in (1, 2):\n    print(torch.softmax(torch.ones(n), 0))\ndef answer(x):\n    return x.exp() * n",
        "with wrap() as w:\n    torch.softmax(torch.ones(1), 0)\ndef answer(x):\n    return w(x)",
        "torch.testing.assert_close(answer(x), torch.softmax(x, -1))\ndef answer(x):\n    return x.exp()",
        # One's own attribute or method of that name.
        "class Sum:\n    def __init__(self, x):\n        self.softmax = x\ndef answer(x):\n    return Sum(x).softmax",
        "class Mine:\n    def softmax(self):\n        return 1\ndef answer(x):\n    return Mine().softmax()",
        # An earlier attempt under the same name.
        "def answer(x):\n    return torch.softmax(x, -1)\ndef answer(x):\n    return x.exp()",
    ],
)
def test_what_is_not_the_answer_is_free(source: str) -> None:
    assert found(source) is None


def test_the_line_is_quoted() -> None:
    result = find_forbidden(
        [SETUP, "def answer(x):\n    y = 1\n    return torch.softmax(x, -1)  # here"], ["answer"], FORBIDS
    )
    assert result.line == "line 3: return torch.softmax(x, -1)  # here"


def test_a_cell_that_does_not_parse_is_passed_over() -> None:
    assert found("def answer(x:", "def answer(x):\n    return torch.softmax(x, -1)") == "torch.softmax"
    assert found("def answer(x:\n") is None


@pytest.mark.parametrize(
    "source",
    [
        "def answer(x):\n    nonlocal y\n    return x",
        "def answer(x):\n    return x" + ".a" * 5000,
        "def answer(x):\n    return " + "-" * 5000 + "x",
        "def answer(x):\n    return x" + " + x" * 5000,
        "answer = '\0'",
    ],
    ids=["nonlocal", "attributes", "signs", "sums", "null"],
)
def test_odd_text_is_no_error(source: str) -> None:
    assert found(source) is None


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def answer(x):\n    return getattr(torch, 'soft' + 'max')(x, -1)", "getattr"),
        ("def answer(x):\n    return getattr(torch, 'softmax')(x, -1)", "getattr"),
        ("def answer(x, find=getattr):\n    return find(torch, 'soft' + 'max')(x, -1)", "getattr"),
        ("f = getattr(torch, 'tfos'[::-1] + 'max')\ndef answer(x):\n    return f(x, -1)", "getattr"),
        ("def answer(x):\n    return eval('torch.softmax', None)(x, -1)", "eval"),
        ("def answer(x):\n    exec('global f; f = torch.softmax')\n    return f(x, -1)", "exec"),
        ("def answer(x):\n    return __import__('torch').nn.Softmax(-1)(x)", "__import__"),
        (
            "from importlib import import_module as get\ndef answer(x):\n    return get('torch').nn.Softmax(-1)(x)",
            "importlib",
        ),
        ("from torch import *\ndef answer(x):\n    return globals()['soft' + 'max'](x, -1)", "globals"),
        ("def answer(x):\n    return vars(torch)['soft' + 'max'](x, -1)", "vars"),
        ("def answer(x):\n    return torch.__dict__['soft' + 'max'](x, -1)", "__dict__"),
        ("import operator as op\ndef answer(x):\n    return op.attrgetter('softmax')(torch)(x, -1)", "attrgetter"),
        ("from operator import attrgetter as f\ndef answer(x):\n    return f('softmax')(x)(-1)", "attrgetter"),
        ("import sys\ndef answer(x):\n    return sys.modules['torch'].nn.Softmax(-1)(x)", "sys.modules"),
        ("from sys import modules as m\ndef answer(x):\n    return m['torch'].nn.Softmax(-1)(x)", "sys.modules"),
        ("def answer(x):\n    return nn.Module.__subclasses__()[3](-1)(x)", "__subclasses__"),
        ("import operator\ndef answer(x):\n    return operator.methodcaller('soft' + 'max', -1)(x)", "methodcaller"),
        ("import pickle\nf = pickle.loads(b'ctorch\\nsoftmax\\n.')\ndef answer(x):\n    return f(x, -1)", "pickle"),
        ("import sys\ndef answer(x):\n    sys.setprofile(None)\n    return hidden[0](x, -1)", "setprofile"),
        ("def answer(x):\n    return sum(1 for _ in x.modules())", None),
        ("def answer(x):\n    return getattr(x, 'dtype', None)", None),
        ("def answer(x):\n    return x\nother = getattr(torch, 'soft' + 'max')", None),
        ("def answer(x:", None),
    ],
)
def test_where_a_name_may_be_hidden_is_found(source: str, name: str | None) -> None:
    assert found(source) is None
    place = find_disguise([SETUP, source], ["answer"], FORBIDS)
    assert (place and place.name) == name
    assert find_disguise([SETUP, source], ["answer"], ()) is None


def test_the_lab_s_own_imports_need_not_be_given() -> None:
    cell = "def answer(x):\n    return torch.softmax(x, -1)"
    assert find_forbidden([cell], ["answer"], FORBIDS).name == "torch.softmax"


def test_nothing_forbidden_needs_no_text() -> None:
    assert find_forbidden(["def answer(x:"], ["answer"], ()) is None


def test_the_program_of_an_answer_outside_a_notebook_is_its_module() -> None:
    (text,) = program_of([test_nothing_forbidden_needs_no_text])
    assert "def test_nothing_forbidden_needs_no_text" in text
    assert program_of([3, None]) == []
