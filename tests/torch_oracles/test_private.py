"""PyTorch's private names: they are where they are looked for, with every version that is said to have been tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import labkit.torch_oracles
from labkit.torch_oracles import TRIED, missing_names, private
from labkit.torch_oracles.private import fake_ranks

VERSION = ".".join(torch.__version__.split(".")[:2])


def test_this_pytorch_has_all_of_them_and_is_one_that_was_tried() -> None:
    """Of another version: run the tests of this folder, and if they pass, add it to TRIED."""
    missing = missing_names()
    assert missing == [], f"PyTorch {torch.__version__} lacks {missing}; {', '.join(TRIED)} has them"
    assert VERSION in TRIED, f"the oracles were tried with PyTorch {', '.join(TRIED)}, and this is {torch.__version__}"


def test_what_is_missing_is_named_with_the_versions_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(private._NAMES, "FakeStore", "torch.distributed.moved_elsewhere")
    monkeypatch.setitem(private._NAMES, "LocalTensor", "torch.distributed")
    assert missing_names() == ["FakeStore", "LocalTensor"]
    version = re.escape(torch.__version__)
    with pytest.raises(RuntimeError, match=rf"PyTorch {version} has no .*moved_elsewhere.FakeStore; PyTorch 2"):
        private.private("FakeStore")


def test_private_names_stand_in_one_module() -> None:
    folder = Path(labkit.torch_oracles.__file__).parent
    private_names = re.compile(r"torch(\.\w+)*\._\w+|torch\.testing")
    for path in folder.glob("*.py"):
        lines = [line for line in path.read_text().splitlines() if "import" in line or '"torch' in line]
        found = [line for line in lines if private_names.search(line) and "utils._python_dispatch" not in line]
        assert not found or path.name == "private.py", (path.name, found)


def test_fake_ranks_leave_no_group_behind() -> None:
    with fake_ranks(64):
        assert (dist.get_rank(), dist.get_world_size()) == (0, 64)
        with pytest.raises(RuntimeError, match="belongs to a process group already"), fake_ranks(2):
            pass
        assert dist.get_world_size() == 64
    assert not dist.is_initialized()
    with pytest.raises(ZeroDivisionError), fake_ranks(2):
        1 / 0  # noqa: B018
    assert not dist.is_initialized()
