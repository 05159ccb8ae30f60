"""What a script may not do, and what is found out about those that try: each with a control that is let through."""

from __future__ import annotations

from types import MappingProxyType

import pytest
import torch
from torch import nn

from labkit.capstone import PUBLIC_SEEDS, TARGET_LOSS, Entry, ScriptRefused, bill, entry_of, play, read
from labkit.capstone.broken import RuleBroken
from labkit.capstone.kit import KIT
from labkit.capstone.language import drawn_from
from labkit.capstone.run import OnHost
from labkit.capstone.script import load
from labkit.capstone.size import TINY

plays = pytest.mark.full("answers")
"""Bills take a second each."""

HONEST = """
MACHINE = "basement"
STEPS = 3
CHANGED = "as small as can be"


def setup(run):
    model = run.model(dtype=torch.bfloat16, attention="fused")
    return model, kit.Adafactor(model.parameters(), lr=1e-2)


def step(run, state, number):
    model, optimizer = state
    x, y = run.tokens(1)
    kit.loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def with_line(line: str, text: str = HONEST) -> str:
    """The honest script with one more line in its step."""
    return text.replace("    model, optimizer = state\n", f"    model, optimizer = state\n    {line}\n")


@plays
def test_an_honest_script_is_read_billed_and_trained() -> None:
    found = play(HONEST, (5,))
    assert (found["kind"], found["problem"]) == ("", "")
    entry = entry_of(found)
    assert entry.fits and not entry.reached and entry.losses["5"] > TARGET_LOSS
    assert entry.virtual_hours == pytest.approx(3 * found["bill"]["step_s"] / 3600, rel=1e-5)


WAYS_OUT = (
    "open('/etc/passwd')",
    "eval('1')",
    "getattr(run, 'tokens')",
    "type(run)",
    "globals()",
    "__import__('os')",
    "run.tokens.__globals__",
    "run._costs",
    "().__class__",
    "torch._C",
    "torch.utils",
    "x = [0 for f in (g.gi_frame for g in [])]",
    "'{0.__class__}'.format(run)",
    "import os",
    "from labkit.capstone import cost",
    "parked = optimizer.state.numpy()",
    "run.world_size = 9",
    "torch.zeros = torch.ones",
    "kit.loss = 0",
    "torch = 0",
    "f = lambda kit: 0",
    "x = torch.compile",
    "x = model.head.untyped_storage()",
    "x = model.head.data_ptr()",
    "x = torch.linalg",
    "model.head.numel = lambda: 0",
    "class Own(nn.Parameter): pass",
    "class Own(nn.Module, metaclass=nn.Module): pass",
    "kit.AdamW.lr = 0",
    "nn.Module.parameters = 0",
    "x = torch.amp",
)


@pytest.mark.parametrize("line", WAYS_OUT)
def test_a_script_that_looks_for_a_way_out_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(ScriptRefused, match=r"^line 14: "):
        read(with_line(line))


def test_a_name_of_its_own_does_not_open_an_attribute_of_ours() -> None:
    """The hole that names of one's own could be: what a script calls `numpy` is still no way to NumPy."""
    with pytest.raises(ScriptRefused, match=r"`\.numpy` is not among"):
        read(with_line("numpy = model.head.numpy()"))
    # Where a parameter is called so, the name is allowed, and stands for nothing but that parameter.
    text = HONEST.replace("def setup(run):", "def other(open):\n    pass\n\n\ndef setup(run):\n    open('/etc/passwd')")
    setup, _ = load(read(text))
    with pytest.raises(NameError):
        setup(None)


def test_a_class_of_tensors_is_refused_under_another_name_too() -> None:
    read(with_line("class Own(nn.Module): pass\n    class Other(Own): pass"))
    for bases in ("Kind = nn.Parameter", "class Kind(nn.Module): pass\n    Kind = nn.Parameter"):
        with pytest.raises(ScriptRefused, match="a class of a script is a"):
            read(with_line(f"{bases}\n    class Own(Kind): pass"))


def test_what_is_given_cannot_be_set_at_run_time_either() -> None:
    with pytest.raises(AttributeError, match="cannot be set"):
        KIT.loss = None


