"""Each piece of data that a meter, a rank or the simulated device hands out shows one in its docstring, that works."""

from __future__ import annotations

import importlib
import inspect
from collections import Counter
from dataclasses import dataclass
from textwrap import dedent

import pytest
import torch

DATA = {
    "labkit.compare.diff": ("Mismatch",),
    "labkit.env.finding": ("EnvFinding",),
    "labkit.measures": ("Measure",),
    "labkit.meters.comm": ("Call", "CommLog"),
    "labkit.meters.compile.profile": ("Break", "Code", "CompileProfile", "Graph", "Kernel", "Recompile", "Saved"),
    "labkit.meters.compiled.report": ("CompileReport",),
    "labkit.meters.launch_log.rerun": ("RerunResult",),
    "labkit.meters.memory.budget": ("Made",),
    "labkit.meters.memory.profile": ("AliveTensor", "Point"),
    "labkit.meters.memory.sites": ("Site",),
    "labkit.meters.memory.snapshot": ("AllocatedBlock",),
    "labkit.meters.timing": ("Timing",),
    "labkit.meters.traffic.eager": ("Operation",),
    "labkit.meters.traffic.profile": ("ArgumentTraffic", "Launch", "LaunchRace", "OutOfBounds", "TrafficProfile"),
    "labkit.ranks.cluster": ("Cluster", "Wire"),
    "labkit.ranks.resimulation": ("RankStep",),
    "labkit.ranks.traffic": ("Traffic", "Transfer"),
    "labkit.simdevice.allocator": ("Block", "Figures", "Segment"),
    "labkit.simdevice.commands": ("Command",),
    "labkit.simdevice.machine": ("Machine",),
    "labkit.simdevice.races": ("Race",),
    "labkit.simdevice.run_traced": ("TracedRun",),
    "labkit.simdevice.stale": ("StaleInput",),
    "labkit.simdevice.timing_probe": ("TimingProbe",),
    "labkit.simdevice.trace": ("Span",),
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in DATA.items() for name in names])
def test_a_docstring_shows_one(module: str, name: str) -> None:
    kind = getattr(importlib.import_module(module), name)
    assert isinstance(example_of(kind), kind)


def example_of(kind: type) -> object:
    """What the one paragraph stands for that makes such an object. Raises ValueError where there is none."""
    paragraphs = [dedent(part) for part in inspect.cleandoc(kind.__doc__).split("\n\n")]
    (example,) = [part for part in paragraphs if part.startswith(f"{kind.__name__}(")]
    return eval(example, {"torch": torch, "Counter": Counter, **vars(inspect.getmodule(kind))})


@dataclass
class Shown:
    """One that fits.

        Shown(n=3)

    n: any number.
    """

    n: int


def test_an_example_that_is_missing_or_does_not_fit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    assert example_of(Shown) == Shown(3)
    monkeypatch.setattr(Shown, "__doc__", "One.\n\n        Shown(m=3)\n")
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        example_of(Shown)
    monkeypatch.setattr(Shown, "__doc__", "One, of a number.")
    with pytest.raises(ValueError, match="not enough values to unpack"):
        example_of(Shown)
