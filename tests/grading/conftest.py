"""Lab 99 where labs are looked for, one forking process for all tests, and grading without a pool."""

from __future__ import annotations

import os

import pytest

import grading.pipeline.stream as streams
from grading.executors import open_executor
from grading.isolation.probe import try_tier
from grading.isolation.tiers import KERNEL, NONE, tier_named
from tests.grading.fake_labs import registered
from tests.grading.in_process import graded_in_process
from tests.grading.scripted_ranks import scripted_ranks
from tests.grading.shared_sandboxes import shared_sandbox


@pytest.fixture(scope="module")
def in_process():
    """For a module whose tests are of grades and not of the pool: see tests/grading/in_process.py."""
    with graded_in_process():
        yield


@pytest.fixture
def pool(monkeypatch):
    """For a test among them that is of the pool, or whose submissions nothing confines."""
    monkeypatch.setattr(streams, "open_executor", open_executor)


@pytest.fixture(scope="module")
def lab99():
    with registered("99"):
        yield


@pytest.fixture(scope="module")
def sandbox(lab99):
    best = KERNEL if try_tier(KERNEL).works else NONE
    return shared_sandbox(tier_named(os.environ.get("LABS_ISOLATION", best.name)))


@pytest.fixture
def ranks():
    with scripted_ranks() as make:
        yield make
