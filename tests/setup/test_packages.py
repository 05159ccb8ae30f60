"""The environment has every optional package, so that no test drops out unseen where all of them have to run."""

import sys

import pytest

from tests.lanes import require_package

OPTIONAL = ("transformers", "peft", "ipywidgets", "ipykernel", "jupyter_client")


@pytest.mark.parametrize("name", (*OPTIONAL, *["triton"] * (sys.platform == "linux")))
def test_an_optional_package_is_there(name: str) -> None:
    require_package(name)