SHARED = (
    "kind = kit.Muon\n    kind.zero_grad = step",
    "kind = [nn.Linear]\n    kind[0].forward = step",
    "work = kit.Muon.update\n    work.data = [x]",
    "work = kit.loss\n    work.grad, z = x, y",
    "for kit.AdamW(model.parameters(), 1).step.data in [x]: pass",
)
"""Something that all scripts and all cards have, under a name that the text alone does not tell."""


@pytest.mark.parametrize("line", SHARED)
def test_a_class_or_function_of_ours_is_not_set_under_another_name(line: str) -> None:
    _, step = load(read(with_line(f"x = y = 1\n    {line}")))
    with pytest.raises(RuleBroken, match="cannot be set: a script patches nothing"):
        step(None, (nn.Linear(2, 2), None), 0)


def test_what_a_script_has_made_it_may_set() -> None:
    lines = (
        "class Own(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.scale = 2",
        "own = Own()",
        "own.scale, own.other = 3, [4]",
        "own.scale += 1",
        "Own.lr = 5",
        "step.data = 6",
        "made = torch.ones(2)",
        "made.requires_grad = True",
        "made.grad = torch.ones(2)",
        "optimizer = torch.optim.SGD([made], lr=1.0)",
        "kit_one = kit.AdamW([made], lr=1.0)",
        "kit_one.lr = own.scale + own.lr",
        "return kit_one.lr, step.data",
    )
    text = HONEST.replace("    x, y = run.tokens(1)\n", "".join(f"    {line}\n" for line in lines))
    _, step = load(read(text))
    assert step(None, (None, None), 0) == (9, 6)


DECLARATIONS = (
    ('MACHINE = "basement"', 'MACHINE = "cellar"', "MACHINE is one of basement, v100, quad, slice"),
    ("STEPS = 3", "STEPS = 401", "STEPS is a plain whole number from 1 to 400, not 401"),
    ("STEPS = 3", "STEPS = 1 + 2", "STEPS is a plain whole number"),
    ("def setup(run):", "def prepare(run):", "there is no setup"),
    ("model = run", "model = = run", "line 8: invalid syntax"),
    ('"as small as can be"', '"two\\nlines"', "CHANGED is one line"),
)


@pytest.mark.parametrize(("old", "new", "said"), DECLARATIONS)
def test_a_declaration_that_cannot_be_read_is_told(old: str, new: str, said: str) -> None:
    with pytest.raises(ScriptRefused) as refused:
        read(HONEST.replace(old, new))
    assert said in str(refused.value)


ENDS = (
    ("if x.shape[1] > 50: x = x + 0", "size", "in the billion, and"),
    ("if number == 2: x = x + 0", "data", "step 2 of training"),
    ("if kit.loss(model(x), y).item() == 1.0: x = x + 0", "data", "line 15: a value is read out of a tensor"),
    ("x = x * 1 if (x > 0).all() else x", "data", "line 15: a value is read out of a tensor"),
    ("seen = torch.ones(9, device='meta') * 2", "rule", "on no device"),
    ("seen = torch.rand(9, device='lazy') * 2", "rule", "on another device, lazy: whatever a script"),
    ("if number > 1: run.tokens(1)", "tokens", "step 2 of training takes 2 sequences; 1 are billed for each"),
    ("x = 1 / 0", "raised", "line 15: ZeroDivisionError"),
    ("run.tokens(128)", "rule", "128 sequences at the most"),
    ("run.model()", "rule", "called twice"),
    ("run.all_reduce([1])", "rule", "called with a tensor, not with a list"),
    ("run.to_device(model.head)", "rule", "what run.to_host has returned, and nothing else"),
    ("x, y = x[:, :16], y[:, :16]", "work", "TFLOP of products with weights; for the tokens that it takes it is"),
    ("optimizer.parameters.pop()", "work", "a step leaves weights as they were"),
    ("model.head.requires_grad_(False)", "work", "of products with weights"),
)


