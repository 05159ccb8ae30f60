"""Float32 in full, whatever a notebook has asked for, by PyTorch's old names and by its new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import backends

from labkit.full_precision import full_float32
from labkit.observe import known_settings

PLACES = {
    "cuda.matmul": backends.cuda.matmul,
    "mkldnn.matmul": backends.mkldnn.matmul,
    "cudnn.conv": backends.cudnn.conv,
    "cudnn.rnn": backends.cudnn.rnn,
}


def by_old_names() -> None:
    torch.set_float32_matmul_precision("medium")
    backends.cudnn.allow_tf32 = True


def by_new_names() -> None:
    backends.cuda.matmul.fp32_precision = "tf32"
    backends.cudnn.conv.fp32_precision = "ieee"


def everything_by_one_name() -> None:
    backends.fp32_precision = "tf32"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {name: place.fp32_precision for name, place in PLACES.items()}
    yield
    backends.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    backends.cudnn.allow_tf32 = True
    for name, place in PLACES.items():
        place.fp32_precision = before[name]


def settings() -> dict[str, object]:
    """What can be read; by old names not after a mixture of both."""
    found: dict[str, object] = {name: place.fp32_precision for name, place in PLACES.items()}
    for name, read in {
        "products": torch.get_float32_matmul_precision,
        "cudnn": lambda: backends.cudnn.allow_tf32,
    }.items():
        try:
            found[name] = read()
        except RuntimeError:
            found[name] = "a mixture"
    return found


@pytest.mark.parametrize("ask", [lambda: None, by_old_names, by_new_names, everything_by_one_name])
def test_a_block_is_in_full_precision_and_all_is_put_back(ask: Callable[[], None]) -> None:
    ask()
    before = settings()
    with pytest.raises(ZeroDivisionError), full_float32():
        full = {**dict.fromkeys(PLACES, "ieee"), "products": "highest", "cudnn": False}
        assert settings() == full
        raise ZeroDivisionError
    assert settings() == before


def test_answers_are_run_so() -> None:
    by_old_names()
    with known_settings():
        assert backends.cuda.matmul.fp32_precision == backends.cudnn.rnn.fp32_precision == "ieee"
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == "medium"
