"""The name that transformers has for a cache, in the versions before and after it was changed."""

from __future__ import annotations

import inspect

import pytest

from labkit.material.cache_name import cache_name


@pytest.mark.parametrize(
    ("installed", "name"),
    [
        ("5.10.0", "past_key_values"),
        ("5.23.1", "past_key_values"),
        ("5.24.0", "cache"),
        ("5.25.0.dev0", "cache"),
        ("6.0", "cache"),
    ],
)
def test_the_name_goes_by_the_version(installed: str, name: str) -> None:
    assert cache_name(installed) == name


def test_it_is_the_installed_ones() -> None:
    models = pytest.importorskip("transformers", reason="transformers is not installed; the name is its")
    assert cache_name() in inspect.signature(models.LlamaForCausalLM.forward).parameters
