"""A launch log that is too long, names what is not known or reaches beyond its memory is refused, with the reason."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit.meters.launch_log import MAX_ENTRIES, LaunchLog, Rerunner, UnusableLog
from labkit.meters.launch_log.moves import MAX_CONSTANTS
from tests.kernels.add import add, add_kernel
from tests.meters.launch_logs import KERNELS


def test_a_log_has_an_end() -> None:
    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        for _ in range(MAX_ENTRIES + 3):
            x.clone()
    plain = log.as_tree({})
    assert (len(plain["entries"]), plain["left_out"]) == (MAX_ENTRIES, 3)
    with pytest.raises(UnusableLog, match="more than can be recorded: 3 too many"):
        Rerunner(KERNELS).rerun(plain, {"x": x})


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda log: log["entries"].append({"do": "eval"}), "an entry of no known kind: eval"),
        (lambda log: log["entries"][0].update(kernel=["open", ""]), "kernel open is not one that is known"),
        (lambda log: log["storages"].append({"bytes": 2**40}), "it works in 1,099,.* bytes of memory; 536,870,912"),
        (
            lambda log: log["entries"][0]["arguments"].update(n={"unknown": "Tensor"}),
            "argument n of kernel add_kernel is of type Tensor, which cannot be sent",
        ),
        (
            lambda log: log["entries"][0]["arguments"].update(n={"plain": []}),
            "argument n of kernel add_kernel is of type",
        ),
        (
            lambda log: log["entries"].append(
                {"do": "constants", "to": log["outputs"]["out"], "values": [0.0] * (MAX_CONSTANTS + 1)}
            ),
            f"{MAX_CONSTANTS + 1} constants at once",
        ),
        (lambda log: log["storages"].append({"input": "x"}), "names an input twice"),
        (lambda log: log["outputs"]["out"].update(storage=-1), "numbered from 0"),
    ],
    ids=["kind", "kernel", "memory", "argument", "list", "constants", "input", "storage"],
)
def test_what_cannot_be_played_is_named(change, says: str) -> None:
    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    plain = log.as_tree({"out": out})
    change(plain)
    with pytest.raises(UnusableLog, match=says):
        Rerunner(KERNELS).rerun(plain, {"x": x})


def test_a_kernel_that_launches_others_is_refused() -> None:
    class Twice:
        def __getitem__(self, grid):
            return lambda **arguments: [add_kernel[grid](**arguments) for _ in range(2)]

    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    with pytest.raises(UnusableLog, match="kernel add_kernel launches kernels itself"):
        Rerunner(dict.fromkeys(KERNELS, Twice())).rerun(log.as_tree({"out": out}), {"x": x})


def test_a_place_outside_of_its_storage_is_refused() -> None:
    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    plain = log.as_tree({"out": out})
    plain["outputs"]["out"]["offset"] = 1
    with pytest.raises(RuntimeError, match="out of bounds"):
        Rerunner(KERNELS).rerun(plain, {"x": x})