@plays
@pytest.mark.parametrize(("line", "kind", "said"), ENDS)
def test_a_script_that_breaks_a_rule_ends_there(line: str, kind: str, said: str) -> None:
    found = play(HONEST.replace("    kit.loss", f"    {line}\n    kit.loss", 1), (5,))
    assert found["kind"] == kind, found["problem"]
    assert said in found["problem"]
    assert not entry_of(found) or not entry_of(found).reached


@plays
def test_a_seed_reported_twice_and_a_seed_left_out_reach_nothing() -> None:
    trained = play(HONEST, (5,))
    weights = trained["weights"][0]

    def entry(seeds: list[int], n: int) -> Entry:
        return entry_of({**trained, "seeds": seeds, "weights": [weights] * n})

    assert not entry([5, 5, 6], 3).reached
    assert not entry([5, 6, 7], 2).reached
    assert not entry([], 0).reached


@plays
def test_weights_that_are_not_the_models_are_no_result() -> None:
    found = play(HONEST, PUBLIC_SEEDS[:1])
    found["weights"][0] = {"head": torch.zeros(TINY.vocab, TINY.width)}
    entry = entry_of(MappingProxyType(found))
    assert not entry.reached and entry.losses == {}


@plays
def test_what_the_first_step_does_beyond_the_others_is_paid_for_once() -> None:
    more = HONEST.replace("    kit.loss", "    for again in range(9 if number == 0 else 1):\n        kit.loss")
    plain, first = bill(read(HONEST)), bill(read(more))
    assert first.step_s == plain.step_s
    assert first.setup_s - plain.setup_s > 4 * plain.step_s


def test_what_lies_on_the_host_has_no_name_that_a_script_can_write() -> None:
    parked = OnHost((2,), torch.float32, torch.ones(2))
    assert {name for name in dir(parked) if not name.startswith("_")} == {"shape", "dtype"}
    with pytest.raises(ScriptRefused, match="begins with an underscore"):
        read(with_line("x = run.to_host(model.head)._value"))


def test_what_a_script_can_draw_tells_it_nothing_of_the_language() -> None:
    """The seed that its random numbers begin from is none of those that the words and the sentences are drawn from."""
    whats = ("the words that follow", "sentences 0", "sentences 1", "the first weights", "what card 0 draws")
    assert len({drawn_from(seed, what) for seed in (1, 2) for what in whats} - {1, 2}) == 2 * len(whats)


@plays
def test_a_weight_is_written_in_place_in_parts_or_by_new_memory() -> None:
    for update in (
        "p.data.add_(p.grad, alpha=-0.1)",
        "p.data = p.data - 0.1 * p.grad",
        "for part, grad in zip(p.data.chunk(4), p.grad.chunk(4)): part.sub_(grad)",
        "p.data.T.sub_(p.grad.T) if p.dim() > 1 else p.data.sub_(p.grad)",
    ):
        text = HONEST.replace("    optimizer.step()\n", f"    for p in model.parameters():\n        {update}\n")
        assert bill(read(text), TINY).unwritten == (), update
    for update in ("p.data[1:].sub_(p.grad[1:])", "p.data = torch.empty_like(p.data)"):
        text = HONEST.replace("    optimizer.step()\n", f"    for p in model.parameters():\n        {update}\n")
        assert len(bill(read(text), TINY).unwritten) == 27, update


@plays
def test_what_lives_from_step_to_step_is_on_the_bill_wherever_it_is_kept() -> None:
    parked = HONEST.replace(
        "    return model, kit", "    model.scale = [torch.zeros(2**20, 256)]\n    return model, kit"
    )
    plain, more = bill(read(HONEST)), bill(read(parked))
    assert more.total_peak_bytes - plain.total_peak_bytes == 2**30
    assert more.peak_bytes["optimizer"] - plain.peak_bytes["optimizer"] == 2**30
    # On the host it takes none of the card's memory, and a copy costs time.
    hosted = HONEST.replace(
        "    return model, kit", "    model.scale = run.to_host(torch.zeros(2**20, 256))\n    return model, kit"
    )
    there = bill(read(hosted))
    assert there.setup_s - plain.setup_s == pytest.approx(2**30 / 3.94e9 + 2**30 / 448e9)
